package btn

// Parts that have derivatives.

import (
	"github.com/basetensor/basetensor/pkg/query"
)

// Parametric reports whether a query asks for derivatives by the numbers of the model, or for cases: its network has
// every factor as a core of its own.
func Parametric(q query.Query) bool { return q.Gradients || q.Sensitivity != nil || q.Cases != nil }

// Sensitivity is the target event of a sensitivity query, and the model's numbers that its probability may depend on, by core.
type Sensitivity struct {
	Target query.Sensitivity `msgpack:"target"`
	Alone  bool              `msgpack:"alone,omitempty"` // gradients are not asked for
	Cores  []CoreNumbers     `msgpack:"cores"`
}

// CoreNumbers are the numbers of a core.
type CoreNumbers struct {
	Numbers []float64 `msgpack:"n"`           // as lower.ParameterSizes counts them
	Scope   []int     `msgpack:"s,omitempty"` // of a table: its variables
	Shape   []int     `msgpack:"d,omitempty"` // and their domains
	// Groups has the sizes of groups of consecutive numbers, by term of the core: the core is linear in each group, and the sum of its
	// terms. None where a number of the network is beyond float64 or below 0: a sum over a group is no safer than Z less a part then.
	Groups [][]int `msgpack:"g,omitempty"`
	// Row is 0, or 1 + the mode that the rows of a conditional probability table are over.
	Row int `msgpack:"r,omitempty"`
}
