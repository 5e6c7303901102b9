package btn

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Summed returns n without the terms of CP cores that vanish when a variable of that core alone is
// summed out:
//
//	α_i = 0  where  Σ_x w(x) u_i(x) = 0,
//
// to the last bit. Z and every index stay the same; marginals of such variables do not. A noisy-or with
// an unobserved effect keeps one term, a product of tables over one variable.
// Cost: one pass over cores, links, and the vectors of such variables.
func (n *Network) Summed() *Network {
	alone := func(v Variable) bool {
		w, ok := n.Links[v.Link].T.(*tensor.CP)
		return ok && len(n.Links[v.Link].Legs) == 1 && w.Vectors[0] == nil
	}
	if !slices.ContainsFunc(n.Variables, alone) {
		return n
	}
	at := make([]place, len(n.Dims)) // of every leg in its core
	for c := range n.Cores {
		for k, leg := range n.Cores[c].Legs {
			at[leg] = place{c, k}
		}
	}

	out := n
	for _, v := range n.Variables {
		if !alone(v) {
			continue
		}
		link := n.Links[v.Link]
		of := at[link.Legs[0]]
		core, ok := out.Cores[of.core].T.(*tensor.CP)
		if !ok {
			continue
		}
		if left := withoutVanishing(core, of.mode, link.T.(*tensor.CP).Weights); left != nil {
			if out == n {
				own := *n
				out = &own
				out.Directed = false
				out.Cores = slices.Clone(n.Cores)
			}
			out.Cores[of.core].T = left
		}
	}
	return out
}

// place is a mode of a core.
type place struct{ core, mode int }

// withoutVanishing returns t with the weight 0 for terms whose sum over a mode is 0; nil where there
// are none, or no others.
func withoutVanishing(t *tensor.CP, mode int, w []float64) *tensor.CP {
	vectors := t.Vectors[mode]
	if vectors == nil {
		return nil
	}
	by := numbers(w)
	left := slices.Clone(t.Weights)
	some, others := false, false
	for i, alpha := range left {
		if alpha == 0 {
			continue
		}
		if scaled.SumProducts(by, numbers(vectors[i*len(w):(i+1)*len(w)])).IsZero() {
			left[i] = 0
			some = true
		} else {
			others = true
		}
	}
	if !some || !others {
		return nil
	}
	out := *t
	out.Weights = left
	return &out
}

// numbers returns a list as scaled numbers.
func numbers(list []float64) []scaled.Number {
	out := make([]scaled.Number, len(list))
	for i, x := range list {
		out[i] = scaled.FromFloat(x)
	}
	return out
}
