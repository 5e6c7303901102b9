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
// w_i(x)·e(x) for a likelihood; both may be given for one variable. Cores, maps and all other links
// are shared with n, which does not change. A power of two taken out of extreme weights goes into
// Scale. Rounded names the links whose products with likelihoods were rounded: an error that
// cancellation among terms of both signs makes larger.
//
// Errors: ErrNoVariables for evidence on a network built directly, the errors of
// Evidence.Validate (factorgraph.ErrEvidence), ErrRange where the weights of one variable
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

	touched := make([]int, 0, len(ev.Hard)+len(ev.Soft))
	weights := map[int][]scaled.Number{}

	// of returns the weights of a variable, changed by the evidence so far.
	of := func(i int) []scaled.Number {
		w, ok := weights[i]
		if !ok {
			w = n.weights(i)
			weights[i] = w
			touched = append(touched, i)
		}
		return w
	}

	for _, s := range ev.Soft {
		w, exact := of(s.Var), true
		for x := range w {
			f := scaled.FromFloat(s.Weights[x])

			// The product of two mantissas is exact where the fused multiplication leaves no rest.
			exact = exact && math.FMA(w[x].Mant, f.Mant, -float64(w[x].Mant*f.Mant)) == 0
			w[x] = w[x].Mul(f)
		}
		if !exact {
			out.Rounded = append(slices.Clip(out.Rounded), n.Variables[s.Var].Link)
		}
	}

	// An observation leaves one value.
	for _, h := range ev.Hard {
		w := of(h.Var)
		for x := range w {
			if x != h.Value {
				w[x] = scaled.Number{}
			}
		}
	}

	for _, i := range touched {
		if err := out.setWeights(i, weights[i]); err != nil {
			return nil, fmt.Errorf("variable %d: %w", n.Number(i), err)
		}
	}
	return &out, nil
}

// domains returns the domains that evidence is checked against.
func (n *Network) domains() *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, len(n.Variables))}
	for i, v := range n.Variables {
		m.Domains[i] = v.Domain
	}
	return m
}

// weights returns w_i(x), without the share in Scale.
func (n *Network) weights(i int) []scaled.Number {
	cp := n.Links[n.Variables[i].Link].T.(*tensor.CP)
	w := make([]scaled.Number, len(cp.Weights))
	for x, v := range cp.Weights {
		w[x] = scaled.FromFloat(v)
	}
	return w
}

// setWeights replaces the weights of variable i in a network whose Links are its own.
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
