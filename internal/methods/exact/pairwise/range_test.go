package pairwise_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestMarginalsOfEntriesFarApart:
// every number not reported as lost is right, Z and every share of it, by both ways to
// contract.
func TestMarginalsOfEntriesFarApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	type count struct{ sure, lost int }
	var steps, merges count
	for round := range 6000 {
		e := &sumproduct.Expression{Scale: scaled.One}
		for range 3 + rng.IntN(4) {
			e.Dims = append(e.Dims, 2+rng.IntN(2))
		}
		width := float64(20 + rng.IntN(330))
		for range len(e.Dims) + rng.IntN(4) {
			scope := rng.Perm(len(e.Dims))[:1+rng.IntN(3)]
			size := 1
			for _, i := range scope {
				size *= e.Dims[i]
			}
			data := make([]float64, size)
			for k := range data {
				if rng.IntN(6) > 0 {
					data[k] = math.Ldexp(1+rng.Float64(),
						int(max(-1000, min(1000, rng.NormFloat64()*width))))
				}
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
		}
		sums := oracle.Sum(e, 200)
		want, shares := sums.Z, sums.Marginals()
		judge := func(
			what string, c *count, z scaled.Number, share func(i, v int) float64,
			lost bool, err error,
		) {
			switch {
			case err != nil:
				t.Fatalf("round %d, %s: %v", round, what, err)
			case lost:
				c.lost++
				return
			}
			c.sure++
			if z.IsZero() != (want.Sign() == 0) {
				t.Fatalf("round %d, %s: Z = %v, it is %v", round, what, z, want)
			}
			if z.IsZero() {
				return
			}
			for i := range shares {
				for v, p := range shares[i] {
					if got := share(i, v); !(math.Abs(got-p) < 1e-12) {
						t.Fatalf("round %d, %s: P(%d = %d) = %v, it is %v",
							round, what, i, v, got, p)
					}
				}
			}
		}
		order := rng.Perm(len(e.Dims))
		r, s, err := einsum.Marginals(context.Background(), e, order, einsum.Options{})
		judge("steps", &steps, r.Z,
			func(i, v int) float64 { return r.Marginals[i][v].Div(r.Z).Float64() }, s.Lost, err)
		tree, sliced := randomTree(rng, len(e.Tables)), randomSlices(rng, e.Dims)
		p, ps, err := pairwise.Marginals(context.Background(), e, tree,
			pairwise.Options{Slices: sliced})
		judge("merges", &merges, p.Z, func(i, v int) float64 { return p.Marginals[i][v] }, ps.Lost,
			err)
	}
	for _, c := range []count{steps, merges} {
		if c.sure < 1000 || c.lost < 500 {
			t.Errorf("sure of %d, lost %d", c.sure, c.lost)
		}
	}
	t.Logf("steps %+v, merges %+v", steps, merges)
}
