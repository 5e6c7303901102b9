package sweeps

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
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// lattice is an Ising model on rows × cols variables, J ~ U(−Δ, Δ), with a field.
func lattice(rng *rand.Rand, rows, cols int, delta float64) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	pair := func(i, j int) {
		k := delta * (2*rng.Float64() - 1)
		e.Tables = append(e.Tables,
			sumproduct.Table{Scope: []int{i, j},
				Data: []float64{math.Exp(k), math.Exp(-k), math.Exp(-k), math.Exp(k)}})
	}
	for i := range rows * cols {
		e.Dims = append(e.Dims, 2)
		h := 0.2*rng.Float64() - 0.1
		e.Tables = append(e.Tables,
			sumproduct.Table{Scope: []int{i}, Data: []float64{math.Exp(-h), math.Exp(h)}})
	}
	for i := range rows * cols {
		if i%cols < cols-1 {
			pair(i, i+1)
		}
		if i+cols < rows*cols {
			pair(i, i+cols)
		}
	}
	return e
}

func mustContract(t *testing.T, e *sumproduct.Expression, p Plan, o Options) legs.Value {
	t.Helper()
	v, err := Contract(context.Background(), e, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func mustSearch(t *testing.T, h contractionorder.Hypergraph, o SearchOptions) (Plan, legs.Cost) {
	t.Helper()
	p, c, err := Search(context.Background(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

func exactValue(t *testing.T, e *sumproduct.Expression) (float64, [][]float64) {
	t.Helper()
	r, _, err := einsum.Marginals(context.Background(), e, orders.Best(e.Hypergraph()),
		einsum.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	rows := make([][]float64, len(r.Marginals))
	for i, row := range r.Marginals {
		for _, m := range row {
			rows[i] = append(rows[i], m.Div(r.Z).Float64())
		}
	}
	return r.Z.LogAbs(), rows
}

func TestTruncationConverges(t *testing.T) {
	e := lattice(rand.New(rand.NewPCG(1, 5)), 10, 10, 1)
	want, rows := exactValue(t, e)
	p, _ := mustSearch(t, e.Hypergraph(), SearchOptions{Bond: 16, Moves: 1 << 20})
	for _, c := range []struct {
		bond              int
		z, marginal       float64
		truncated, strict bool
	}{{bond: 2, z: 0.5, marginal: 0.1, truncated: true},
		{bond: 8, z: 1e-5, marginal: 1e-4, truncated: true},
		{bond: 64, z: 1e-10, marginal: 1e-9}} {
		v := mustContract(t, e, p, Options{Bond: c.bond, Marginals: true})
		worst := 0.0
		for i := range rows {
			for x := range rows[i] {
				worst = max(worst, math.Abs(rows[i][x]-v.Marginals[i][x]))
			}
		}
		t.Logf("χ=%d: ln Z off by %.1e, marginals by %.1e, discarded %.1e",
			c.bond, v.Z.LogAbs()-want, worst, v.Discarded)
		if d := math.Abs(v.Z.LogAbs() - want); d > c.z || worst > c.marginal ||
			v.Truncated != c.truncated ||
			v.Bond > c.bond || v.Discarded > 0 != (c.bond < 64) && v.Discarded > 1e-20 {
			t.Errorf("χ=%d: ln Z off by %g, marginals by %g, truncated %v, bond %d, discarded %g",
				c.bond, d, worst,
				v.Truncated, v.Bond, v.Discarded)
		}
	}
}

// TestDerivatives: P(i=v) is ∂ ln Z / ∂ ln w_i(v),
// here by central differences, all bonds sufficient.
func TestDerivatives(t *testing.T) {
	e := lattice(rand.New(rand.NewPCG(2, 5)), 4, 4, 1)
	p, _ := mustSearch(t, e.Hypergraph(), SearchOptions{Bond: 32, Moves: 1 << 16})
	v := mustContract(t, e, p, Options{Bond: 32, Marginals: true})
	const step = 1e-4
	for i := range e.Dims {
		at := func(f float64) float64 {
			c := *e
			c.Tables = append(slices.Clone(e.Tables),
				sumproduct.Table{Scope: []int{i}, Data: []float64{1, math.Exp(f)}})
			return mustContract(t, &c, p, Options{Bond: 32}).Z.LogAbs()
		}
		if d := (at(step) - at(-step)) / (2 * step); math.Abs(d-v.Marginals[i][1]) > 1e-7 {
			t.Errorf("P(%d=1) = %g, by differences %g", i, v.Marginals[i][1], d)
		}
	}
}

func TestOrderOfTablesDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	e := lattice(rng, 6, 6, 1)
	p, _ := mustSearch(t, e.Hypergraph(), SearchOptions{Bond: 4, Moves: 1 << 18})
	want := mustContract(t, e, p, Options{Bond: 4})
	c := *e
	c.Tables = slices.Clone(e.Tables)
	rng.Shuffle(len(c.Tables),
		func(i, j int) { c.Tables[i], c.Tables[j] = c.Tables[j], c.Tables[i] })
	if got := mustContract(t, &c, p,
		Options{Bond: 4}); math.Abs(got.Z.LogAbs()-want.Z.LogAbs()) > 1e-9 {
		t.Errorf("ln Z %.12f, with tables in another order %.12f", want.Z.LogAbs(), got.Z.LogAbs())
	}
	if again := mustContract(t, e, p, Options{Bond: 4}); !reflect.DeepEqual(again, want) {
		t.Errorf("%+v, and again %+v", want, again)
	}
}

func TestScales(t *testing.T) {
	e := lattice(rand.New(rand.NewPCG(4, 5)), 5, 5, 1)
	p, _ := mustSearch(t, e.Hypergraph(), SearchOptions{Bond: 32, Moves: 1 << 16})
	want := mustContract(t, e, p, Options{Bond: 32}).Z.LogAbs()
	for _, f := range []float64{1e250, 1e-250, 1e-310} {
		c := *e
		c.Tables = nil
		for _, t := range e.Tables {
			data := make([]float64, len(t.Data))
			for i, v := range t.Data {
				data[i] = v * f
			}
			c.Tables = append(c.Tables, sumproduct.Table{Scope: t.Scope, Data: data})
		}
		// math.Log is wrong below 2^−1022 on amd64
		got := mustContract(t, &c, p,
			Options{Bond: 32}).Z.LogAbs() - float64(len(e.Tables))*scaled.FromFloat(f).LogAbs()
		if !(math.Abs(got-want) < 1e-9) {
			t.Errorf("tables times %g: ln Z off by %g", f, got-want)
		}
	}
}

func TestSearch(t *testing.T) {
	e := lattice(rand.New(rand.NewPCG(5, 5)), 12, 8, 1)
	h := e.Hypergraph()
	file := contractionorder.RestrictOrder(nil, h)
	naive, err := Evaluate(t.Context(), h, Plan{Order: file, Position: positions(file, len(h.Dims))}, 8, false)
	if err != nil {
		t.Fatal(err)
	}
	o := SearchOptions{Bond: 8, Moves: 1 << 20}
	p, c := mustSearch(t, h, o)
	if c.Flops > naive.Flops {
		t.Errorf("%g flops, file order %g", c.Flops, naive.Flops)
	}
	if again, _ := mustSearch(t, h, o); !reflect.DeepEqual(again, p) {
		t.Error("the same search gave another plan")
	}
	o.Seed = 1
	if other, cost := mustSearch(t, h, o); reflect.DeepEqual(other, p) || cost.Flops > 3*c.Flops {
		t.Errorf("seed 1: the same plan, or %g flops instead of %g", cost.Flops, c.Flops)
	}
}

func TestRestrict(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 6))
		e := randomExpression(rng, false, false)
		h := e.Hypergraph()
		p := randomPlan(rng, h)
		if got := p.Restrict(h.Dims); !reflect.DeepEqual(got.Order, p.Order) && len(p.Order) > 0 ||
			len(got.Position) != len(p.Position) {
			t.Fatalf("seed %d: %+v restricted to itself is %+v", seed, p, got)
		}
		smaller := contractionorder.Hypergraph{Dims: slices.Clone(h.Dims), Edges: h.Edges}
		for i := range smaller.Dims { // some are observed
			if rng.IntN(3) == 0 {
				smaller.Dims[i] = 1
			}
		}
		got := p.Restrict(smaller.Dims)
		if err := got.check(smaller); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := contractionorder.RestrictOrder(p.Order, smaller)
		if !slices.Equal(got.Order, want) {
			t.Errorf("seed %d: order %v, want %v", seed, got.Order, want)
		}
		for _, i := range want {
			for _, j := range want {
				if (p.Position[i] < p.Position[j]) != (got.Position[i] < got.Position[j]) {
					t.Errorf("seed %d: %d and %d changed sides", seed, i, j)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	e := lattice(rand.New(rand.NewPCG(6, 5)), 3, 3, 1)
	file := contractionorder.RestrictOrder(nil, e.Hypergraph())
	good := Plan{Order: file, Position: positions(file, len(file))}
	bad := *e
	bad.Tables = append(slices.Clone(e.Tables),
		sumproduct.Table{Scope: []int{0}, Data: []float64{1, math.NaN()}})
	short := *e
	short.Tables = append(slices.Clone(e.Tables),
		sumproduct.Table{Scope: []int{0}, Data: []float64{1}})
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		e    *sumproduct.Expression
		p    Plan
		o    Options
		want error
		code fault.Code
		text string
	}{
		{name: "bond", e: e, p: good, want: ErrOptions, code: fault.BadInput, text: "bond 0"},
		{name: "cutoff", e: e, p: good, o: Options{Bond: 1, Cutoff: 2}, want: ErrOptions,
			code: fault.BadInput, text: "cutoff 2"},
		{
			name: "memory",
			e:    e,
			p:    good,
			o:    Options{Bond: 8, Memory: 1000},
			want: sumproduct.ErrOverBudget,
			code: fault.OverBudget,
			text: "budget is 1000",
		},
		{
			name: "order",
			e:    e,
			p:    Plan{Order: file[1:], Position: good.Position},
			o:    Options{Bond: 1},
			want: ErrPlan,
			code: fault.Internal,
			text: "order of 8",
		},
		{
			name: "places",
			e:    e,
			p:    Plan{Order: file, Position: make([]int, 9)},
			o:    Options{Bond: 1},
			want: ErrPlan,
			code: fault.Internal,
			text: "have place 0",
		},
		{
			name: "NaN",
			e:    &bad,
			p:    good,
			o:    Options{Bond: 4},
			want: sumproduct.ErrNotFinite,
			code: fault.BadInput,
			text: "table 21, entry 1 is NaN",
		},
		{name: "size", e: &short, p: good, o: Options{Bond: 4}, want: sumproduct.ErrExpression,
			code: fault.BadInput, text: "1 entries"},
		{name: "cancelled", ctx: cancelled, e: e, p: good, o: Options{Bond: 4},
			want: context.Canceled, code: fault.Cancelled, text: "canceled"},
	} {
		ctx := c.ctx
		if ctx == nil {
			ctx = context.Background()
		}
		_, err := Contract(ctx, c.e, c.p, c.o)
		if !errors.Is(err, c.want) || fault.CodeOf(err) != c.code ||
			!strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v (%s)", c.name, err, fault.CodeOf(err))
		}
	}
	if _, _, err := Search(cancelled, e.Hypergraph(), SearchOptions{Bond: 4}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("search: %v", err)
	}
}

func TestEdges(t *testing.T) {
	for name, c := range map[string]struct {
		e    sumproduct.Expression
		want float64
	}{
		"empty": {sumproduct.Expression{Scale: scaled.FromFloat(3)}, 3},
		"number": {sumproduct.Expression{Scale: scaled.FromFloat(3),
			Tables: []sumproduct.Table{{Data: []float64{-2}}}}, -6},
		"no table":   {sumproduct.Expression{Scale: scaled.One, Dims: []int{4, 1, 5}}, 20},
		"zero scale": {sumproduct.Expression{Dims: []int{2}}, 0},
		"zero table": {sumproduct.Expression{
			Scale:  scaled.One,
			Dims:   []int{2, 2},
			Tables: []sumproduct.Table{{Scope: []int{1, 0}, Data: make([]float64, 4)}},
		}, 0},
		"cancellation": {sumproduct.Expression{
			Scale:  scaled.One,
			Dims:   []int{2},
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, -1}}},
		}, 0},
		"dimension 1": {sumproduct.Expression{
			Scale:  scaled.One,
			Dims:   []int{1, 2},
			Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: []float64{1, 2}}},
		}, 3},
	} {
		p, _ := mustSearch(t, c.e.Hypergraph(), SearchOptions{Bond: 2, Moves: 1 << 10})
		v := mustContract(t, &c.e, p, Options{Bond: 2, Marginals: true})
		if d := math.Abs(v.Z.Float64() - c.want); d > 1e-12 ||
			(v.Marginals == nil) != (c.want == 0) {
			t.Errorf("%s: %g, want %g; marginals %v", name, v.Z.Float64(), c.want, v.Marginals)
		}
	}
}
