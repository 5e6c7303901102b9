package btn

// Likelihoods apart from the weights of their variables.

import (
	"errors"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Spread returns n with every likelihood of evidence as a tensor of its own, joined to its variable by a leg of
// its own, and the evidence without them. So no product of weights is rounded, and none leaves float64. The
// tensors are cores, or links where the variables are the cores; they come last. The evidence has to be valid.
func (n *Network) Spread(ev factorgraph.Evidence) (*Network, factorgraph.Evidence) {
	if len(ev.Soft) == 0 {
		return n, ev
	}
	out := *n
	out.Directed = false
	out.Dims, out.Maps = slices.Clone(n.Dims), slices.Clone(n.Maps)
	out.Cores, out.Links = slices.Clone(n.Cores), slices.Clone(n.Links)
	for _, s := range ev.Soft {
		leg := len(out.Dims)
		out.Dims = append(out.Dims, len(s.Weights))
		if n.Maps != nil {
			out.Maps = append(out.Maps, Identity())
		}
		legs := []int{leg}
		own := &tensor.Dense{Shape: []int{len(s.Weights)}, Data: s.Weights}
		link := &out.Links[n.Variables[s.Var].Link]
		if n.Choice == query.CoresAreVariables && len(link.Legs) > 0 {
			out.Links = append(out.Links, Link{Legs: legs, T: own})
			c := slices.IndexFunc(n.Cores, func(c Core) bool { return slices.Contains(c.Legs, link.Legs[0]) })
			out.Cores[c].Legs, out.Cores[c].T = joined(out.Cores[c].Legs, out.Cores[c].T, leg, len(s.Weights))
			continue
		}
		out.Cores = append(out.Cores, Core{Legs: legs, T: own})
		out.Likelihoods++
		link.Legs, link.T = joined(link.Legs, link.T, leg, len(s.Weights))
	}
	return &out, factorgraph.Evidence{Hard: ev.Hard}
}

// Given returns n under evidence. Where likelihoods leave float64 beside the weights of their variables it is
// Spread; of and rest are the network and the evidence that the result is conditioned from. Errors: those of
// Condition.
func (n *Network) Given(ev factorgraph.Evidence) (of *Network, rest factorgraph.Evidence, conditioned *Network, err error) {
	conditioned, err = n.Condition(ev)
	if !errors.Is(err, ErrRange) {
		return n, ev, conditioned, err
	}
	of, rest = n.Spread(ev)
	conditioned, err = of.Condition(rest)
	return of, rest, conditioned, err
}

// joined returns the tensor of a variable with one more leg, which has its value.
func joined(legs []int, t tensor.Tensor, leg, dim int) ([]int, tensor.Tensor) {
	cp := *t.(*tensor.CP)
	cp.Shape = append(slices.Clone(cp.Shape), dim)
	cp.Vectors = append(slices.Clone(cp.Vectors), nil)
	return append(slices.Clone(legs), leg), &cp
}
