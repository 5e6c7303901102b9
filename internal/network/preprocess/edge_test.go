package preprocess_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func run(t *testing.T, e *sumproduct.Expression, o preprocess.Options) *preprocess.Result {
	t.Helper()
	r, err := preprocess.Run(context.Background(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEdges: nothing, numbers, indices of one value, indices in no table, parts, extreme entries.
func TestEdges(t *testing.T) {
	table := func(scope []int, data ...float64) sumproduct.Table {
		return sumproduct.Table{Scope: scope, Data: data}
	}
	for name, c := range map[string]struct {
		e    sumproduct.Expression
		want float64
	}{
		"nothing": {sumproduct.Expression{Scale: scaled.One}, 1},
		"a number": {sumproduct.Expression{Scale: scaled.FromFloat(3),
			Tables: []sumproduct.Table{table(nil, 5)}}, 15},
		"one value": {sumproduct.Expression{Dims: []int{1}, Scale: scaled.One,
			Tables: []sumproduct.Table{table([]int{0}, 7)}}, 7},
		"an index in no table": {sumproduct.Expression{
			Dims:   []int{4, 2},
			Scale:  scaled.One,
			Tables: []sumproduct.Table{table([]int{1}, 1, 2)},
		}, 12},
		"parts": {sumproduct.Expression{
			Dims:   []int{2, 2},
			Scale:  scaled.One,
			Tables: []sumproduct.Table{table([]int{0}, 1, 2), table([]int{1}, 3, 4)},
		}, 21},
		"signs": {sumproduct.Expression{
			Dims:   []int{2},
			Scale:  scaled.One.Neg(),
			Tables: []sumproduct.Table{table([]int{0}, 1, -3)},
		}, 2},
		"cancels": {sumproduct.Expression{Dims: []int{2}, Scale: scaled.One,
			Tables: []sumproduct.Table{table([]int{0}, 1, -1)}}, 0},
		"zeros only": {sumproduct.Expression{Dims: []int{2}, Scale: scaled.One,
			Tables: []sumproduct.Table{table([]int{0}, 0, 0)}}, 0},
		"disjoint supports": {sumproduct.Expression{
			Dims:   []int{2},
			Scale:  scaled.One,
			Tables: []sumproduct.Table{table([]int{0}, 0, 1), table([]int{0}, 1, 0)},
		}, 0},
		"scale 0": {sumproduct.Expression{Dims: []int{2},
			Tables: []sumproduct.Table{table([]int{0}, 1, 1)}}, 0},
	} {
		for _, o := range []preprocess.Options{{}, {Marginals: true}} {
			r := check(t, name, &c.e, o)
			z := oracle.Sum(r.Expression, 0).Z
			if f, _ := z.Float64(); math.Abs(f-c.want) > 1e-14*math.Abs(c.want) {
				t.Errorf("%s: Z = %v, want %v", name, f, c.want)
			}
			if (c.want == 0) != (r.Report.Zero != nil) && !o.Marginals {
				t.Errorf("%s: reason %v", name, r.Report.Zero)
			}
		}
	}
}

// TestProductsOutOfRangeStayApart:
// the small entries are the only ones that count, so that their product must not vanish.
func TestProductsOutOfRangeStayApart(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2}, Scale: scaled.One}
	for range 4 {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0}, Data: []float64{1, 0x1p-600}})
	}
	e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0, 1},
		Data: []float64{1, 0, 1, 1}}, sumproduct.Table{Scope: []int{1},
		Data: []float64{0, 0x1p900}},
		sumproduct.Table{Scope: []int{1}, Data: []float64{1, 0x1p-1000}})
	for _, o := range []preprocess.Options{{}, {Marginals: true}} {
		r := run(t, e, o)
		z := oracle.Sum(r.Expression, 0).Z
		if got, want := z.MantExp(nil), 900-1000-2400+1; got != want || z.Sign() <= 0 {
			t.Errorf("Z = %v, about 2^%d, want 2^%d\n%v", z, got, want, r.Report)
		}
	}
}

// TestErrors: each error names the place.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		e    sumproduct.Expression
		o    preprocess.Options
		is   error
		text string
	}{
		{sumproduct.Expression{Dims: []int{0}}, preprocess.Options{}, sumproduct.ErrExpression,
			"index 0 has dimension 0"},
		{sumproduct.Expression{
			Dims:   []int{2},
			Tables: []sumproduct.Table{{Scope: []int{1}, Data: []float64{1, 1}}},
		}, preprocess.Options{}, sumproduct.ErrExpression, "table 0 names index 1, there are 1"},
		{sumproduct.Expression{
			Dims:   []int{2},
			Tables: []sumproduct.Table{{Scope: []int{0, 0}, Data: make([]float64, 4)}},
		}, preprocess.Options{}, sumproduct.ErrExpression, "table 0 names index 0 twice"},
		{sumproduct.Expression{
			Dims:   []int{2},
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1}}},
		}, preprocess.Options{}, sumproduct.ErrExpression, "table 0 has 1 entries"},
		{sumproduct.Expression{
			Dims:   []int{2},
			Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, math.NaN()}}},
		}, preprocess.Options{}, sumproduct.ErrNotFinite, "table 0"},
		{sumproduct.Expression{Dims: []int{2}}, preprocess.Options{Keep: []int{2}},
			sumproduct.ErrExpression,
			"index 2 is to be kept, there are 1"},
		{sumproduct.Expression{Scale: scaled.FromFloat(math.Inf(1))}, preprocess.Options{},
			sumproduct.ErrNotFinite, "the scale"},
	} {
		_, err := preprocess.Run(context.Background(), &c.e, c.o)
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("error %v, want %q", err, c.text)
		}
	}
	r := run(t, &sumproduct.Expression{Dims: []int{2, 3, 2}, Scale: scaled.One,
		Tables: []sumproduct.Table{
			{Scope: []int{0, 1, 2},
				Data: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
					13}}}}, preprocess.Options{Keep: []int{1}})
	if _, err := r.Recover(7, nil); !errors.Is(err, sumproduct.ErrExpression) {
		t.Errorf("Recover of no index: %v", err)
	}
	if p, err := r.Recover(1, nil); err != nil || math.Abs(p[2]-35.0/79) > 1e-15 {
		t.Errorf("Recover of an index on its own: %v, %v", p, err)
	}
	if _, err := r.Recover(0, nil); !errors.Is(err, preprocess.ErrSummedOut) {
		t.Errorf("Recover of a summed-out index: %v", err)
	}
}

// TestZeroNamesItsPlace: the table that took the last value, and those it is made of.
func TestZeroNamesItsPlace(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{1, 2, 3, 4}},
		{Scope: []int{1}, Data: []float64{1, 0}},
		{Scope: []int{1, 2}, Data: []float64{0, 0, 1, 1}},
	}}
	r := run(t, e, preprocess.Options{})
	z := r.Report.Zero
	if z == nil || z.Index != 1 || z.Table != 2 || !strings.Contains(r.Report.String(),
		"Z = 0: index 1 has no value that agrees with tables [2]") {
		t.Errorf("%v", r.Report)
	}
}

// TestLargeChainIsLinear:
// a chain of 10^5 variables is summed out from its ends, with every marginal recovered.
func TestLargeChainIsLinear(t *testing.T) {
	const n = 100_000
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range n {
		e.Dims = append(e.Dims, 2)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{1, 2}})
		if i > 0 {
			e.Tables = append(e.Tables,
				sumproduct.Table{Scope: []int{i - 1, i}, Data: []float64{2, 1, 1, 2}})
		}
	}
	for _, o := range []preprocess.Options{{}, {Marginals: true}} {
		start := time.Now()
		r := run(t, e, o)
		t.Logf("%v", time.Since(start))
		if len(r.Expression.Tables) > 0 {
			t.Fatalf("%d tables are left", len(r.Expression.Tables))
		}
		want, a, b := 0.0, 1.0, 2.0 // ln Z by the transfer matrix, normalised
		for range n - 1 {
			a, b = 2*a+b, 2*(a+2*b)
			want += math.Log(a + b)
			a, b = a/(a+b), b/(a+b)
		}
		want += math.Log(a + b) // 0 but for rounding, ln 3 without steps
		if got := r.Expression.Scale.LogAbs(); math.Abs(got-want) > 1e-9*want {
			t.Errorf("ln Z = %v, want %v", got, want)
		}
		if o.Marginals {
			for _, i := range []int{0, n / 2, n - 1} {
				p, err := r.Recover(i, make([][]float64, n))
				if err != nil {
					t.Fatal(err)
				}
				if i == n-1 && math.Abs(p[1]-b) > 1e-12 {
					t.Errorf("marginal of the last variable %v, want %v", p[1], b)
				}
			}
		}
	}
}

// TestEntriesFarApart: tables whose entries span all of float64, subnormal ones among them, some of
// them products. The result is within the error stated, whichever entries count in the end, and 0
// where the value is.
func TestEntriesFarApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	far := func() float64 {
		switch rng.IntN(8) {
		case 0:
			return 0
		case 1:
			return math.Ldexp(float64(1+rng.IntN(60)), -1074)
		case 2, 3:
			return 1
		case 4:
			return 0.25 + rng.Float64()
		}
		return math.Ldexp(1+rng.Float64(), rng.IntN(2040)-1020)
	}
	list := func(n int) []float64 {
		out := make([]float64, n)
		for k := range out {
			out[k] = far()
		}
		return out
	}
	for round := range nightly.Rounds(8_000, 20_000) {
		e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2, 2}}
		for range 2 + rng.IntN(4) {
			i := rng.IntN(3)
			switch u, v, w := list(2), list(4), list(4); rng.IntN(4) {
			case 0:
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: u})
			case 1:
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, (i + 1) % 3}, Data: v})
			default: // a product, over two or three indices
				var data []float64
				for x := range 8 {
					p := v[x>>1] * w[x>>2*2+x&1]
					if p-p != 0 {
						p = far()
					}
					data = append(data, p)
				}
				scope := []int{i, (i + 1) % 3, (i + 2) % 3}
				if rng.IntN(2) == 0 {
					data, scope = data[:4], scope[:2]
				}
				e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
			}
		}
		for _, o := range []preprocess.Options{{}, {Marginals: true},
			preprocess.Always(preprocess.Options{})} {
			r := run(t, e, o)
			want := oracle.Sum(e, 0).Z
			left := oracle.Sum(r.Expression, 0)
			got, size := left.Z, left.Terms
			bound := math.Ldexp(r.Rounding+1, -53)
			if d := away(got, want, size); d > bound || got.Sign() != want.Sign() {
				t.Fatalf("round %d: %v, it is %v: off by %.3g of it, %.3g is stated\n%+v\n%+v",
					round, got, want, d, bound, e, r.Report)
			}
		}
	}
}
