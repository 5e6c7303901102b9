package btn

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Summed returns n without the terms of CP cores that vanish because a variable that only this core has is summed out. Term i of a
// core gets the weight
//
//	α_i = 0  if  Σ_x w(x) u_i(x) = 0
//
// to the last bit, for the term's vector u_i on the leg of such a variable with the weights w. Z and the numbers of all legs stay. The
// marginals of such variables change. It returns n itself if no term vanishes. Example: a noisy-or with
// an unobserved effect keeps one term, a product of tables over one variable.
// Cost: one pass over cores, links, and the vectors of such variables.
func (n *Network) Summed() *Network {
	// hasOneLeg reports whether only one core has the variable, and without a map.
	hasOneLeg := func(v Variable) bool {
		w, ok := n.Links[v.Link].T.(*tensor.CP)
		return ok && len(n.Links[v.Link].Legs) == 1 && w.Vectors[0] == nil
	}
	if !slices.ContainsFunc(n.Variables, hasOneLeg) {
		return n
	}
	modeOfLeg := make([]coreMode, len(n.Dims))
	for c := range n.Cores {
		for k, leg := range n.Cores[c].Legs {
			modeOfLeg[leg] = coreMode{c, k}
		}
	}

	summed := n
	for _, v := range n.Variables {
		if !hasOneLeg(v) {
			continue
		}
		link := n.Links[v.Link]
		at := modeOfLeg[link.Legs[0]]
		core, ok := summed.Cores[at.core].T.(*tensor.CP)
		if !ok {
			continue
		}
		if reduced, ok := dropVanishingTerms(core, at.mode, link.T.(*tensor.CP).Weights); ok {
			if summed == n {
				clone := *n
				summed = &clone
				summed.Directed = false
				summed.Cores = slices.Clone(n.Cores)
			}
			summed.Cores[at.core].T = reduced
		}
	}
	return summed
}

// coreMode is a mode of a core.
type coreMode struct{ core, mode int }

// dropVanishingTerms returns t with the weight 0 for each term whose vector on a mode has the sum 0 under the weights w. ok is false if no
// term vanishes, or if all do.
func dropVanishingTerms(t *tensor.CP, mode int, w []float64) (reduced *tensor.CP, ok bool) {
	vectors := t.Vectors[mode]
	if vectors == nil { // unit vectors: term i is 1 for value i only
		return nil, false
	}
	scaledWeights := scaledNumbers(w)
	coefficients := slices.Clone(t.Weights)
	hasVanishing, hasRemaining := false, false
	for i, alpha := range coefficients {
		if alpha == 0 {
			continue
		}
		if scaled.SumProducts(scaledWeights, scaledNumbers(vectors[i*len(w):(i+1)*len(w)])).IsZero() {
			coefficients[i] = 0
			hasVanishing = true
		} else {
			hasRemaining = true
		}
	}
	if !hasVanishing || !hasRemaining {
		return nil, false
	}
	out := *t
	out.Weights = coefficients
	return &out, true
}

// scaledNumbers returns a list as scaled numbers.
func scaledNumbers(list []float64) []scaled.Number {
	out := make([]scaled.Number, len(list))
	for i, x := range list {
		out[i] = scaled.FromFloat(x)
	}
	return out
}
