package einsum_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// randomExpression has tables large enough for several blocks, axes in any sequence, more of them than one step takes.
func randomExpression(rng *rand.Rand, round, states, widest int) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.FromFloat(0.75)}
	for n := 1; n < states; {
		d := 2
		if round%3 == 1 {
			d = 1 + rng.IntN(5)
		} else if round%3 == 2 && len(e.Dims) == 0 {
			d = 70
		}
		e.Dims = append(e.Dims, d)
		n *= d
	}
	for range 3 + rng.IntN(20) {
		table := sumproduct.Table{}
		size := 1
		for _, i := range rng.Perm(len(e.Dims))[:rng.IntN(min(len(e.Dims), widest))+1] {
			if size*e.Dims[i] <= 1<<12 {
				table.Scope = append(table.Scope, i)
				size *= e.Dims[i]
			}
		}
		table.Data = make([]float64, size)
		for k := range table.Data {
			table.Data[k] = 0.2 + rng.Float64()
			if round%4 == 3 && rng.IntN(3) == 0 {
				table.Data[k] = 0
			}
			if round%5 == 4 && rng.IntN(2) == 0 {
				table.Data[k] *= -1
			}
		}
		if round%7 == 6 && rng.IntN(4) == 0 { // an all-zero block, or table
			clear(table.Data[rng.IntN(size):])
		}
		e.Tables = append(e.Tables, table)
	}
	return e
}

// TestMarginalsAgainstEnumeration: every index, min-fill and random orders, one thread and three, Z with the bits of Contract,
// flops and bytes as planned.
func TestMarginalsAgainstEnumeration(t *testing.T) {
	const seed = 78
	rng := rand.New(rand.NewPCG(seed, 7))
	for round := range nightly.Rounds(14, 70) {
		e := randomExpression(rng, round, 8000, 12)
		_, terms, want := oracle.Sum(e, 0).Float64()
		h := e.Hypergraph()
		for name, order := range map[string][]int{"min-fill": orders.MinFill(h),
			"random": contractionorder.RestrictOrder(rng.Perm(len(e.Dims)), h)} {
			z, _, err := einsum.Contract(context.Background(), e, order, einsum.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var first einsum.Result
			for _, threads := range []int{1, 3} {
				r, stats, err := einsum.Marginals(context.Background(), e, order, einsum.Options{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				if r.Z != z {
					t.Errorf("seed %d, round %d, %s: Z = %v with marginals, %v without", seed, round, name, r.Z, z)
				}
				if threads == 1 {
					first = r
				} else if !reflect.DeepEqual(r, first) {
					t.Errorf("seed %d, round %d, %s: other bits with %d threads", seed, round, name, threads)
				}
				if plan := orders.PlanMarginals(h, order); stats.Flops != plan.Flops || float64(stats.PeakBytes) != plan.Bytes {
					t.Errorf("seed %d, round %d, %s: %+v, planned %+v", seed, round, name, stats, plan)
				}
			}
			for i := range want {
				for x, w := range want[i] {
					if got := first.Marginals[i][x].Float64(); !(math.Abs(got-w) <= 1e-12*terms) {
						t.Fatalf("seed %d, round %d, %s: index %d, value %d: %v, want %v of %v", seed, round, name, i, x, got, w, terms)
					}
				}
			}
		}
	}
}

// TestMarginalsOfLargeSteps: steps that several threads share, against the value with one more table that fixes an index.
func TestMarginalsOfLargeSteps(t *testing.T) {
	const seed, some = 79, 3
	rng := rand.New(rand.NewPCG(seed, 7))
	for what, e := range map[string]*sumproduct.Expression{
		"complete, two values":  pairwise(18, 2, func(i, j int) bool { return true }),
		"complete, four values": pairwise(9, 4, func(i, j int) bool { return true }),
		"grid":                  pairwise(14*14, 2, func(i, j int) bool { return j == i+14 || j == i+1 && j%14 != 0 }),
	} {
		order := orders.MinFill(e.Hypergraph())
		first, _, err := einsum.Marginals(context.Background(), e, order, einsum.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, threads := range []int{2, 5} {
			r, _, err := einsum.Marginals(context.Background(), e, order, einsum.Options{Threads: threads})
			if err != nil || !reflect.DeepEqual(r, first) {
				t.Errorf("%s: other bits with %d threads, %v", what, threads, err)
			}
		}
		for range some {
			i := rng.IntN(len(e.Dims))
			x := rng.IntN(e.Dims[i])
			fixed := *e
			table := sumproduct.Table{Scope: []int{i}, Data: make([]float64, e.Dims[i])}
			table.Data[x] = 1
			fixed.Tables = append(slices.Clone(e.Tables), table)
			z, _, err := einsum.Contract(context.Background(), &fixed, order, einsum.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if off := first.Marginals[i][x].Div(z).Float64() - 1; !(math.Abs(off) < 1e-12) {
				t.Errorf("%s: index %d, value %d: %v, with the index fixed %v", what, i, x, first.Marginals[i][x], z)
			}
		}
	}
}

// TestMarginalsOfZero: where Z vanishes by cancellation its parts do not.
func TestMarginalsOfZero(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2, 3, 1}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{1, 2, -1, -2}}, {Scope: []int{1}, Data: []float64{1, 1}}}}
	r, _, err := einsum.Marginals(context.Background(), e, []int{0, 1, 2}, einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Z.IsZero() || r.Marginals[0][0].Float64() != 9 || r.Marginals[0][1].Float64() != -9 {
		t.Errorf("%+v", r)
	}
	for _, i := range []int{1, 2, 3} {
		for x, p := range r.Marginals[i] {
			if !p.IsZero() || math.Signbit(p.Mant) {
				t.Errorf("index %d, value %d: %v", i, x, p)
			}
		}
	}
}

// TestMarginalsOfAChainOfManyVariables: 10^5 spins, Z far beyond float64, every marginal one half.
func TestMarginalsOfAChainOfManyVariables(t *testing.T) {
	const n = 100000
	e := &sumproduct.Expression{Dims: slices.Repeat([]int{2}, n), Scale: scaled.One}
	for i := range n {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, (i + 1) % n}, Data: []float64{2, 0.5, 0.5, 2}})
	}
	r, _, err := einsum.Marginals(context.Background(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range r.Marginals {
		for x := range m {
			if p := m[x].Div(r.Z).Float64(); math.Abs(p-0.5) > 1e-10 {
				t.Fatalf("index %d: %v", i, p)
			}
		}
	}
}

// TestMarginalsExponents: tables of any size, one index in a large and a tiny table.
func TestMarginalsExponents(t *testing.T) {
	e := &sumproduct.Expression{Dims: slices.Repeat([]int{2}, 9), Scale: scaled.Make(1, -40000)}
	for i := range 8 {
		size := math.Ldexp(1, 1000*(1-2*(i%4/3)))
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i + 1, i}, Data: []float64{size, size, size, size}})
	}
	r, _, err := einsum.Marginals(context.Background(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Marginals {
		for x := range 2 {
			if r.Marginals[i][x] != (scaled.Number{Mant: 1, Exp: 8 + 4*1000 - 40000}) {
				t.Errorf("index %d, value %d: %v", i, x, r.Marginals[i][x])
			}
		}
	}
}

// TestMarginalsCost: about three times Contract on a grid and on pairs of large tables, refused beforehand over the budget.
func TestMarginalsCost(t *testing.T) {
	for what, e := range map[string]*sumproduct.Expression{
		"grid": pairwise(100, 2, func(i, j int) bool { return j-i == 1 && j%10 != 0 || j-i == 10 }),
		"full": pairwise(12, 3, func(i, j int) bool { return true }),
	} {
		h := e.Hypergraph()
		order := orders.MinFill(h)
		once, all := orders.Evaluate(h, order), orders.PlanMarginals(h, order)
		if ratio := all.Flops / once.Flops; !(ratio > 2 && ratio < 4.2) {
			t.Errorf("%s: %.3g flops with marginals, %.3g without: %.2f times", what, all.Flops, once.Flops, ratio)
		}
		_, _, err := einsum.Marginals(context.Background(), e, order, einsum.Options{Memory: int64(all.Bytes) - 1})
		if !errors.Is(err, sumproduct.ErrOverBudget) || fault.CodeOf(err) != fault.OverBudget ||
			!strings.Contains(err.Error(), "all marginals at once need") {
			t.Errorf("%s: one byte too few: %v", what, err)
		}
		if _, _, err = einsum.Marginals(context.Background(), e, order, einsum.Options{Memory: int64(all.Bytes)}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestMarginalsStop: a context that ends is noticed on the way back, inside large steps too.
func TestMarginalsStop(t *testing.T) {
	e := pairwise(16, 2, func(i, j int) bool { return true })
	order := orders.MinFill(e.Hypergraph())
	most := &countdown{Context: context.Background(), left: 1 << 30}
	if _, _, err := einsum.Marginals(most, e, order, einsum.Options{Threads: 1}); err != nil {
		t.Fatal(err)
	}
	for looks := range 1<<30 - most.left {
		_, _, err := einsum.Marginals(&countdown{Context: context.Background(), left: looks}, e, order, einsum.Options{Threads: 1})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("after %d looks: %v", looks, err)
		}
	}
}
