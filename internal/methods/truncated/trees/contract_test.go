package trees_test

// Expressions and plans for tests.

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// random draws an expression; tables have up to three indices, a few in many tables, a few in none.
func random(rng *rand.Rand, indices, tables int, negative bool) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.FromFloat(1 + rng.Float64())}
	for range indices {
		e.Dims = append(e.Dims, 1+rng.IntN(3))
	}
	for range tables {
		scope := rng.Perm(indices)[:min(indices, rng.IntN(4))]
		e.Tables = append(e.Tables, table(rng, e.Dims, scope, negative))
	}
	return e
}

func table(rng *rand.Rand, dims, scope []int, negative bool) sumproduct.Table {
	size := 1
	for _, i := range scope {
		size *= dims[i]
	}
	data := make([]float64, size)
	for k := range data {
		data[k] = math.Exp(rng.NormFloat64())
		if negative && rng.IntN(3) == 0 {
			data[k] = -data[k]
		}
	}
	return sumproduct.Table{Scope: scope, Data: data}
}

// plans are an exact tree and some random ones.
func plans(t *testing.T, h contractionorder.Hypergraph, bond int, seed uint64) []trees.Plan {
	t.Helper()
	p, cost, err := trees.Search(context.Background(), h, trees.SearchOptions{Bond: 1 << 20, Seed: seed})
	if err != nil || cost.Loss != 0 {
		t.Fatalf("seed %d: loss %v, %v", seed, cost.Loss, err)
	}
	more := trees.Attempts(h, bond, seed, 6)
	if len(more) < 6 {
		t.Fatalf("seed %d: %d of 6 random trees", seed, len(more))
	}
	return append(more, p)
}
