package compressed_test

// Z against enumeration and against exact contraction, for every way to plan.

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/compressed"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// random draws an expression; tables have up to three indices, some of which are in many tables, some in none.
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

// enumerate returns Z and the sums over the terms with each value of each index, and Σ |terms|.
func enumerate(e *sumproduct.Expression) (z, size float64, sums [][]float64) {
	sums = make([][]float64, len(e.Dims))
	for i, d := range e.Dims {
		sums[i] = make([]float64, d)
	}
	x := make([]int, len(e.Dims))
	for {
		v := e.Scale.Float64()
		for _, t := range e.Tables {
			at := 0
			for _, i := range t.Scope {
				at = at*e.Dims[i] + x[i]
			}
			v *= t.Data[at]
		}
		z += v
		size += math.Abs(v)
		for i := range x {
			sums[i][x[i]] += v
		}
		i := len(x) - 1
		for ; i >= 0; i-- {
			if x[i]++; x[i] < e.Dims[i] {
				break
			}
			x[i] = 0
		}
		if i < 0 {
			return z, size, sums
		}
	}
}

// plans are an exact tree and some random ones.
func plans(t *testing.T, h contractionorder.Hypergraph, bond int, seed uint64) []compressed.Plan {
	t.Helper()
	p, cost, err := compressed.Search(context.Background(), h, compressed.SearchOptions{Bond: 1 << 20, Seed: seed})
	if err != nil || cost.Loss != 0 {
		t.Fatalf("seed %d: loss %v, %v", seed, cost.Loss, err)
	}
	more := compressed.Attempts(h, bond, seed, 6)
	if len(more) < 6 {
		t.Fatalf("seed %d: %d of 6 random trees", seed, len(more))
	}
	return append(more, p)
}

func TestRandomExpressionsAgainstEnumeration(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		e := random(rng, rng.IntN(9), rng.IntN(14), seed%3 == 0)
		want, size, sums := enumerate(e)
		for k, p := range plans(t, e.Hypergraph(), 4, seed) {
			got, err := compressed.Contract(context.Background(), e, p, compressed.Options{Bond: 1 << 20, Marginals: true})
			if err != nil {
				t.Fatalf("seed %d, plan %d: %v", seed, k, err)
			}
			if d := math.Abs(got.Z.Float64() - want); !(d <= 1e-12*size) || got.Truncated {
				t.Fatalf("seed %d, plan %d: Z = %v, enumeration gives %v", seed, k, got.Z.Float64(), want)
			}
			if math.Abs(want) < 1e-3*size {
				continue
			}
			for i := range sums {
				for v, s := range sums[i] {
					if d := math.Abs(got.Marginals[i][v] - s/want); !(d <= 1e-9) {
						t.Fatalf("seed %d, plan %d: P(%d = %d) = %v, enumeration gives %v", seed, k, i, v, got.Marginals[i][v], s/want)
					}
				}
			}
		}
	}
}
