package pairwise_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/oracle"
)

// tolerance is relative to the sum of the absolute values of all terms.
const tolerance = 1e-12

// TestContractAgainstEnumeration:
// random expressions along random trees, sliced and not, whole and in two ranges.
func TestContractAgainstEnumeration(t *testing.T) {
	const seed = 311
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range 4000 {
		o := randomOptions{indices: 7, tables: 9, arity: 4, dim: 5 - round%3,
			zeros: float64(round%4) * 0.2, negative: round%2 == 1}
		e := randomExpression(rng, o)
		z, terms, _ := oracle.Sum(e, 0).Float64()
		tree := randomTree(rng, len(e.Tables))
		sliced := randomSlices(rng, e.Dims)
		plan, err := pairwise.Plan(e.Hypergraph(), tree, sliced)
		if err != nil {
			t.Fatal(err)
		}
		got, stats, err := pairwise.Contract(context.Background(), e, tree,
			pairwise.Options{Slices: sliced, Threads: 1})
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		if d := math.Abs(got.Float64() - z); !(d <= tolerance*terms) {
			t.Fatalf("seed %d, round %d: %v, want %v; dims %v, slices %v, tree %v, %v",
				seed, round, got.Float64(), z, e.Dims,
				sliced, tree, e.Hypergraph().Edges)
		}
		if z != 0 && o.zeros == 0 &&
			(stats.Flops != plan.Flops(plan.Slices) || float64(stats.PeakBytes) != plan.PeakBytes) {
			t.Fatalf("seed %d, round %d: took %v flops, %d bytes, planned %+v",
				seed, round, stats.Flops, stats.PeakBytes, plan)
		}
		memory := int64(plan.PeakBytes) * (1 + rng.Int64N(4))
		again, wide, err := pairwise.Contract(context.Background(), e, tree,
			pairwise.Options{Slices: sliced, Threads: 4, Memory: memory})
		if err != nil || again != got || wide.Flops != stats.Flops || wide.Slices != stats.Slices ||
			wide.PeakBytes > memory {
			t.Fatalf("seed %d, round %d: 4 threads give %v and %+v within %d bytes, one %v and "+
				"%+v; %v", seed, round, again,
				wide, memory, got, stats, err)
		}
		tight, err := pairwise.PlanWithin(e.Hypergraph(), tree, sliced, 1)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := contractionorder.EvaluateTree(e.Hypergraph(), tree, sliced)
		// one tensor alone: its copy is not in contractionorder's figure
		if err != nil || tight.PeakBytes > cost.PeakBytes && len(e.Tables) > 1 {
			t.Fatalf("seed %d, round %d: at least %v bytes, contractionorder has %v; %v",
				seed, round, tight.PeakBytes, cost.PeakBytes, err)
		}
		again, wide, err = pairwise.Contract(context.Background(), e, tree,
			pairwise.Options{Slices: sliced, Threads: 1, Memory: int64(tight.PeakBytes)})
		if err != nil || math.Abs(again.Sub(got).Float64()) > tolerance*terms {
			t.Fatalf("seed %d, round %d: %v within %v bytes, want %v; %v",
				seed, round, again, tight.PeakBytes, got, err)
		}
		if tight, err = pairwise.PlanWithin(e.Hypergraph(), tree, sliced,
			int64(tight.PeakBytes)); err != nil {
			t.Fatal(err)
		}
		if z != 0 && o.zeros == 0 &&
			(wide.Flops != tight.Flops(tight.Slices) ||
				float64(wide.PeakBytes) != tight.PeakBytes) {
			t.Fatalf("seed %d, round %d: took %v flops, %d bytes, planned %+v",
				seed, round, wide.Flops, wide.PeakBytes, tight)
		}
		if half := int64(plan.Slices) / 2; half > 0 {
			a, _, err := pairwise.Contract(context.Background(), e, tree,
				pairwise.Options{Slices: sliced, To: half})
			if err != nil {
				t.Fatal(err)
			}
			b, _, err := pairwise.Contract(context.Background(), e, tree,
				pairwise.Options{Slices: sliced, From: half, To: int64(plan.Slices)})
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(a.Add(b).Float64() - z); !(d <= tolerance*terms) {
				t.Fatalf("seed %d, round %d: two ranges give %v, want %v",
					seed, round, a.Add(b).Float64(), z)
			}
		}
	}
}
