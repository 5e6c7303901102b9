package query

import (
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Answers that are assignments of values to variables: the most probable ones, and draws.

// Explanation is the assignment of all variables with the largest weight.
type Explanation struct {
	Assignment []int    `json:"assignment"`       // a value per variable
	Names      []string `json:"names,omitempty"`  // of the variables
	States     []string `json:"states,omitempty"` // the names of the values
	LnWeight   float64  `json:"ln_weight"`        // nats: the product of the factors, and of the evidence's weights, there
	// Unique says that no other assignment is as good, up to the rounding of the factors' entries. Of a
	// search it is true where the list proves it: with Best above 1.
	Unique bool `json:"unique"`
	// LnBound, Gap and Optimal are a search's, absent where an elimination has found the best: no assignment is above LnBound, by Gap nats
	// above this one, and Optimal says that the search is complete: the gap is rounding, at most 1e-6.
	LnBound *float64 `json:"ln_bound,omitempty"`
	Gap     *float64 `json:"gap,omitempty"`
	Optimal *bool    `json:"optimal,omitempty"`
	// Others are the next best ones in sequence, where the query has Best above 1. LnBound, Gap and Optimal are of the list then: no
	// assignment that is not listed is above LnBound, by Gap nats above the last one.
	Others []Alternative `json:"others,omitempty"`
	// All says that no further assignment has a weight above 0, where fewer than Best are listed or as many as there are.
	All bool `json:"all,omitempty"`
}

// Alternative is an assignment beside the most probable one.
type Alternative struct {
	Assignment []int    `json:"assignment"`
	States     []string `json:"states,omitempty"` // the names of the values
	LnWeight   float64  `json:"ln_weight"`        // nats
}

// MarginalMap is the most probable assignment of some variables.
type MarginalMap struct {
	Variables  []int    `json:"variables"`        // as they were asked for
	Assignment []int    `json:"assignment"`       // a value for each
	Names      []string `json:"names,omitempty"`  // of the variables
	States     []string `json:"states,omitempty"` // the names of the values
	LnWeight   float64  `json:"ln_weight"`        // nats: ln of the sum over all others
	Exact      bool     `json:"exact"`            // none is better
	// LnBound is no less than the ln_weight of any assignment; null where an elimination has found the best.
	LnBound *float64 `json:"ln_bound"`
	// Gap and Optimal are a search's: LnBound less LnWeight, nats, and whether it is complete: the gap is rounding, at most 1e-6. LnUpper
	// is there where the sum over the others does not fit: LnWeight is a bound from below then, LnUpper one from above.
	Gap     *float64 `json:"gap,omitempty"`
	Optimal *bool    `json:"optimal,omitempty"`
	LnUpper *float64 `json:"ln_upper,omitempty"`
}

// Samples are draws from P(x | evidence).
type Samples struct {
	Assignments [][]int    `json:"assignments"` // a value per variable in each
	Names       []string   `json:"names,omitempty"`
	States      [][]string `json:"states,omitempty"` // for each variable the names of its values; empty: they have none
	// Weights are there if samples do not have the same weight: they sum to 1, and Σ w f(x) is an estimate of the mean of f.
	// Effective is 1/Σ w² then: the number of equally weighted samples that they are worth.
	Weights   []float64 `json:"weights,omitempty"`
	Effective *float64  `json:"effective,omitempty"`
	Seed      uint64    `json:"seed"`
}

// explanation is the most probable assignment of all variables, or the best few.
var explanation = kind{
	field: "best",
	check: func(domains []int, _ bool, q *Query) (string, error) { return "best", checkBest(len(domains), q) },
	name: func(a *Answers, n Names) {
		e := a.MPE
		if e == nil {
			return
		}
		e.Names, e.States = n.variableLabels(positions(len(e.Assignment))), n.assignmentLabels(nil, e.Assignment)
		for i := range e.Others {
			e.Others[i].States = n.assignmentLabels(nil, e.Others[i].Assignment)
		}
	},
}

// marginalMAP is the most probable assignment of some variables, the others summed out.
var marginalMAP = kind{
	field: "map",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		return "map", checkDistinct(domains, isModelKnown, q.Map)
	},
	isTwice: func(q *Query, n *ByName) bool { return len(n.Map) > 0 && len(q.Map) > 0 },
	name: func(a *Answers, n Names) {
		if m := a.Map; m != nil {
			m.Names, m.States = n.variableLabels(m.Variables), n.assignmentLabels(m.Variables, m.Assignment)
		}
	},
}

// samples are draws from P(x | evidence).
var samples = kind{
	field: "samples",
	check: func(domains []int, _ bool, q *Query) (string, error) {
		return "samples", checkSamples(len(domains), q.Samples)
	},
	name: func(a *Answers, n Names) {
		s := a.Samples
		if s == nil || len(s.Assignments) == 0 {
			return
		}
		s.Names = n.variableLabels(positions(len(s.Assignments[0])))
		s.States = make([][]string, len(s.Names))
		for v := range s.States {
			s.States[v] = []string{}
			if v < len(n.States) {
				s.States[v] = n.valueLabels(v, len(n.States[v]))
			}
		}
	},
}

// MaxSampled bounds the values of all samples of a query together: samples times variables.
const MaxSampled = 1 << 24

// MaxBest bounds the most probable assignments of a query, MaxSampled their values together.
const MaxBest = 1000

// CheckSet checks the variables of a marginal MAP assignment: in range, and each once. Errors have the code bad_input
// and name the variable.
func CheckSet(domains, set []int) error {
	return fault.Wrap(fault.BadInput, checkDistinct(domains, true, set))
}

// CheckSamples checks a number of assignments to draw of some variables: at least 0, at most MaxSampled values together.
func CheckSamples(variables, samples int) error {
	return fault.Wrap(fault.BadInput, checkSamples(variables, samples))
}

// checkSamples checks the number of samples of a query about a model with this many variables.
func checkSamples(variables, samples int) error {
	limit := MaxSampled / max(1, variables)
	switch {
	case samples < 0:
		return fmt.Errorf("%d samples: at least 0", samples)
	case samples > limit:
		return fmt.Errorf("%d samples: at most %d of %d variables, as an answer holds 2^24 values together: ask several times, with other seeds",
			samples, limit, variables)
	}
	return nil
}

// checkBest checks how many most probable assignments a query asks for in a model with this many variables.
func checkBest(variables int, q *Query) error {
	switch {
	case q.Best == 0:
	case !q.MPE:
		return errors.New("it lists the most probable explanations of all variables: mpe is needed beside it")
	case q.Best < 1:
		return fmt.Errorf("%d assignments: at least 1", q.Best)
	}
	if limit := min(MaxBest, max(1, MaxSampled/max(1, variables))); q.Best > limit {
		return fmt.Errorf("%d assignments: at most %d are listed, as each takes a descent or search of its own and "+
			"all stay in memory: ask for %d, or for samples", q.Best, limit, limit)
	}
	return nil
}

// positions returns 0, 1, …, n−1.
func positions(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}
