package btn

// Conditioning: evidence changes weights of variables and nothing else.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrNoVariables says that evidence was given for a network that was built directly,
// and so has no variables.
var ErrNoVariables = errors.New("btn: the network has no variables to condition on")

// Condition returns the network under evidence: a shallow copy of n in which the weights of the
// observed variables are multiplied by the evidence, w_i(x)·[x = observed] for an observation and
// w_i(x)·e(x) for a likelihood. A variable may have both. Cores, maps and all other links
// are shared with n, which does not change. A power of two taken out of extreme weights goes into
// Scale. The list Rounded gets the links whose products with likelihoods were rounded, since terms of
// both signs that cancel make that error larger.
//
// Errors: ErrNoVariables for evidence on a network built directly, the errors of
// Evidence.Validate (factorgraph.ErrEvidence), ErrRange if the weights of one variable
// differ by more than a factor 2^1400. Cost: O(links + variables). Source: Hamid and Braun,
// section 2 (queries by conditioning).
func (n *Network) Condition(ev factorgraph.Evidence) (*Network, error) {
	conditioned := *n
	if ev.IsEmpty() {
		return &conditioned, nil
	}
	if n.Variables == nil {
		return nil, ErrNoVariables
	}
	conditioned.Directed = false // under evidence, sums over variables that nobody asks about are no longer 1
	conditioned.Links = append([]Link(nil), n.Links...)
	if err := ev.Validate(n.domainModel()); err != nil {
		return nil, err
	}

	observed, weights, rounded := n.weightsUnder(ev)
	conditioned.Rounded = append(slices.Clip(n.Rounded), rounded...) // Clip: n shares the list, which must not change
	for _, i := range observed {
		if err := conditioned.setWeights(i, weights[i]); err != nil {
			return nil, fmt.Errorf("variable %d: %w", n.Number(i), err)
		}
	}
	return &conditioned, nil
}

// weightsUnder returns the variables with evidence, each once, and for each of them its weights multiplied by its evidence. rounded lists
// the links of the weights for which a product with a likelihood was rounded, one entry for each likelihood.
func (n *Network) weightsUnder(ev factorgraph.Evidence) (observed []int, weights map[int][]scaled.Number, rounded []int) {
	observed = make([]int, 0, len(ev.Hard)+len(ev.Soft))
	weights = map[int][]scaled.Number{}

	// weightsOf returns the weights of variable i under the evidence so far, to be changed in place.
	weightsOf := func(i int) []scaled.Number {
		w, isObserved := weights[i]
		if !isObserved {
			w = n.weights(i)
			weights[i] = w
			observed = append(observed, i)
		}
		return w
	}

	for _, likelihood := range ev.Soft {
		isExact := multiplyByLikelihood(weightsOf(likelihood.Var), likelihood.Weights)
		if !isExact {
			rounded = append(rounded, n.Variables[likelihood.Var].Link)
		}
	}

	// An observation leaves one value.
	for _, observation := range ev.Hard {
		w := weightsOf(observation.Var)
		for x := range w {
			if x != observation.Value {
				w[x] = scaled.Number{} // 0
			}
		}
	}
	return observed, weights, rounded
}

// multiplyByLikelihood multiplies the weights w of a variable by a likelihood, in place. It reports whether no product was rounded.
func multiplyByLikelihood(w []scaled.Number, likelihood []float64) (isExact bool) {
	isExact = true
	for x := range w {
		f := scaled.FromFloat(likelihood[x])

		// A product of two mantissas is exact if the fused multiplication finds no remainder.
		isExact = isExact && math.FMA(w[x].Mant, f.Mant, -float64(w[x].Mant*f.Mant)) == 0
		w[x] = w[x].Mul(f)
	}
	return isExact
}

// domainModel returns a model with the variables of n and no factors. Evidence is validated against it.
func (n *Network) domainModel() *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, len(n.Variables))}
	for i, v := range n.Variables {
		m.Domains[i] = v.Domain
	}
	return m
}

// weights returns w_i(x) of variable i for every value x. The power of two that went into Scale is not in them.
func (n *Network) weights(i int) []scaled.Number {
	cp := n.Links[n.Variables[i].Link].T.(*tensor.CP)
	weights := make([]scaled.Number, len(cp.Weights))
	for x, w := range cp.Weights {
		weights[x] = scaled.FromFloat(w)
	}
	return weights
}

// setWeights replaces the weights of variable i in place. FitWeights writes the weights as float64 times a power of two; the link of the
// variable gets the float64 numbers, and Scale is multiplied by the power. The list n.Links must not be shared with another network; the
// tensor of the link may be, since it is replaced and not changed. It returns ErrRange if the weights span too much.
func (n *Network) setWeights(i int, numbers []scaled.Number) error {
	weights, exp, err := FitWeights(numbers)
	if err != nil {
		return err
	}

	link := n.Variables[i].Link
	cp := *n.Links[link].T.(*tensor.CP)
	cp.Weights = weights
	n.Links[link].T = &cp
	n.Scale = n.Scale.Mul(scaled.Make(1, exp))
	return nil
}
