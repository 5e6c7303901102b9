package btn

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// WithoutVanishingTerms returns n without the terms of CP cores that vanish in Z, because a variable that only one core has is summed out.
// Let u_i be the vector of term i of the core on the leg of such a variable, and w the weights of the variable. The term gets the weight
//
//	α_i = 0  if  Σ_x w(x) u_i(x) = 0
//
// to the last bit. Z and the numbers of all legs stay. The marginals of such variables change. It returns n itself if no term vanishes; a
// core all of whose terms vanish stays as it is. Example: a noisy-or with an unobserved effect keeps one term, a product of tables over
// one variable. Cost: one pass over cores, links, and the vectors of such variables.
func (n *Network) WithoutVanishingTerms() *Network {
	// isInOneCore reports whether only one core has the variable, and without a map: the vectors of its link are unit vectors (nil).
	isInOneCore := func(v Variable) bool {
		cp, isCP := n.Links[v.Link].T.(*tensor.CP)
		return isCP && len(n.Links[v.Link].Legs) == 1 && cp.Vectors[0] == nil
	}
	if !slices.ContainsFunc(n.Variables, isInOneCore) {
		return n
	}
	modeOfLeg := make([]coreMode, len(n.Dims))
	for c := range n.Cores {
		for k, leg := range n.Cores[c].Legs {
			modeOfLeg[leg] = coreMode{c, k}
		}
	}

	summed := *n
	summed.Cores = slices.Clone(n.Cores)
	hasChanged := false
	for _, v := range n.Variables {
		if !isInOneCore(v) {
			continue
		}
		link := n.Links[v.Link]
		position := modeOfLeg[link.Legs[0]]
		core, isCP := summed.Cores[position.core].T.(*tensor.CP)
		if !isCP {
			continue
		}
		if reduced, hasVanishing := withoutVanishingTerms(core, position.mode, link.T.(*tensor.CP).Weights); hasVanishing {
			summed.Cores[position.core].T = reduced
			hasChanged = true
		}
	}
	if !hasChanged {
		return n
	}
	summed.Directed = false // a changed core is no conditional probability table any more
	return &summed
}

// coreMode is a mode of a core: the number of the core, and the position of the mode.
type coreMode struct{ core, mode int }

// withoutVanishingTerms returns t with the weight 0 for each term i that vanishes: Σ_x w(x) u_i(x) = 0, where u_i is the term's vector on a
// mode. ok is false if no term vanishes, or if all do.
func withoutVanishingTerms(t *tensor.CP, mode int, w []float64) (reduced *tensor.CP, ok bool) {
	vectors := t.Vectors[mode]
	if vectors == nil { // unit vectors: term i is 1 for value i only
		return nil, false
	}
	scaledW := scaledNumbers(w)
	coefficients := slices.Clone(t.Weights)
	hasVanishing, hasRemaining := false, false
	for i, alpha := range coefficients {
		if alpha == 0 {
			continue
		}
		vector := scaledNumbers(vectors[i*len(w) : (i+1)*len(w)])
		if scaled.SumProducts(scaledW, vector).IsZero() {
			coefficients[i] = 0
			hasVanishing = true
		} else {
			hasRemaining = true
		}
	}
	if !hasVanishing || !hasRemaining {
		return nil, false
	}
	withZeros := *t
	withZeros.Weights = coefficients
	return &withZeros, true
}

// scaledNumbers returns the numbers of a list as scaled numbers.
func scaledNumbers(list []float64) []scaled.Number {
	numbers := make([]scaled.Number, len(list))
	for i, x := range list {
		numbers[i] = scaled.FromFloat(x)
	}
	return numbers
}
