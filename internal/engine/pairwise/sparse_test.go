package pairwise_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/pairwise"
	"github.com/basetensor/basetensor/internal/oracle"
	"github.com/basetensor/basetensor/internal/sumproduct"
)

// TestSparseAgainstEnumeration:
// the sparse form of random expressions, with few and with many zeros, sliced or not.
func TestSparseAgainstEnumeration(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 8))
	for round := range 3000 {
		o := randomOptions{indices: 7, tables: 9, arity: 4, dim: 5 - round%3,
			zeros: float64(round%4) * 0.25, negative: round%2 == 1}
		e := randomExpression(rng, o)
		z, terms, _ := oracle.Sum(e, 0).Float64()
		tree := randomTree(rng, len(e.Tables))
		sliced := randomSlices(rng, e.Dims)
		got, _, err := pairwise.ContractSparse(context.Background(), e, tree,
			pairwise.Options{Slices: sliced})
		if err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
		if d := math.Abs(got.Float64() - z); !(d <= tolerance*terms) {
			t.Fatalf("seed %d, round %d: %v, want %v; dims %v, slices %v, tree %v, %v",
				seed, round, got.Float64(), z, e.Dims,
				sliced, tree, e.Hypergraph().Edges)
		}
	}
}

// TestSparseStaysWithinMemory:
// it ends as soon as the budget is reached, and finds the value with what it took.
func TestSparseStaysWithinMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	e, tree := chain(rng, 40, 30, 1)
	z, stats, err := pairwise.ContractSparse(context.Background(), e, tree, pairwise.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := pairwise.ContractSparse(context.Background(), e, tree,
		pairwise.Options{Memory: stats.PeakBytes})
	if err != nil || again != z {
		t.Errorf("%v, want %v; %v", again, z, err)
	}
	if _, _, err = pairwise.ContractSparse(context.Background(), e, tree,
		pairwise.Options{Memory: stats.PeakBytes - 1}); !errors.Is(err, sumproduct.ErrOverBudget) {
		t.Errorf("with a byte less: %v", err)
	}
	dense, _, err := pairwise.Contract(context.Background(), e, tree, pairwise.Options{})
	if err != nil || math.Abs(dense.Div(z).Float64()-1) > tolerance {
		t.Errorf("dense %v, sparse %v, %v", dense, z, err)
	}
}
