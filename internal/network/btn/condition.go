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
// Scale. Rounded lists the links whose products with likelihoods were rounded: an error that
// cancellation among terms of both signs makes larger.
//
// Errors: ErrNoVariables for evidence on a network built directly, the errors of
// Evidence.Validate (factorgraph.ErrEvidence), ErrRange if the weights of one variable
// differ by more than a factor 2^1400. Cost: O(links + variables). Source: Hamid and Braun,
// section 2 (queries by conditioning).
func (n *Network) Condition(ev factorgraph.Evidence) (*Network, error) {
	out := *n
	if ev.IsEmpty() {
		return &out, nil
	}
	if n.Variables == nil {
		return nil, ErrNoVariables
	}
	out.Directed = false
	out.Links = append([]Link(nil), n.Links...)
	if err := ev.Validate(n.domains()); err != nil {
		return nil, err
	}

	observed := make([]int, 0, len(ev.Hard)+len(ev.Soft)) // the variables with evidence, each once
	weights := map[int][]scaled.Number{}                  // by observed variable, under the evidence so far

	weightsOf := func(i int) []scaled.Number {
		w, ok := weights[i]
		if !ok {
			w = n.weights(i)
			weights[i] = w
			observed = append(observed, i)
		}
		return w
	}

	for _, s := range ev.Soft {
		if isExact := multiply(weightsOf(s.Var), s.Weights); !isExact {
			out.Rounded = append(slices.Clip(out.Rounded), n.Variables[s.Var].Link)
		}
	}

	// An observation leaves one value.
	for _, h := range ev.Hard {
		w := weightsOf(h.Var)
		for x := range w {
			if x != h.Value {
				w[x] = scaled.Number{}
			}
		}
	}

	for _, i := range observed {
		if err := out.setWeights(i, weights[i]); err != nil {
			return nil, fmt.Errorf("variable %d: %w", n.Number(i), err)
		}
	}
	return &out, nil
}

// multiply multiplies the weights w of a variable by a likelihood, in place. It reports whether no product was rounded.
func multiply(w []scaled.Number, likelihood []float64) (isExact bool) {
	isExact = true
	for x := range w {
		f := scaled.FromFloat(likelihood[x])

		// A product of two mantissas is exact if the fused multiplication finds no remainder.
		isExact = isExact && math.FMA(w[x].Mant, f.Mant, -float64(w[x].Mant*f.Mant)) == 0
		w[x] = w[x].Mul(f)
	}
	return isExact
}

// domains returns a model with the variables of n and no factors, against which evidence is checked.
func (n *Network) domains() *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, len(n.Variables))}
	for i, v := range n.Variables {
		m.Domains[i] = v.Domain
	}
	return m
}

// weights returns w_i(x) of variable i for every value x. The power of two that went into Scale is not in them.
func (n *Network) weights(i int) []scaled.Number {
	cp := n.Links[n.Variables[i].Link].T.(*tensor.CP)
	w := make([]scaled.Number, len(cp.Weights))
	for x, v := range cp.Weights {
		w[x] = scaled.FromFloat(v)
	}
	return w
}

// setWeights replaces the weights of variable i in place. The list n.Links must not be shared with another network. It returns ErrRange if
// the weights span too much.
func (n *Network) setWeights(i int, numbers []scaled.Number) error {
	w, exp, err := FitWeights(numbers)
	if err != nil {
		return err
	}

	j := n.Variables[i].Link
	cp := *n.Links[j].T.(*tensor.CP)
	cp.Weights = w
	n.Links[j].T = &cp
	n.Scale = n.Scale.Mul(scaled.Make(1, exp))
	return nil
}
