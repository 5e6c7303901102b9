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

// Choose chooses a cut-set, so that no product along an elimination order of the other indices has more than the given number of entries.
// It returns the order with the indices of the cut-set moved to the end: the first rest of them are summed out. ok is false if the scopes
// of all products have more than maxWork indices together. Cost: that number, and the number of indices times the size of the cut-set.
// Source: Bidyuk and Dechter, On finding minimal w-cutset problem, 2004.
func Choose(h contractionorder.Hypergraph, order []int, entries float64, maxWork int) (newOrder []int, rest int, ok bool) {
	var scopes [][]int   // the indices of every product
	remaining := maxWork // indices of scopes
	// The walk visits the steps of the order, until the function returns false. Its error is that of a context, which does not end here.
	_ = contractionorder.WalkPlainly(context.Background(), h, order, func(s *contractionorder.Step) bool {
		scopes = append(scopes, slices.Concat(s.Sum, s.Out))
		remaining -= len(s.Sum) + len(s.Out)
		return remaining >= 0
	})
	if remaining < 0 {
		return nil, 0, false
	}

	isCut := chooseCut(h, scopes, math.Log(entries)+1e-9) // 1e-9 for the rounding of logarithms
	for _, i := range order {
		if !isCut[i] {
			newOrder = append(newOrder, i)
		}
	}
	rest = len(newOrder)
	for _, i := range order {
		if isCut[i] {
			newOrder = append(newOrder, i)
		}
	}
	return newOrder, rest, true
}

// chooseCut returns for every index whether it is in the cut-set. scopes are the indices of products. Cut indices do not count in the
// number of entries of a product. A product is too large if ln of that number exceeds the limit. As long as there are such products,
// chooseCut cuts the index that is in most of them.
func chooseCut(h contractionorder.Hypergraph, scopes [][]int, limit float64) (isCut []bool) {
	c := &cutChoice{
		dims: h.Dims, scopes: scopes, limit: limit, lnEntries: make([]float64, len(scopes)),
		products: make([][]int, len(h.Dims)), largeCount: make([]int, len(h.Dims)), isCut: make([]bool, len(h.Dims)),
	}
	for k, scope := range scopes {
		for _, i := range scope {
			c.products[i] = append(c.products[i], k)
			c.lnEntries[k] += math.Log(float64(h.Dims[i]))
		}
		if c.lnEntries[k] > limit {
			for _, i := range scope {
				c.largeCount[i]++
			}
		}
	}
	for len(c.largeCount) > 0 {
		next := 0 // the index in most products that are too large
		for i := range c.largeCount {
			if c.largeCount[i] > c.largeCount[next] {
				next = i
			}
		}
		if c.largeCount[next] == 0 { // no product is too large
			break
		}
		c.cut(next)
	}
	return c.isCut
}

// cutChoice is the cut-set so far, and what it leaves of the products.
type cutChoice struct {
	dims       []int
	scopes     [][]int // by product
	limit      float64
	lnEntries  []float64 // by product, without the indices that are cut
	products   [][]int   // by index: those that have it
	largeCount []int     // by index: number of its products whose lnEntries are above the limit; 0 if it is cut
	isCut      []bool
}

// cut adds an index to the cut-set. A product is a table that is summed; those with the index have fewer entries then. largeCount is, by
// index, the number of products with the index that are too large. If a product is not too large any more, the counts of its other indices
// fall by 1.
func (c *cutChoice) cut(index int) {
	c.isCut[index] = true
	for _, k := range c.products[index] {
		wasTooLarge := c.lnEntries[k] > c.limit
		c.lnEntries[k] -= math.Log(float64(c.dims[index]))
		if wasTooLarge && c.lnEntries[k] <= c.limit {
			for _, i := range c.scopes[k] {
				if !c.isCut[i] {
					c.largeCount[i]--
				}
			}
		}
	}
	c.largeCount[index] = 0 // it is not chosen again
}
