package query

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Answers about the distribution of variables.

// Posterior is P(x = a | evidence) of one variable. Query.Marginals and Query.Targets ask for it.
type Posterior struct {
	Variable int       `json:"variable"`
	Name     string    `json:"name,omitempty"`
	States   []string  `json:"states,omitempty"` // the names of the values
	P        []float64 `json:"p"`                // a probability for each value
}

// Joint is P(x_v, v in Variables | evidence).
type Joint struct {
	Variables []int      `json:"variables"` // as they were asked for
	Names     []string   `json:"names,omitempty"`
	States    [][]string `json:"states,omitempty"` // for each variable the names of its values
	Shape     []int      `json:"shape"`            // their domains
	P         []float64  `json:"p"`                // Π Shape probabilities, the last variable fastest
}

// Ratio is the quotient of Z of this query and Z of the one that it is asked over: see Query.Over.
type Ratio struct {
	Ln *float64 `json:"ln"` // nats; null if it is 0
	// P is the probability of what this query observes beside the other one; null if this query does not observe all
	// that the other one does.
	P *float64 `json:"p"`
}

// Posteriors returns the marginals by the names of variables and values: P(lung = yes | evidence) is
// Posteriors()["lung"]["yes"]. A variable or value without a name is called by its position.
func (a *Answers) Posteriors() map[string]map[string]float64 {
	posteriors := make(map[string]map[string]float64, len(a.Marginals))
	for _, m := range a.Marginals {
		posterior := make(map[string]float64, len(m.P))
		for x, p := range m.P {
			posterior[Label(m.States, x)] = p
		}
		posteriors[cmp.Or(m.Name, strconv.Itoa(m.Variable))] = posterior
	}
	return posteriors
}

// Probabilities returns the probabilities of each posterior, in the form of UAI's MAR files; nil of nil.
func Probabilities(posteriors []Posterior) [][]float64 {
	if posteriors == nil {
		return nil
	}
	rows := make([][]float64, len(posteriors))
	for i, m := range posteriors {
		rows[i] = m.P
	}
	return rows
}

// marginals are P(x = a | evidence) of every variable, or of the targets.
var marginals = kind{
	field: "targets",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		return "targets", checkDistinct(domains, isModelKnown, q.Targets)
	},
	isTwice: func(q *Query, n *ByName) bool { return len(n.Targets) > 0 && len(q.Targets) > 0 },
	name: func(a *Answers, n Names) {
		for i := range a.Marginals {
			m := &a.Marginals[i]
			m.Name, m.States = n.Variable(m.Variable), n.valueLabels(m.Variable, len(m.P))
		}
	},
}

// joint is P(x_v, v in a set | evidence).
var joint = kind{
	field: "joint",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		return "joint", checkJoint(domains, isModelKnown, q.Joint)
	},
	isTwice: func(q *Query, n *ByName) bool { return len(n.Joint) > 0 && len(q.Joint) > 0 },
	name: func(a *Answers, n Names) {
		j := a.Joint
		if j == nil {
			return
		}
		j.Names, j.States = n.variableLabels(j.Variables), make([][]string, len(j.Variables))
		for k, v := range j.Variables {
			j.States[k] = n.valueLabels(v, j.Shape[k])
		}
	},
}

// MaxJointCells bounds the table of a joint marginal: twenty binary variables.
const MaxJointCells = 1 << 20

// CheckJoint checks the variables of a joint marginal against the domains of a model: in range, each once, at most MaxJointCells cells.
// Errors have the code bad_input and name the variable. Linear time.
func CheckJoint(domains, set []int) error {
	return fault.Wrap(fault.BadInput, checkJoint(domains, true, set))
}

// checkJoint checks the variables of a joint marginal: each once and, if isModelKnown, in range and with at most
// MaxJointCells cells.
func checkJoint(domains []int, isModelKnown bool, set []int) error {
	if len(set) == 0 {
		return nil
	}
	isListed := make(map[int]bool, len(set))
	cells := 1
	for _, v := range set {
		switch {
		case v < 0 || isModelKnown && v >= len(domains):
			return fmt.Errorf("variable %d, the model has %d", v, len(domains))
		case isListed[v]:
			return fmt.Errorf("variable %d twice", v)
		case isModelKnown && domains[v] > MaxJointCells/cells:
			return fmt.Errorf("the table of all values together has more than %d cells with variable %d: ask for fewer variables", MaxJointCells, v)
		}
		isListed[v] = true
		if isModelKnown {
			cells *= domains[v]
		}
	}
	return nil
}

// checkDistinct returns an error if a variable is there twice or, if isModelKnown, not in the model.
func checkDistinct(domains []int, isModelKnown bool, set []int) error {
	if len(set) == 0 {
		return nil
	}
	isListed := make(map[int]bool, len(set))
	for _, v := range set {
		switch {
		case v < 0 || isModelKnown && v >= len(domains):
			return fmt.Errorf("variable %d, the model has %d", v, len(domains))
		case isListed[v]:
			return fmt.Errorf("variable %d twice", v)
		}
		isListed[v] = true
	}
	return nil
}
