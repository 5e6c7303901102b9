// Package cutset contracts slices of a sum of products of tables that are at least 0: the indices of a cut-set have values, and all others
// are summed out exactly, table by table. A slice that is drawn with a known probability is a component of a random decomposition
// whose weight varies less than a state's (Rao and Blackwell). Bidyuk and Dechter, Cutset sampling for Bayesian networks, 2007.
package cutset

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Choose divides an elimination order into indices that are summed out, the first rest of them, and indices of a cut-set, so that
// no product has more than so many entries: the next index to cut is always the one in most products that are too large. Both keep
// their sequence. ok is false where the scopes of all products have more than so many indices together. Cost: their number, and the
// indices times the cut. Source: Bidyuk and Dechter, On finding minimal w-cutset problem, 2004.
func Choose(h contractionorder.Hypergraph, order []int, entries float64, most int) (all []int, rest int, ok bool) {
	var scopes [][]int // of the products
	_ = contractionorder.WalkPlainly(context.Background(), h, order, func(s *contractionorder.Step) bool {
		scopes = append(scopes, slices.Concat(s.Sum, s.Out))
		most -= len(s.Sum) + len(s.Out)
		return most >= 0
	})
	if most < 0 {
		return nil, 0, false
	}
	ln := make([]float64, len(scopes)) // of the entries
	limit := math.Log(entries) + 1e-9
	in := make([][]int, len(h.Dims)) // products, by index
	wide := make([]int, len(h.Dims)) // number of them that are too large
	for k, scope := range scopes {
		for _, i := range scope {
			in[i] = append(in[i], k)
			ln[k] += math.Log(float64(h.Dims[i]))
		}
		if ln[k] > limit {
			for _, i := range scope {
				wide[i]++
			}
		}
	}
	cut := make([]bool, len(h.Dims))
	for {
		best := 0
		for i := range wide {
			if wide[i] > wide[best] {
				best = i
			}
		}
		if len(wide) == 0 || wide[best] == 0 {
			break
		}
		cut[best] = true
		for _, k := range in[best] {
			before := ln[k]
			if ln[k] -= math.Log(float64(h.Dims[best])); before > limit && ln[k] <= limit {
				for _, i := range scopes[k] {
					if !cut[i] {
						wide[i]--
					}
				}
			}
		}
		wide[best] = 0
	}
	for _, i := range order {
		if !cut[i] {
			all = append(all, i)
		}
	}
	rest = len(all)
	for _, i := range order {
		if cut[i] {
			all = append(all, i)
		}
	}
	return all, rest, true
}
