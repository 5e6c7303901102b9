package pairwise_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// chainOfTwo is two large tables, the first over batch, sum and own indices, and vectors that
// make every entry of their product count: Z = Σ_out w[out] Σ_k A·B with w a product of vectors.
func chainOfTwo(rng *rand.Rand) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	shapes := [][]int{{2}, {3}, {5}, {2, 2}, {2, 2, 2, 2}, {7, 3}, {40}, {3, 30},
		{2, 2, 2, 2, 2, 2, 2}, {300}, {1100}}
	var group [4][]int // batch, m, n, k
	size := 1
	for g := range group {
		if rng.IntN(4) == 0 {
			continue
		}
		dims := shapes[rng.IntN(len(shapes))]
		for _, d := range dims {
			if size*d > 1<<19 {
				break
			}
			size *= d
			group[g] = append(group[g], len(e.Dims))
			e.Dims = append(e.Dims, d)
		}
	}
	table := func(groups ...[]int) {
		var scope []int
		n := 1
		for _, g := range groups {
			for _, i := range g {
				scope = append(scope, i)
				n *= e.Dims[i]
			}
		}
		rng.Shuffle(len(scope), func(i, j int) { scope[i], scope[j] = scope[j], scope[i] })
		data := make([]float64, n)
		for i := range data {
			data[i] = rng.Float64() - 0.3
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	table(group[0], group[1], group[3])
	table(group[0], group[2], group[3])
	for _, g := range group[:3] {
		for _, i := range g {
			table([]int{i})
		}
	}
	return e
}

// TestKernelsAgainstLoops merges two large tables of random shapes and layouts first, so that all
// kernels have their turn, and compares with one loop over everything; and the bits for 1, 2 and 5
// threads with each other.
func TestKernelsAgainstLoops(t *testing.T) {
	const seed = 17
	rng := rand.New(rand.NewPCG(seed, 3))
	for round := range nightly.Rounds(60, 300) {
		e := chainOfTwo(rng)
		tree := contractionorder.Tree{Leaves: len(e.Tables)}
		for k := range e.Tables[1:] {
			m := [2]int{len(e.Tables) + k - 1, k + 1}
			if k == 0 {
				m = [2]int{rng.IntN(2), 0}
				m[1] = 1 - m[0]
			}
			tree.Merges = append(tree.Merges, m)
		}
		z, terms, _ := oracle.Sum(e, 0).Float64()
		var first scaled.Number
		for _, threads := range []int{1, 2, 5} {
			got, _, err := pairwise.Contract(context.Background(), e, tree,
				pairwise.Options{Threads: threads})
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(got.Float64() - z); !(d <= tolerance*terms) {
				t.Fatalf("seed %d, round %d, %d threads: %v, want %v (%v)",
					seed, round, threads, got.Float64(), z, e.Hypergraph())
			}
			if threads == 1 {
				first = got
			} else if got != first {
				t.Fatalf("seed %d, round %d: %v with %d threads, %v with one",
					seed, round, got, threads, first)
			}
		}
	}
}

// TestCancelledWithinAMerge: one merge of some seconds, a single task, ends soon after its context does.
func TestCancelledWithinAMerge(t *testing.T) {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{1 << 18, 50, 50}}
	for i := range 2 {
		data := slices.Repeat([]float64{1}, e.Dims[0]*50)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0, i + 1}, Data: data})
	}
	for i := range 2 {
		data := slices.Repeat([]float64{1}, 50)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i + 1}, Data: data})
	}
	ctx, cancel := context.WithCancel(context.Background())
	polls := &polled{Context: ctx, after: 40, cancel: cancel}
	tree := contractionorder.Tree{Leaves: 4, Merges: [][2]int{{0, 1}, {4, 2}, {5, 3}}}
	_, stats, err := pairwise.Contract(polls, e, tree, pairwise.Options{Threads: 1})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if polls.count > 100 {
		t.Errorf("the context was asked %d times before the end (%+v)", polls.count, stats)
	}
}

// polled is a context that ends when it has been asked some times.
type polled struct {
	context.Context
	count, after int
	cancel       func()
}

func (p *polled) Err() error {
	if p.count++; p.count == p.after {
		p.cancel()
	}
	return p.Context.Err()
}
