package query

// Believing: the posteriors of some variables become given distributions (Jeffrey's rule).

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Belief says how the answers of a query with Believe came about. Beside it Marginals, Joint and Ratio are those of the distribution with
// the believed posteriors that is nearest to the one under the evidence.
type Belief struct {
	Variables []int      `json:"variables"` // those of Believe
	Names     []string   `json:"names,omitempty"`
	States    [][]string `json:"states,omitempty"` // for each variable the names of its values
	// Likelihoods are the weights that have the same effect as evidence: for each variable one for each value, the largest 1.
	Likelihoods [][]float64 `json:"likelihoods"`
	Rounds      int         `json:"rounds"` // of proportional fitting; 1 for one variable
	Missed      float64     `json:"missed"` // the largest difference between a probability and the belief in it
	Exact       bool        `json:"exact"`  // everything was computed exactly, up to rounding
}

// MaxBeliefs bounds the combinations of values of all variables of Believe together: each is a query of its own.
const MaxBeliefs = 1 << 12

// believed is the kind of question that gives variables the posteriors which are believed.
var believed = kind{
	field: "believe",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		return "believe", checkBelieve(domains, isModelKnown, q)
	},
	isTwice: func(q *Query, n *ByName) bool { return n.Believe != "" && len(q.Believe) > 0 },
	name: func(a *Answers, n Names) {
		b := a.Belief
		if b == nil {
			return
		}
		b.Names, b.States = n.variableLabels(b.Variables), make([][]string, len(b.Variables))
		for k, v := range b.Variables {
			b.States[k] = n.valueLabels(v, len(b.Likelihoods[k]))
		}
	},
}

// sumSlack is how far the probabilities of a belief may miss 1: people round them.
const sumSlack = 1e-3

// checkBelieve checks the beliefs of a query: of ascending variables that are not observed, each with probabilities that sum to 1, few
// combinations together, and beside no question that they cannot change.
func checkBelieve(domains []int, isModelKnown bool, q *Query) error {
	if len(q.Believe) == 0 {
		return nil
	}
	previous, combinations := -1, 1 // the variable before; the combinations of values so far
	for _, b := range q.Believe {
		if err := checkLikelihood(domains, isModelKnown, b, previous); err != nil {
			return err
		}
		previous = b.Var
		sum := 0.0
		for x, p := range b.Weights {
			if !(p >= 0) {
				return fmt.Errorf("variable %d = %d has the probability %v", b.Var, x, p)
			}
			sum += p
		}
		if !(math.Abs(sum-1) <= sumSlack) {
			return fmt.Errorf("the probabilities of variable %d sum to %.6g, not to 1", b.Var, sum)
		}
		if combinations *= len(b.Weights); combinations > MaxBeliefs {
			return fmt.Errorf("more than %d combinations of values with variable %d, and each is a query of its own: believe fewer variables",
				MaxBeliefs, b.Var)
		}
		if _, isObserved := slices.BinarySearchFunc(q.Evidence.Hard, b.Var, func(o factorgraph.Observation, v int) int {
			return cmp.Compare(o.Var, v)
		}); isObserved {
			return fmt.Errorf("variable %d is observed: its posterior is certain", b.Var)
		}
	}
	// Descends: it asks for assignments or samples.
	hasOtherQuestion := q.Descends() || q.Gradients || q.Sensitivity != nil || q.Information != nil || q.Cases != nil || q.Conflict
	if hasOtherQuestion {
		return errors.New("beside it marginals, targets, a joint marginal and an event may be asked for, and nothing else")
	}
	return nil
}
