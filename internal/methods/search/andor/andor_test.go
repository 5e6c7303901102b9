package andor

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/minibuckets"
)

// drawNetwork draws a small network: ties, forbidden combinations, wild and negative costs, variables of one value and of no function.
func drawNetwork(rng *rand.Rand) (dims []int, functions []minibuckets.Costs) {
	size := 1
	for range 1 + rng.IntN(9) {
		d := 1 + rng.IntN(4)
		if size*d > 2000 {
			d = 1
		}
		size *= d
		dims = append(dims, d)
	}
	kind, forbidden := rng.IntN(4), []float64{0, 0, 0.1, 0.3}[rng.IntN(4)]
	for range rng.IntN(2*len(dims) + 2) {
		f := minibuckets.Costs{Scope: rng.Perm(len(dims))[:rng.IntN(min(len(dims), 4)+1)]}
		size := 1
		for _, v := range f.Scope {
			size *= dims[v]
		}
		for range size {
			x := []int64{rng.Int64N(3), rng.Int64N(1000), rng.Int64N(2001) - 1000, int64(math.Exp(30 * rng.Float64()))}[kind]
			if rng.Float64() < forbidden {
				x = minibuckets.Forbidden
			}
			f.Values = append(f.Values, x)
		}
		functions = append(functions, f)
	}
	return dims, functions
}

// cost returns the cost of an assignment, Forbidden if a function forbids it.
func cost(dims []int, functions []minibuckets.Costs, values []int) (sum int64) {
	for _, f := range functions {
		at := 0
		for _, v := range f.Scope {
			at = at*dims[v] + values[v]
		}
		if f.Values[at] >= minibuckets.Forbidden {
			return minibuckets.Forbidden
		}
		sum += f.Values[at]
	}
	return sum
}

// leastCost returns the least cost of all assignments.
func leastCost(dims []int, functions []minibuckets.Costs) int64 {
	least := int64(minibuckets.Forbidden)
	values := make([]int, len(dims))
	for {
		least = min(least, cost(dims, functions, values))
		v := 0
		for ; v < len(dims); v++ {
			if values[v]++; values[v] < dims[v] {
				break
			}
			values[v] = 0
		}
		if v == len(dims) {
			return least
		}
	}
}

// TestEqualToEnumeration: the least cost is that of enumeration, with products of all sizes, memories of some entries, and parts of little
// work; no bound is above it.
func TestEqualToEnumeration(t *testing.T) {
	ctx := context.Background()
	searched, parts := int64(0), 0
	for seed := range uint64(6000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		dims, functions := drawNetwork(rng)
		want := leastCost(dims, functions)
		s, err := New(ctx, dims, functions, []int64{1 << 15, 1 << 17, 1 << 20}[rng.IntN(3)], 1<<30)
		if err != nil || s == nil {
			t.Fatal(err)
		}
		below := min(minibuckets.Forbidden/4, []int64{want + 1, want, want + 500, minibuckets.Forbidden}[rng.IntN(4)])
		work := []int64{1 << 30, 200, 2000}[rng.IntN(3)]
		var found []int
		for tables := 1; ; tables *= 4 {
			before := s.Bound
			wider, err := s.WidenMiniBuckets(ctx, int64(tables))
			if err != nil {
				t.Fatal(err)
			}
			if s.Bound > want || s.Bound < before {
				t.Fatalf("seed %d: bound %d of mini-buckets, before %d, the least cost is %d", seed, s.Bound, before, want)
			}
			if tables < 1<<20 && !s.hasMiniBuckets {
				continue
			} else if !s.hasMiniBuckets {
				t.Fatalf("seed %d: no mini-buckets", seed)
			}
			if values := s.GreedyAssignment(); wider && cost(dims, functions, values) < want {
				t.Fatalf("seed %d: a dive costs less than the least", seed)
			}
			found = s.Solve(ctx, below, work)
			parts++
			if s.Bound > want && (s.Bound > below || want < below) {
				t.Fatalf("seed %d: bound %d, the least cost is %d, below %d", seed, s.Bound, want, below)
			}
			if found != nil || s.Bound >= below {
				break
			}
			work *= 2
		}
		switch {
		case (found != nil) != (want < below):
			t.Fatalf("seed %d: found %v below %d, the least cost is %d", seed, found, below, want)
		case found != nil && (cost(dims, functions, found) != want || s.Bound != want):
			t.Fatalf("seed %d: found %d, bound %d, the least cost is %d", seed, cost(dims, functions, found), s.Bound, want)
		}
		searched += s.Nodes
	}
	if searched < 40000 || parts < 6500 {
		t.Errorf("%d nodes, %d parts", searched, parts)
	}
}

// TestTooLarge: costs whose sums may not be right are refused.
func TestTooLarge(t *testing.T) {
	ctx, low := context.Background(), int64(-minibuckets.Forbidden/2)
	s, err := New(ctx, []int{2}, []minibuckets.Costs{{Scope: []int{0}, Values: []int64{low, 0}}}, 1<<20, 1<<20)
	if err != nil || s == nil {
		t.Fatal(err)
	}
	if wider, err := s.WidenMiniBuckets(ctx, 1<<20); wider || err != nil || s.Solve(ctx, 5, 1<<20) != nil || s.Bound > low {
		t.Errorf("%v, %v, bound %d", wider, err, s.Bound)
	}
}

// TestContextEnds: nothing is said to be found when the context has ended.
func TestContextEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var functions []minibuckets.Costs
	dims := make([]int, 40)
	for v := range dims {
		dims[v] = 3
	}
	for range 140 {
		f := minibuckets.Costs{Scope: rng.Perm(len(dims))[:2]}
		for range 9 {
			f.Values = append(f.Values, rng.Int64N(1000))
		}
		functions = append(functions, f)
	}
	ctx, end := context.WithCancel(context.Background())
	s, err := New(ctx, dims, functions, 1<<20, 1<<30)
	if err != nil || s == nil {
		t.Fatal(err)
	}
	if _, err := s.WidenMiniBuckets(ctx, 1<<20); err != nil || !s.hasMiniBuckets {
		t.Fatal(err)
	}
	end()
	before := s.Bound
	if values := s.Solve(ctx, 1<<40, 1<<40); values != nil || s.Bound != before {
		t.Errorf("%v, bound %d, before %d", values, s.Bound, before)
	}
	if _, err := s.WidenMiniBuckets(ctx, 1<<30); err == nil {
		t.Error("mini-buckets after the end")
	}
}
