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

// Choose divides an elimination order into indices that are summed out, the first rest of them in all, and indices of a cut-set, so that no
// product has more than that many entries. Both keep their sequence. The next index to cut is always the one in most products that are too
// large. ok is false if the scopes of all products have more than most indices together. Cost: that number, and the indices times the cut.
// Source: Bidyuk and Dechter, On finding minimal w-cutset problem, 2004.
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
	isCut := chooseCut(h, scopes, math.Log(entries)+1e-9)
	for _, i := range order {
		if !isCut[i] {
			all = append(all, i)
		}
	}
	rest = len(all)
	for _, i := range order {
		if isCut[i] {
			all = append(all, i)
		}
	}
	return all, rest, true
}

// chooseCut returns by index whether it is cut, so that ln of the entries of no product exceeds the limit. scopes are those of the
// products.
func chooseCut(h contractionorder.Hypergraph, scopes [][]int, limit float64) (isCut []bool) {
	lnEntries := make([]float64, len(scopes)) // by product
	products := make([][]int, len(h.Dims))    // by index: those that have it
	largeCount := make([]int, len(h.Dims))    // by index: number of its products that are too large
	for k, scope := range scopes {
		for _, i := range scope {
			products[i] = append(products[i], k)
			lnEntries[k] += math.Log(float64(h.Dims[i]))
		}
		if lnEntries[k] > limit {
			for _, i := range scope {
				largeCount[i]++
			}
		}
	}
	isCut = make([]bool, len(h.Dims))
	for {
		next := 0
		for i := range largeCount {
			if largeCount[i] > largeCount[next] {
				next = i
			}
		}
		if len(largeCount) == 0 || largeCount[next] == 0 {
			return isCut
		}
		isCut[next] = true
		for _, k := range products[next] {
			before := lnEntries[k]
			if lnEntries[k] -= math.Log(float64(h.Dims[next])); before > limit && lnEntries[k] <= limit {
				for _, i := range scopes[k] {
					if !isCut[i] {
						largeCount[i]--
					}
				}
			}
		}
		largeCount[next] = 0
	}
}
