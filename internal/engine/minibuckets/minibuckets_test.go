package minibuckets

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// random is an expression of tables over one to three of some indices of two to three values, entries e^±strength, a share of them 0.
func random(r *rand.Rand) *sumproduct.Expression {
	n := 1 + r.IntN(8)
	e := &sumproduct.Expression{Scale: scaled.FromFloat(math.Exp(3 * r.NormFloat64()))}
	for range n {
		e.Dims = append(e.Dims, 1+r.IntN(3))
	}
	strength, zeros := 3*r.Float64(), 0.0
	if r.IntN(3) == 0 {
		zeros = 0.3 * r.Float64()
	}
	e.Tables = oracle.RandomTables(r, e.Dims, 1+n+r.IntN(2*n), strength, zeros)
	return e
}

// enumerate is ln Z by all states.
func enumerate(e *sumproduct.Expression) float64 {
	z := 0.0
	oracle.Each(e.Dims, func(x []int) { z += math.Exp(oracle.LnWeight(e, x)) })
	return math.Log(z)
}

func bounded(t *testing.T, e *sumproduct.Expression, entries, below float64) (*Bound, *Plan) {
	t.Helper()
	p, err := NewPlan(e.Hypergraph(), orders.MinFill(e.Hypergraph()), entries)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(t.Context(), e, p, below)
	if err != nil {
		t.Fatal(err)
	}
	return b, p
}

// TestBoundsHold on 5,000 models against enumeration, and meet where nothing is divided.
func TestBoundsHold(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	divided, tight := 0, 0
	for k := range 5000 {
		e := random(r)
		want := enumerate(e)
		entries := []float64{2, 3, 6, 9, 1e9}[k%5]
		upper, p := bounded(t, e, entries, 0)
		if upper.Ln < want {
			t.Errorf("model %d: upper bound %v, ln Z %v", k, upper.Ln, want)
		}
		for _, below := range []float64{0.1, 1} {
			lower, _ := bounded(t, e, entries, below)
			if lower.Ln > want {
				t.Errorf("model %d: lower bound %v, ln Z %v", k, lower.Ln, want)
			}
			if p.Split == 0 && !(upper.Ln-lower.Ln < 1e-9) && !math.IsInf(want, -1) {
				t.Errorf("model %d: %v and %v, nothing is divided", k, lower.Ln, upper.Ln)
			}
			if p.Split > 0 && upper.Ln-lower.Ln < 1 {
				tight++
			}
		}
		if p.Split > 0 {
			divided++
		}
	}
	if divided < 500 || tight < 100 {
		t.Errorf("%d models are divided, %d pairs of bounds are within a nat: too few to tell anything", divided, tight)
	}
}

// TestDrawsAreUnbiasedAndBounded: no weight is above the bound, and their mean is Z.
func TestDrawsAreUnbiasedAndBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	off := 0
	const models = 60
	for k := range models {
		e := random(r)
		want := enumerate(e)
		b, _ := bounded(t, e, []float64{2, 4, 9}[k%3], 0)
		x := make([]int, len(e.Dims))
		const n = 4000
		sum, squares := 0.0, 0.0
		for range n {
			ln := b.Draw(r, x, e)
			if ln > b.Ln {
				t.Fatalf("model %d: a weight of e^%v, the bound is e^%v", k, ln, b.Ln)
			}
			w := math.Exp(ln - b.Ln)
			sum += w
			squares += w * w
		}
		mean := sum / n
		z := (mean - math.Exp(want-b.Ln)) / (math.Sqrt(max(0, squares/n-mean*mean)/n) + 1e-9)
		if math.Abs(z) > 5 {
			t.Errorf("model %d: mean of the weights %v, Z %v, %.1f standard errors", k, mean, math.Exp(want-b.Ln), z)
		}
		if math.Abs(z) > 2 {
			off++
		}
	}
	if off > models/6 {
		t.Errorf("%d of %d means are two standard errors off", off, models)
	}
}

// TestMatchingHelps: moved functions make upper bounds of a grid tighter on the whole.
func TestMatchingHelps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	e := &sumproduct.Expression{Scale: scaled.One}
	const side = 4
	for range side * side {
		e.Dims = append(e.Dims, 2)
	}
	for i := range side {
		for k := range side {
			for _, to := range [][2]int{{i + 1, k}, {i, k + 1}} {
				if to[0] < side && to[1] < side {
					data := make([]float64, 4)
					for a := range data {
						data[a] = math.Exp(2 * r.NormFloat64())
					}
					e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i*side + k, to[0]*side + to[1]}, Data: data})
				}
			}
		}
	}
	want := enumerate(e)
	last := math.Inf(1)
	for _, entries := range []float64{4, 8, 32} {
		b, _ := bounded(t, e, entries, 0)
		gap := b.Ln - want
		if gap < 0 || gap > last+0.5 {
			t.Errorf("products of %v entries: %v nats above, %v with smaller ones", entries, gap, last)
		}
		last = gap
	}
	if last > 1e-9 {
		t.Errorf("products that fit: %v nats above", last)
	}
}

// TestMatchingOfWhatIsShared: a glass without a field is the same with all spins turned, so that functions of one index have nothing to
// move; functions of the indices that mini-buckets share take nats off, and more where any two move theirs.
func TestMatchingOfWhatIsShared(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 1))
	for _, c := range []struct {
		sides   []int
		entries float64
	}{{[]int{7, 7}, 128}, {[]int{4, 4, 4}, 64}} {
		e := &sumproduct.Expression{Scale: scaled.One}
		n := sumproduct.Size([]int{0, 1, 2, 3, 4, 5, 6, 7}, c.sides)
		for i := range n {
			e.Dims = append(e.Dims, 2)
			step := 1
			for _, side := range c.sides {
				next := i + step
				if i/step%side == side-1 {
					next -= side * step
				}
				step *= side
				x := math.Exp(float64(2*r.IntN(2) - 1))
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, next}, Data: []float64{x, 1 / x, 1 / x, x}})
			}
		}
		together, p := bounded(t, e, c.entries, 0)
		for k, minis := range together.minis { // the kept moves are the ones that were done
			for i, m := range minis {
				f := together.product(&p.buckets[k][i])
				for _, moved := range m.shifts {
					addLogs(f, p.buckets[k][i].scope, moved, p.dims)
				}
				for a, ln := range powerSums(f, 2, m.weight) {
					if got := together.tables[m.message].ln[a]; math.Abs(got-ln) > 1e-9 {
						t.Fatalf("sides %v: message %d is %v of entry %d, not %v", c.sides, m.message, got, a, ln)
					}
				}
			}
		}
		for k, list := range p.moves {
			if len(list) > 0 {
				p.moves[k] = list[len(list)-1:]
			}
		}
		common, err := Run(t.Context(), e, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		for k, list := range p.moves {
			if len(list) > 0 {
				p.moves[k] = []move{{list[0].between, []int{p.Order[k]}}}
			}
		}
		single, err := Run(t.Context(), e, p, 0)
		if err != nil {
			t.Fatal(err)
		}
		if common.Ln > single.Ln-0.3 || together.Ln > common.Ln-1 {
			t.Errorf("sides %v: bounds of %v by any two, %v by all, %v by the index", c.sides, together.Ln, common.Ln, single.Ln)
		}
	}
}

// TestMatchedMarginalsAgree: after every move the sums of f^{1/w} over all but the shared indices, by enumeration, are the same in
// the mini-buckets that it is between, and the product of all is unchanged.
func TestMatchedMarginalsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	between := map[int]int{} // moves by their number of mini-buckets
	for model := range 1000 {
		e := random(r)
		b, p := bounded(t, e, []float64{2, 4, 6}[model%3], 0)
		for k, list := range p.moves {
			products := make([][]float64, len(p.buckets[k]))
			for i := range products {
				products[i] = b.product(&p.buckets[k][i])
			}
			total := func(x []int) (ln float64) {
				for i, m := range p.buckets[k] {
					ln += products[i][positionIn(m.scope, e.Dims, x)]
				}
				return ln
			}
			var before []float64
			oracle.Each(e.Dims, func(x []int) { before = append(before, total(x)) })
			for _, m := range list {
				b.match(k, m, products)
				between[len(m.between)]++
				sums := make([][]float64, len(m.between))
				for j, i := range m.between {
					sums[j] = marginalsOf(products[i], p.buckets[k][i].scope, m.shared, e.Dims, b.minis[k][i].weight)
				}
				for j, own := range sums {
					for a, sum := range own {
						if first := sums[0][a]; math.Abs(sum-first) > 1e-9*first {
							t.Fatalf("model %d, move %v: entry %d is %v in one and %v in number %d", model, m, a, first, sum, j)
						}
					}
				}
			}
			at := 0
			oracle.Each(e.Dims, func(x []int) {
				if got := total(x); math.Abs(got-before[at]) > 1e-9*(1+math.Abs(got)) { // -Inf less -Inf is no number
					t.Errorf("model %d, index %d: the product is e^%v at %v, it was e^%v", model, p.Order[k], got, x, before[at])
				}
				at++
			})
		}
	}
	if between[2] < 100 || between[3] < 20 {
		t.Errorf("moves by how many they are between: %v", between)
	}
}

// marginalsOf is Σ f^{1/w} of the logarithms of a table over all of its indices but the shared ones.
func marginalsOf(ln []float64, scope, shared, dims []int, w float64) []float64 {
	sums := make([]float64, sumproduct.Size(dims, shared))
	own := make([]int, len(scope))
	for k, i := range scope {
		own[k] = dims[i]
	}
	x := make([]int, len(dims))
	at := 0
	oracle.Each(own, func(values []int) {
		for k, i := range scope {
			x[i] = values[k]
		}
		sums[positionIn(shared, dims, x)] += math.Exp(ln[at] / w)
		at++
	})
	return sums
}

// TestWhatIsForbiddenInOneIsInAll: where one of two mini-buckets forbids a value, the other's entry there counts for nothing.
func TestWhatIsForbiddenInOneIsInAll(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 2, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: []float64{1, 1, 0, 0}}, {Scope: []int{0, 2}, Data: []float64{1, 1, 1e6, 1e6}},
	}}
	p, err := NewPlan(e.Hypergraph(), []int{0, 1, 2}, 4)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Run(t.Context(), e, p, 0)
	if want := enumerate(e); err != nil || p.Split != 1 || math.Abs(b.Ln-want) > 1e-9 {
		t.Errorf("%v (%v), ln Z %v", b.Ln, err, want)
	}
}

// TestWhatIsRefused: entries below 0, orders that are none, a context that is over.
func TestWhatIsRefused(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2}, Scale: scaled.One, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, -1}}}}
	for _, order := range [][]int{{}, {1}, {0, 0}} {
		if _, err := NewPlan(e.Hypergraph(), order, 4); err == nil {
			t.Errorf("order %v is accepted", order)
		}
	}
	p, err := NewPlan(e.Hypergraph(), []int{0}, 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), e, p, 0); err == nil {
		t.Error("an entry below 0 is accepted")
	}
	e.Tables[0].Data[1] = 1
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, e, p, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
