package einsum_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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

// TestKernelAgainstEnumeration: tables large enough for several blocks, axes in any sequence, more factors in a bucket
// than one step takes, rows of zeros; min-fill and random orders, one thread and three.
func TestKernelAgainstEnumeration(t *testing.T) {
	const seed = 77
	rng := rand.New(rand.NewPCG(seed, 7))
	for round := range nightly.Rounds(12, 60) {
		e := randomExpression(rng, round, 20000, 12)
		want, terms, _ := oracle.Sum(e, 0).Float64()
		h := e.Hypergraph()
		for name, order := range map[string][]int{"min-fill": orders.MinFill(h),
			"random": contractionorder.RestrictOrder(rng.Perm(len(e.Dims)), h)} {
			var first scaled.Number
			for _, threads := range []int{1, 3} {
				z, stats, err := einsum.Contract(context.Background(), e, order, einsum.Options{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				if threads == 1 {
					first = z
				}
				plan := orders.Evaluate(h, order)
				if z != first || !z.IsZero() && (stats.Flops != plan.Flops || float64(stats.PeakBytes) != plan.Bytes) {
					t.Errorf("seed %d, round %d, %s: %v with one thread, %v with %d; %+v, predicted %+v", seed, round, name, first,
						z, threads, stats, plan)
				}
				if math.Abs(z.Float64()-want) > 1e-12*terms {
					t.Errorf("seed %d, round %d, %s: Z = %v, enumeration %v", seed, round, name, z.Float64(), want)
				}
			}
		}
	}
}

// TestChainOfManyVariables: Z of 10^5 spins in a field is the trace of a power, far beyond float64.
func TestChainOfManyVariables(t *testing.T) {
	const n = 100000
	e := &sumproduct.Expression{Dims: slices.Repeat([]int{2}, n), Scale: scaled.One}
	transfer := []float64{2, 0.5, 0.5, 2} // eigenvalues 2.5 and 1.5
	for i := range n {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, (i + 1) % n}, Data: transfer})
	}
	z, stats, err := einsum.Contract(context.Background(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := n * math.Log(2.5); math.Abs(z.LogAbs()-want) > 1e-12*want { // 1.5^n is below rounding
		t.Errorf("ln Z = %v, want %v", z.LogAbs(), want)
	}
	if stats.Flops > 40*n || stats.PeakBytes > 8*5*n {
		t.Errorf("%+v for %d variables", stats, n)
	}
}

// TestExponents: tables of any size, products that would leave float64 many times over.
func TestExponents(t *testing.T) {
	e := &sumproduct.Expression{Dims: slices.Repeat([]int{2}, 9), Scale: scaled.Make(1, -40000)}
	for i := range 8 {
		size := math.Ldexp(1, 1000*(1-2*(i%4/3))) // three of four are huge, one is tiny
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i + 1, i}, Data: []float64{size, size, size, size}})
	}
	data := slices.Clone(e.Tables[0].Data)
	z, _, err := einsum.Contract(context.Background(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil || z != (scaled.Number{Mant: 1, Exp: 9 + 4*1000 - 40000}) {
		t.Errorf("Z = %v, %v", z, err)
	}
	if !slices.Equal(data, e.Tables[0].Data) {
		t.Error("the expression was changed")
	}
}

func TestZeroIsAnAnswer(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2, 3}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{1, 0, 0, 1}}, {Scope: []int{1, 0}, Data: []float64{0, 1, 1, 0}},
	}}
	z, _, err := einsum.Contract(context.Background(), e, []int{0, 1, 2}, einsum.Options{})
	if err != nil || !z.IsZero() {
		t.Errorf("Z = %v, %v", z, err)
	}
	e.Tables = nil
	if z, _, err = einsum.Contract(context.Background(), e, []int{2, 0, 1}, einsum.Options{}); err != nil || z.Float64() != 12 {
		t.Errorf("no tables: Z = %v, %v", z, err)
	}
	e.Tables = []sumproduct.Table{{Data: []float64{-3}}, {Scope: []int{2}, Data: []float64{1, 1, -0.5}}}
	if z, _, err = einsum.Contract(context.Background(), e, []int{2, 0, 1}, einsum.Options{}); err != nil || z.Float64() != -18 {
		t.Errorf("a negative number: Z = %v, %v", z, err)
	}
}

func TestContractErrors(t *testing.T) {
	good := func() *sumproduct.Expression { return pairwise(30, 2, func(i, j int) bool { return true }) }
	order := orders.MinFill(good().Hypergraph())
	for _, c := range []struct {
		name  string
		spoil func(e *sumproduct.Expression, order *[]int, o *einsum.Options)
		is    error
		want  string
	}{
		{"memory", func(*sumproduct.Expression, *[]int, *einsum.Options) {}, sumproduct.ErrOverBudget,
			"needs 6443578976 bytes of tables (width 29, largest table 2^30.0 entries"},
		{"much memory", func(e *sumproduct.Expression, o *[]int, _ *einsum.Options) {
			*e = *pairwise(60, 2, func(i, j int) bool { return true })
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0}, Data: []float64{1, 1}})
			for i := range 60 {
				for j := range i {
					e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{1, 1, 1, 1}})
				}
			}
			*o = orders.MinFill(e.Hypergraph())
		}, sumproduct.ErrOverBudget, "width 59, largest table 2^60.0 entries"},
		{"order too short", func(_ *sumproduct.Expression, o *[]int, _ *einsum.Options) { *o = (*o)[1:] },
			sumproduct.ErrExpression, "the order leaves out index"},
		{"order repeats", func(_ *sumproduct.Expression, o *[]int, _ *einsum.Options) { *o = append(slices.Clone(*o), 3) },
			sumproduct.ErrExpression, "the order names index 3 twice"},
		{"order out of range", func(_ *sumproduct.Expression, o *[]int, _ *einsum.Options) {
			*o = append(slices.Clone(*o), 30)
		}, sumproduct.ErrExpression, "the order names index 30, there are 30"},
		{"dimension", func(e *sumproduct.Expression, _ *[]int, _ *einsum.Options) { e.Dims[4] = 0 },
			sumproduct.ErrExpression, "index 4 has dimension 0"},
		{"scope out of range", func(e *sumproduct.Expression, _ *[]int, _ *einsum.Options) {
			e.Tables[2].Scope = []int{0, 31}
		}, sumproduct.ErrExpression, "table 2 names index 31"},
		{"scope repeats", func(e *sumproduct.Expression, _ *[]int, _ *einsum.Options) { e.Tables[2].Scope = []int{5, 5} },
			sumproduct.ErrExpression, "table 2 names index 5 twice"},
		{"entries", func(e *sumproduct.Expression, _ *[]int, _ *einsum.Options) { e.Tables[2].Data = make([]float64, 5) },
			sumproduct.ErrExpression, "table 2 has 5 entries"},
		{"NaN", func(e *sumproduct.Expression, _ *[]int, o *einsum.Options) {
			e.Tables[2].Data[1] = math.NaN()
			o.Memory = 1 << 40
		}, sumproduct.ErrNotFinite, "table 2"},
	} {
		e, o, opts := good(), order, einsum.Options{}
		c.spoil(e, &o, &opts)
		_, _, err := einsum.Contract(context.Background(), e, o, opts)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if errors.Is(c.is, sumproduct.ErrOverBudget) && fault.CodeOf(err) != fault.OverBudget {
			t.Errorf("%s: code %s", c.name, fault.CodeOf(err))
		}
	}
}

// TestContractStops: a context that ends is noticed inside a large step.
func TestContractStops(t *testing.T) {
	e := pairwise(26, 2, func(i, j int) bool { return true })
	ctx := &countdown{Context: context.Background(), left: 400}
	_, _, err := einsum.Contract(ctx, e, orders.MinFill(e.Hypergraph()), einsum.Options{Threads: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if ctx.left < -2 {
		t.Errorf("asked %d more times after the end", -ctx.left)
	}
}

// countdown is a context that is cancelled when it has been asked often enough.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}
