package query

// The value of observing other variables, for one target.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Ask is a question about the value of observations: Query.Information.
type Ask struct {
	Target int `msgpack:"target"` // a variable that is not observed
	// Candidates are the variables that may be observed, distinct; empty: all that are neither the target nor observed.
	Candidates []int `msgpack:"candidates,omitempty"`
	// Utility[a][t] is the worth of action a where the target is at t; empty: no decision depends on it.
	Utility [][]float64 `msgpack:"utility,omitempty"`
}

// NamedAsk is an Ask by name. Utility is a JSON text, {"operate": {"no": -5, "yes": 10}, "wait": [0, -20]}: the worth of each action by the
// values of the target, or in their sequence; what is not named is worth 0. Actions are numbered in the sequence of their names.
type NamedAsk struct {
	Target     string   `msgpack:"target"`
	Candidates []string `msgpack:"candidates,omitempty"`
	Utility    string   `msgpack:"utility,omitempty"`
}

// Information is the value of observing each of some variables for a target, on average over their outcomes.
type Information struct {
	Target          int          `json:"target"`
	Name            string       `json:"name,omitempty"`             // of the target
	Entropy         float64      `json:"entropy"`                    // of the target under the evidence, nats
	Exact           bool         `json:"exact"`                      // everything was computed exactly, up to rounding
	Action          *int         `json:"action,omitempty"`           // the best under the evidence alone; with a utility
	ExpectedUtility *float64     `json:"expected_utility,omitempty"` // of that action
	Candidates      []Observable `json:"candidates"`                 // the most telling first: by gain of utility, else by information
}

// Observable is a variable that could be observed next.
type Observable struct {
	Variable        int      `json:"variable"`
	Name            string   `json:"name,omitempty"`
	MutualInfo      float64  `json:"mutual_information"`     // nats: entropy less expected entropy
	ExpectedEntropy float64  `json:"expected_entropy"`       // of the target once this is observed, nats
	UtilityGain     *float64 `json:"utility_gain,omitempty"` // of the best action then over the best now
}

// information is the value of observing other variables for a target.
var information = kind{
	field: "information",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		if q.Information == nil {
			return "", nil
		}
		return checkAsk(domains, isModelKnown, q)
	},
	isTwice: func(q *Query, n *ByName) bool { return n.Information != nil && q.Information != nil },
	name: func(a *Answers, n Names) {
		i := a.Information
		if i == nil {
			return
		}
		i.Name = n.Variable(i.Target)
		for k := range i.Candidates {
			i.Candidates[k].Name = n.Variable(i.Candidates[k].Variable)
		}
	},
}

// checkAsk returns the first field of a query's Information that is wrong, and why. Target and candidates may not be
// observed, and the utility needs a number for each action and value of the target.
func checkAsk(domains []int, isModelKnown bool, q *Query) (field string, err error) {
	a := q.Information
	if err := checkUnobserved(domains, isModelKnown, q, a.Target); err != nil {
		return "information.target", err
	}

	// candidates, with a bound on the pairs of one of their values and one of the target's, each of which needs a number. Of one
	// candidate at most MaxJointCells values are counted, so that the sum cannot overflow.
	field = "information.candidates"
	if err := checkDistinct(domains, isModelKnown, a.Candidates); err != nil {
		return field, err
	}
	values := 0
	for _, v := range a.Of(domains, q.Evidence) {
		if v == a.Target {
			return field, fmt.Errorf("variable %d is the target", v)
		}
		if err := checkUnobserved(domains, isModelKnown, q, v); err != nil {
			return field, err
		}
		if isModelKnown {
			values += min(domains[v], MaxJointCells)
		}
		if isModelKnown && values > MaxJointCells/domains[a.Target] {
			return field, fmt.Errorf("more than %d pairs of their values and the target's", MaxJointCells)
		}
	}

	// utility
	for action, row := range a.Utility {
		field = fmt.Sprintf("information.utility[%d]", action)
		if isModelKnown && len(row) != domains[a.Target] {
			return field, fmt.Errorf("%d numbers, variable %d has %d values", len(row), a.Target, domains[a.Target])
		}
		for x, u := range row {
			if math.IsNaN(u) || math.Abs(u) > maxUtility {
				return field, fmt.Errorf("it is %v at value %d, at most %g are taken", u, x, maxUtility)
			}
		}
	}
	return "", nil
}

// maxUtility bounds utilities: sums of them are finite.
const maxUtility = 1e100

// checkUnobserved returns an error if variable v does not exist or is observed. The observations are ascending; if not,
// the query has an error already.
func checkUnobserved(domains []int, isModelKnown bool, q *Query, v int) error {
	if v < 0 || isModelKnown && v >= len(domains) {
		return fmt.Errorf("variable %d, the model has %d", v, len(domains))
	}
	if _, isObserved := slices.BinarySearchFunc(q.Evidence.Hard, v, func(o factorgraph.Observation, v int) int {
		return cmp.Compare(o.Var, v)
	}); isObserved {
		return fmt.Errorf("variable %d is observed", v)
	}
	return nil
}

// Of returns the candidates in a model with these domains: a.Candidates if there are any, else all variables but the
// target and those that e observes, ascending.
func (a *Ask) Of(domains []int, e factorgraph.Evidence) []int {
	if len(a.Candidates) > 0 {
		return a.Candidates
	}
	var candidates []int
	next := 0 // the first observation, which ascend, of a variable from v on
	for v := range domains {
		for next < len(e.Hard) && e.Hard[next].Var < v {
			next++
		}
		isObserved := next < len(e.Hard) && e.Hard[next].Var == v
		if v != a.Target && !isObserved {
			candidates = append(candidates, v)
		}
	}
	return candidates
}
