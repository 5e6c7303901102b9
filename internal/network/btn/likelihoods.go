package btn

// Likelihoods as tensors, apart from the weights of their variables.

import (
	"errors"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// WithLikelihoodTensors turns every likelihood of the evidence into a tensor of its own, which a new leg joins to its variable. It
// returns that network, and the evidence without the likelihoods. So no weight is multiplied by a likelihood, where the product may be
// rounded or leave float64. Each tensor is a core, or a link if the variables are the cores. The new tensors come last. The evidence has
// to be valid.
func (n *Network) WithLikelihoodTensors(ev factorgraph.Evidence) (*Network, factorgraph.Evidence) {
	if len(ev.Soft) == 0 {
		return n, ev
	}
	spread := *n
	spread.Directed = false // a likelihood is no conditional probability table
	spread.Dims, spread.Maps = slices.Clone(n.Dims), slices.Clone(n.Maps)
	spread.Cores, spread.Links = slices.Clone(n.Cores), slices.Clone(n.Links)
	for _, likelihood := range ev.Soft {
		// A new leg joins the likelihood to the variable.
		leg := len(spread.Dims)
		spread.Dims = append(spread.Dims, len(likelihood.Weights))
		if n.Maps != nil {
			spread.Maps = append(spread.Maps, Identity())
		}
		legs := []int{leg}
		likelihoodTensor := &tensor.Dense{Shape: []int{len(likelihood.Weights)}, Data: likelihood.Weights}
		link := &spread.Links[n.Variables[likelihood.Var].Link]
		isCoreOfVariable := n.Choice == query.CoresAreVariables && len(link.Legs) > 0
		if isCoreOfVariable {
			// The link has the weights only. Its one leg leads to the variable's core, which gets the new leg.
			spread.Links = append(spread.Links, Link{Legs: legs, T: likelihoodTensor})
			c := slices.IndexFunc(n.Cores, func(c Core) bool { return slices.Contains(c.Legs, link.Legs[0]) })
			spread.Cores[c].Legs, spread.Cores[c].T = withLeg(spread.Cores[c].Legs, spread.Cores[c].T, leg, len(likelihood.Weights))
			continue
		}

		// The variable's link gets the new leg.
		spread.Cores = append(spread.Cores, Core{Legs: legs, T: likelihoodTensor})
		spread.Likelihoods++ // the number of cores at the end that are no part of the model
		link.Legs, link.T = withLeg(link.Legs, link.T, leg, len(likelihood.Weights))
	}
	return &spread, factorgraph.Evidence{Hard: ev.Hard}
}

// UnderEvidence returns n conditioned on evidence, and from what: conditioned is base.Condition(remaining). As a rule base is n and
// remaining is ev. But if the product of a likelihood and the weights of its variable leaves the range of float64, likelihoods become
// tensors: base is n with a tensor for each likelihood, and remaining has the observations only (see WithLikelihoodTensors). Errors: those
// of Condition.
func (n *Network) UnderEvidence(ev factorgraph.Evidence) (
	base *Network, remaining factorgraph.Evidence, conditioned *Network, err error,
) {
	conditioned, err = n.Condition(ev)
	if !errors.Is(err, ErrRange) {
		return n, ev, conditioned, err
	}
	// ErrRange: a product left the range of float64. Without likelihoods in the evidence there are no products.
	base, remaining = n.WithLikelihoodTensors(ev)
	conditioned, err = base.Condition(remaining)
	return base, remaining, conditioned, err
}

// withLeg returns the legs and the tensor of a variable, in CP form with one term per value, with one more leg of the given dimension. Its
// index is the value of the variable.
func withLeg(legs []int, t tensor.Tensor, leg, dim int) ([]int, tensor.Tensor) {
	cp := *t.(*tensor.CP)
	cp.Shape = append(slices.Clone(cp.Shape), dim)
	cp.Vectors = append(slices.Clone(cp.Vectors), nil)
	return append(slices.Clone(legs), leg), &cp
}
