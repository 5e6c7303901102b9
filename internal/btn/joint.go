package btn

// Joint marginals: which sets of variables may be asked for.

import "github.com/basetensor/basetensor/pkg/fault"

// MaxJointCells bounds the table of a joint marginal: twenty binary variables.
const MaxJointCells = 1 << 20

// Joint is P(x_v, v in Variables | evidence).
type Joint struct {
	Variables []int     `json:"variables"` // as they were asked for
	Shape     []int     `json:"shape"`     // their domains
	P         []float64 `json:"p"`         // Π Shape probabilities, the last variable fastest
}

// CheckJoint checks the variables of a joint marginal against the domains of a model: in range, each once, at most
// MaxJointCells cells. Errors have the code bad_input and name the variable. Linear time.
func CheckJoint(domains, set []int) error {
	seen := make(map[int]bool, len(set))
	cells := 1
	for _, v := range set {
		switch {
		case v < 0 || v >= len(domains):
			return fault.New(fault.BadInput, "joint marginal: variable %d, the model has %d", v, len(domains))
		case seen[v]:
			return fault.New(fault.BadInput, "joint marginal: variable %d twice", v)
		case domains[v] > MaxJointCells/cells:
			return fault.New(fault.BadInput, "joint marginal: more than %d cells with variable %d", MaxJointCells, v)
		}
		seen[v] = true
		cells *= domains[v]
	}
	return nil
}
