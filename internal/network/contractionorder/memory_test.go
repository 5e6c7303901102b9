package contractionorder_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// tree is the hypergraph of a random tree of variables with two values: a table per edge and per variable.
func tree(n int) contractionorder.Hypergraph {
	rng := rand.New(rand.NewPCG(7, 7))
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, n)}
	for v := range n {
		h.Edges = append(h.Edges, []int{v})
		if v > 0 {
			h.Edges = append(h.Edges, []int{rng.IntN(v), v})
		}
	}
	return h
}

// TestPriceOfATreeInLittleMemory: the price of an order takes some bytes an index and no allocation for each.
func TestPriceOfATreeInLittleMemory(t *testing.T) {
	const n = 100000
	h := tree(n)
	order := orders.MinFill(h)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cost := orders.Evaluate(h, order)
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / n; bytes > 300 {
		t.Errorf("%d bytes an index", bytes)
	}
	if allocations := after.Mallocs - before.Mallocs; allocations > n/10 {
		t.Errorf("%d allocations for %d indices", allocations, n)
	}
	if cost.Width != 1 || cost.Flops > 16*n {
		t.Errorf("%+v", cost)
	}
}
