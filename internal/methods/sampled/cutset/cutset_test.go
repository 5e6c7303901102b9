package cutset

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawExpression draws an expression of tables over one to three of some indices of one to three values, with entries e^±strength and a
// share of them 0.
func drawExpression(r *rand.Rand, strength float64) *sumproduct.Expression {
	n := 3 + r.IntN(8)
	e := &sumproduct.Expression{Scale: scaled.FromFloat(math.Exp(3 * r.NormFloat64()))}
	for range n {
		e.Dims = append(e.Dims, []int{1, 2, 2, 2, 2, 3}[r.IntN(6)])
	}
	zeros := 0.0
	if r.IntN(2) == 0 {
		zeros = 0.3 * r.Float64()
	}
	e.Tables = oracle.RandomTables(r, e.Dims, n+r.IntN(n), strength, zeros)
	return e
}

// cutOrder returns an order of all indices, those that are summed out first, and their number, for products with a limit of entries.
func cutOrder(t *testing.T, e *sumproduct.Expression, entries float64) (order []int, rest int) {
	t.Helper()
	h := e.Hypergraph()
	order, rest, ok := Choose(h, orders.MinFill(h), entries, math.MaxInt)
	if !ok {
		t.Fatal("no cut-set")
	}
	for i := range e.Dims {
		if !slices.Contains(order, i) {
			order = append(order, i)
		}
	}
	return order, rest
}

// exactSlice returns by enumeration ln of the sum over all states with the cut-set at the values of x, and the shares of the values of all
// indices.
func exactSlice(e *sumproduct.Expression, cut []bool, x []int) (ln float64, shares [][]float64) {
	shares = make([][]float64, len(e.Dims))
	for i, d := range e.Dims {
		shares[i] = make([]float64, d)
	}
	// Logarithms, so that nothing leaves the range.
	var terms []float64
	var states [][]int
	oracle.Each(e.Dims, func(y []int) {
		for i, fixed := range cut {
			if fixed && y[i] != x[i] {
				return
			}
		}
		terms, states = append(terms, oracle.LnWeight(e, y)), append(states, slices.Clone(y))
	})
	top := slices.Max(terms)
	if math.IsInf(top, -1) {
		return top, shares
	}
	sum := 0.0
	for _, v := range terms {
		sum += math.Exp(v - top)
	}
	for s, v := range terms {
		for i, a := range states[s] {
			shares[i][a] += math.Exp(v-top) / sum
		}
	}
	return top + math.Log(sum), shares
}

// TestTablesOfTheCutSetKeepTheirRange: of two tables over the cut-set alone one has the value that the other nearly excludes, further below
// its largest entry than float64 reaches.
func TestTablesOfTheCutSetKeepTheirRange(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0}, Data: []float64{1e300, 1e-300}}, {Scope: []int{0}, Data: []float64{0, 1e300}},
		{Scope: []int{0, 1}, Data: []float64{1, 2, 3, 4}},
	}}
	p, err := New(t.Context(), e, []int{1, 0}, 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range []float64{math.Inf(-1), math.Log(7)} {
		got, err := p.NewSpace().LnSlice(t.Context(), nil, []int{a, 0}, nil)
		if err != nil || !(math.Abs(got-want) < 1e-12) && got != want {
			t.Errorf("value %d: %v, want %v; %v", a, got, want, err)
		}
	}
}

// TestSlicesAgreeWithEnumeration: sums and shares, of mild tables and of those whose products leave the range of float64.
func TestSlicesAgreeWithEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	cuts, zeros, deep, fixed := 0, 0, 0, 0
	for k := range 1500 {
		strength := []float64{1, 3, 300}[k%3]
		e := drawExpression(r, strength)
		order, rest := cutOrder(t, e, []float64{1, 2, 4, 8}[k%4])
		p, err := New(t.Context(), e, order, rest, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		for k := range p.steps {
			if p.commonMessages[k].data != nil {
				fixed++
			}
		}
		s := p.NewSpace()
		for range 3 {
			x := make([]int, len(e.Dims))
			shares := make([][]float64, len(e.Dims))
			for i, d := range e.Dims {
				x[i], shares[i] = r.IntN(d), make([]float64, d)
			}
			want, marginals := exactSlice(e, p.isCut, x)
			alone, err := s.LnSlice(t.Context(), r, x, nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.LnSlice(t.Context(), r, x, shares)
			if err != nil {
				t.Fatal(err)
			}
			if rest < len(order) {
				cuts++
			}
			if math.IsInf(want, -1) {
				zeros++
			}
			if alone != got || got != want && !(math.Abs(got-want) <= 1e-9*(1+math.Abs(want))) {
				t.Fatalf("model %d: ln %v and %v, want %v", k, got, alone, want)
			}
			if math.IsInf(want, -1) {
				continue
			}
			drawn := strength > 3
			for i, row := range shares {
				sum := 0.0
				for a, x := range row {
					sum += x
					drawn = drawn && (x == 0 || x == 1)
					if !(math.Abs(x-marginals[i][a]) < 1e-9) && strength <= 3 {
						t.Fatalf("model %d: index %d has value %d by %v, want %v", k, i, a, x, marginals[i][a])
					}
				}
				if math.Abs(sum-1) > 1e-9 {
					t.Fatalf("model %d: shares of index %d add up to %v", k, i, sum)
				}
			}
			if drawn {
				deep++
			}
		}
	}
	if cuts < 1000 || zeros < 100 || deep < 100 || fixed < 100 {
		t.Errorf("%d slices have a cut-set, %d are 0, %d are deep, %d steps are fixed", cuts, zeros, deep, fixed)
	}
}

// TestDeepSlicesDrawTheRest: where products leave the range of float64 a state of the rest is drawn with its probability.
func TestDeepSlicesDrawTheRest(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2, 2}, Scale: scaled.One}
	// x0 and x1 are equal, and so are x1 and x2; the tables of the cut-set's index 2 have a range of e^700.
	e.Tables = []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{3, 1, 1, 1}},
		{Scope: []int{1, 2}, Data: []float64{1, 1e-290, 2e-290, 1}},
		{Scope: []int{0, 2}, Data: []float64{1, 1, 1e-290, 1}},
	}
	p, err := New(t.Context(), e, []int{0, 1, 2}, 2, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	_, want := exactSlice(e, p.isCut, []int{0, 0, 1})
	s := p.NewSpace()
	mean := 0.0
	const draws = 4000
	for c := range uint64(draws) {
		shares := [][]float64{{0, 0}, {0, 0}, {0, 0}}
		if _, err := s.LnSlice(t.Context(), rand.New(rand.NewPCG(9, c)), []int{0, 0, 1}, shares); err != nil {
			t.Fatal(err)
		}
		if x := shares[0][1]; x != 0 && x != 1 {
			t.Fatalf("share %v", x)
		}
		mean += shares[0][1] / draws
	}
	if math.Abs(mean-want[0][1]) > 0.04 {
		t.Errorf("value 1 is drawn by %v, want %v", mean, want[0][1])
	}
}

// TestProductsFitTheEntries: no product of a chosen cut-set's rest is larger, and a tree has a cut-set for single tables alone.
func TestProductsFitTheEntries(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 5))
	for range 300 {
		e := drawExpression(r, 1)
		for _, entries := range []float64{2, 4, 9} {
			order, rest := cutOrder(t, e, entries)
			steps, _ := planSteps(e.Hypergraph(), order, rest)
			for _, s := range steps {
				n := float64(e.Dims[s.Drop[0]])
				for _, i := range s.Out {
					n *= float64(e.Dims[i])
				}
				if n > entries {
					t.Fatalf("a product of %v entries, at most %v", n, entries)
				}
			}
		}
	}
	star := &sumproduct.Expression{Dims: []int{2, 2, 2, 2}, Scale: scaled.One}
	for i := 1; i < 4; i++ {
		star.Tables = append(star.Tables, sumproduct.Table{Scope: []int{0, i}, Data: []float64{1, 2, 3, 4}})
	}
	if _, rest := cutOrder(t, star, 4); rest != 4 {
		t.Errorf("%d indices of a star are summed out", rest)
	}
	if order, rest := cutOrder(t, star, 2); rest != 3 || order[3] != 0 {
		t.Errorf("order %v, %d summed out: a star is cut at its centre", order, rest)
	}
	h := star.Hypergraph()
	if _, _, ok := Choose(h, orders.MinFill(h), 4, 6); ok {
		t.Error("seven indices of products are six")
	}
}

// TestWhatIsRefused: orders that are none, too little memory, entries below 0, a context that is over.
func TestWhatIsRefused(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2}, Scale: scaled.One}
	e.Tables = []sumproduct.Table{{Scope: []int{0, 1}, Data: []float64{1, 2, 3, 4}}}
	for name, given := range map[string]struct {
		order  []int
		rest   int
		memory int64
	}{
		"an index twice":       {[]int{0, 0}, 1, 1 << 20},
		"one index missing":    {[]int{0}, 1, 1 << 20},
		"an index that is not": {[]int{0, 2}, 1, 1 << 20},
		"more than there are":  {[]int{0, 1}, 3, 1 << 20},
		"no memory":            {[]int{0, 1}, 1, 10},
	} {
		if _, err := New(t.Context(), e, given.order, given.rest, given.memory); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	p, err := New(t.Context(), e, []int{0, 1}, 1, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.NewSpace().LnSlice(ctx, nil, []int{0, 0}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	e.Tables[0].Data[1] = -1
	if _, err := New(t.Context(), e, []int{0, 1}, 1, 1<<20); err == nil {
		t.Error("an entry below 0 is accepted")
	}
}
