package pairwise_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/testing/oracle"
)

// TestMarginalsAgainstEnumeration: every marginal of random expressions,
// sliced or not, with much and with no memory to spare, at the cost that was planned.
func TestMarginalsAgainstEnumeration(t *testing.T) {
	const seed = 99
	rng := rand.New(rand.NewPCG(seed, 5))
	for round := range 4000 {
		o := randomOptions{indices: 7, tables: 9, arity: 4, dim: 5 - round%3,
			zeros: float64(round%4) * 0.2, negative: round%3 == 1}
		e := randomExpression(rng, o)
		z, terms, want := oracle.Sum(e, 0).Float64()
		tree := randomTree(rng, len(e.Tables))
		sliced := randomSlices(rng, e.Dims)
		plan, err := pairwise.PlanMarginals(e.Hypergraph(), tree, sliced, 1)
		if err != nil {
			t.Fatal(err)
		}
		memory := int64(1 << 30)
		if round%2 == 0 {
			memory = int64(plan.PeakBytes)
		}
		if plan, err = pairwise.PlanMarginals(e.Hypergraph(), tree, sliced, memory); err != nil {
			t.Fatal(err)
		}
		got, stats, err := pairwise.Marginals(context.Background(), e, tree,
			pairwise.Options{Slices: sliced, Memory: memory})
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		what := func() []any {
			return []any{seed, round, e.Dims, e.Hypergraph().Edges, tree.Merges, sliced}
		}
		if d := math.Abs(got.Z.Float64() - z); !(d <= tolerance*terms) {
			t.Fatalf("%v: Z %v, want %v", what(), got.Z.Float64(), z)
		}
		if z == 0 || math.Abs(z) < 1e-6*terms {
			if z == 0 && terms == 0 && got.Marginals != nil {
				t.Fatalf("%v: marginals of 0", what())
			}
			continue
		}
		for i := range want {
			for v := range want[i] {
				if d := math.Abs(got.Marginals[i][v]*z - want[i][v]); !(d <= tolerance*10*terms) {
					t.Fatalf("%v: P(%d = %d) is %v, want %v",
						what(), i, v, got.Marginals[i][v], want[i][v]/z)
				}
			}
		}
		if o.zeros == 0 && (stats.Flops != plan.Flops(plan.Slices) ||
			float64(stats.PeakBytes) != plan.PeakBytes) {
			t.Fatalf("%v: took %v flops, %d bytes, planned %+v",
				what(), stats.Flops, stats.PeakBytes, plan)
		}
	}
}
