package contractionorder_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// lattice returns the rows × columns lattice of binary variables, wrapped around when torus is set.
func lattice(rows, columns int, torus bool) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, rows*columns)}
	at := func(r, c int) int { return r%rows*columns + c%columns }
	for r := range rows {
		for c := range columns {
			if torus || c+1 < columns {
				h.Edges = append(h.Edges, []int{at(r, c), at(r, c+1)})
			}
			if torus || r+1 < rows {
				h.Edges = append(h.Edges, []int{at(r, c), at(r+1, c)})
			}
		}
	}
	return h
}

func chain(n int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, n)}
	for i := range n - 1 {
		h.Edges = append(h.Edges, []int{i, i + 1})
	}
	return h
}

func complete(n int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, n)}
	for i := range n {
		for j := range i {
			h.Edges = append(h.Edges, []int{j, i})
		}
	}
	return h
}

func random(rng *rand.Rand, n, edges int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: make([]int, n)}
	for i := range h.Dims {
		h.Dims[i] = 1 + rng.IntN(5)
	}
	for range edges {
		h.Edges = append(h.Edges, rng.Perm(n)[:1+rng.IntN(min(n, 4))])
	}
	return h
}

// definition recomputes greedy orders from their definition
// with a plain adjacency matrix: no counts are kept. Some vertices come last; nil: none.
func definition(h contractionorder.Hypergraph, byFill bool, last []bool) []int {
	n := len(h.Dims)
	adjacent := make([][]bool, n)
	for v := range adjacent {
		adjacent[v] = make([]bool, n)
	}
	for _, e := range h.Edges {
		for _, a := range e {
			for _, b := range e {
				adjacent[a][b] = a != b && h.Dims[a] > 1 && h.Dims[b] > 1 || adjacent[a][b]
			}
		}
	}
	left := map[int]bool{}
	for v, d := range h.Dims {
		left[v] = d > 1
	}
	var order []int
	for {
		best, bestFill, bestTable := -1, 0, 0
		for v := range n {
			if !left[v] {
				continue
			}
			fill, table := 0, h.Dims[v]
			for a := range n {
				if !left[a] || !adjacent[v][a] {
					continue
				}
				table *= h.Dims[a]
				for b := range a {
					if left[b] && adjacent[v][b] && !adjacent[a][b] {
						fill++
					}
				}
			}
			if !byFill {
				fill = 0
			}
			if last != nil && last[v] {
				fill += 1 << 20
			}
			if best < 0 || fill < bestFill || fill == bestFill && table < bestTable {
				best, bestFill, bestTable = v, fill, table
			}
		}
		if best < 0 {
			return order
		}
		for a := range n {
			for b := range n {
				if a != b && left[a] && left[b] && adjacent[best][a] && adjacent[best][b] {
					adjacent[a][b] = true
				}
			}
		}
		left[best] = false
		order = append(order, best)
	}
}

// TestGreedyOrdersByDefinition: the incremental counts give the same order as a recount at every
// step. The tables stay below 5^10, where the product of dimensions and the fixed-point logarithm
// order them alike.
func TestGreedyOrdersByDefinition(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 5))
	for round := range 200 {
		h := random(rng, 2+rng.IntN(14), rng.IntN(30))
		if got, want := orders.MinFill(h), definition(h, true, nil); !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: min-fill %v, by definition %v, graph %v",
				seed, round, got, want, h)
		}
		if got, want := orders.MinWeight(h), definition(h, false, nil); !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: min-weight %v, by definition %v, graph %v",
				seed, round, got, want, h)
		}
		last := make([]bool, len(h.Dims))
		for v := range last {
			last[v] = rng.IntN(2) == 0
		}
		got, within, err := contractionorder.MinFillLast(context.Background(), h, last, math.MaxInt64, math.MaxInt64)
		if want := definition(h, true, last); err != nil || !within || !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: min-fill %v with %v last, by definition %v, graph %v; %v", seed, round, got, last, want, h, err)
		}
	}
}

func TestKnownWidths(t *testing.T) {
	for _, c := range []struct {
		name  string
		h     contractionorder.Hypergraph
		width int
	}{
		{"nothing", contractionorder.Hypergraph{}, 0},
		{"one variable", contractionorder.Hypergraph{Dims: []int{3}, Edges: [][]int{{0}}}, 0},
		{"chain", chain(1000), 1},
		{"complete graph", complete(12), 11},
		{"star", star(500), 1},
		{"ladder", lattice(2, 50, false), 2},
	} {
		for name, order := range map[string][]int{"min-fill": orders.MinFill(c.h),
			"min-weight": orders.MinWeight(c.h),
			"best":       orders.Best(c.h)} {
			if plan := orders.Evaluate(c.h, order); plan.Width != c.width ||
				len(order) != len(c.h.Dims) {
				t.Errorf("%s, %s: width %d, want %d; order of %d",
					c.name, name, plan.Width, c.width, len(order))
			}
		}
	}
}

func star(n int) contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{2}, n+1)}
	for i := range n {
		h.Edges = append(h.Edges, []int{0, i + 1})
	}
	return h
}

func TestRestrict(t *testing.T) {
	h := contractionorder.Hypergraph{Dims: []int{2, 1, 3, 2, 2}}
	for _, c := range []struct{ order, want []int }{
		{[]int{4, 3, 2, 1, 0}, []int{4, 3, 2, 0}},
		{[]int{3, 3, -1, 9, 2}, []int{3, 2, 0, 4}},
		{nil, []int{0, 2, 3, 4}},
	} {
		if got := contractionorder.RestrictOrder(c.order, h); !slices.Equal(got, c.want) {
			t.Errorf("Restrict(%v) = %v, want %v", c.order, got, c.want)
		}
	}
}

// TestBestIsNoWorse: never more expensive than min-fill and min-weight, and the same every time.
func TestBestIsNoWorse(t *testing.T) {
	for _, h := range []contractionorder.Hypergraph{lattice(9, 9, true), lattice(12, 20, false),
		random(rand.New(rand.NewPCG(1, 1)), 60, 110)} {
		best := orders.Best(h)
		if again := orders.Best(h); !slices.Equal(best, again) {
			t.Error("two calls differ")
		}
		flops := orders.Evaluate(h, best).Flops
		if f := orders.Evaluate(h, orders.MinFill(h)).Flops; flops > f {
			t.Errorf("best %v, min-fill %v flops", flops, f)
		}
		if f := orders.Evaluate(h, orders.MinWeight(h)).Flops; flops > f {
			t.Errorf("best %v, min-weight %v flops", flops, f)
		}
	}
}

// TestPlanBeyondFloat64: tables that nobody can hold are priced,
// not overflowed, and not walked through for ever.
func TestPlanBeyondFloat64(t *testing.T) {
	plan := orders.Evaluate(complete(46), orders.MinFill(complete(46)))
	if plan.Width != 45 || math.Abs(plan.Log2Table-46) > 1e-9 || plan.Flops < 0x1p46 ||
		plan.Bytes < 8*0x1p45 {
		t.Errorf("46 variables: %+v", plan)
	}
	h := contractionorder.Hypergraph{Dims: slices.Repeat([]int{1 << 20}, 80),
		Edges: complete(80).Edges}
	plan = orders.Evaluate(h, orders.MinFill(h))
	if plan.Log2Table < 1000 || math.IsInf(plan.Flops, 0) || math.IsNaN(plan.Bytes) ||
		math.IsInf(plan.Bytes, 0) {
		t.Errorf("80 variables of 2^20 values: %+v", plan)
	}
}

func BenchmarkMinFill(b *testing.B) {
	for _, c := range []struct {
		name string
		h    contractionorder.Hypergraph
	}{{"grid100x100", lattice(100, 100, false)}, {"chain100000", chain(100000)},
		{"complete300", complete(300)},
		{"star100000", star(100000)}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				orders.MinFill(c.h)
			}
		})
	}
}

func ExampleMinFill() {
	ctx := context.Background()
	order, err := contractionorder.MinFill(ctx, lattice(10, 10, false))
	if err != nil {
		panic(err)
	}
	plan, err := contractionorder.EvaluateOrder(ctx, lattice(10, 10, false), order)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%d variables, width %d\n", len(order), plan.Width)
	// Output: 100 variables, width 13
}
