package baseline

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// renormalised writes the model of s out: an index per bucket, the tables as they were split, a pair
// of vectors per replica except that of bucket but.
func renormalised(s *renormaliser, e *sumproduct.Expression, but int) *sumproduct.Expression {
	r := &sumproduct.Expression{Dims: make([]int, len(s.buckets)), Scale: s.scale}
	// where is the bucket whose replica of index i is meant in what bucket k hands on.
	where := func(k, i int) int {
		for ; s.buckets[k].scope[0] != i; k = s.buckets[k].parent {
		}
		return k
	}
	for k, b := range s.buckets {
		r.Dims[k] = b.dims[0]
		for _, t := range b.tables {
			var scope []int
			for _, i := range t.axes {
				scope = append(scope, where(k, i))
			}
			r.Tables = append(r.Tables, sumproduct.Table{Scope: scope, Data: t.data})
		}
		if b.main != k && k != but {
			r.Tables = append(r.Tables, sumproduct.Table{Scope: []int{k}, Data: s.u[k]},
				sumproduct.Table{Scope: []int{b.main}, Data: s.u[k]})
		}
	}
	return r
}

func contracted(t *testing.T, e *sumproduct.Expression) scaled.Number {
	t.Helper()
	z, _, err := einsum.Contract(context.Background(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// TestRenormalisedModel: messages up and down give what the renormalised model, written out, gives
// an engine of its own.
func TestRenormalisedModel(t *testing.T) {
	pairs := 0
	for seed := range uint64(30) {
		m := generate.Small(rand.New(rand.NewPCG(seed, 2)), generate.SmallOptions{
			Variables: 9,
			Factors:   14,
			Kinds:     []generate.Kind{generate.Dense},
			Zeros:     0.05,
		})
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := lower.Build(context.Background(), net)
		if err != nil {
			t.Fatal(err)
		}
		split, err := newTree(t.Context(), e, 2)
		if err != nil {
			t.Fatal(err)
		}
		n := len(split.buckets)
		s := &renormaliser{
			tree: split,
			u:    make([][]float64, n),
			up:   make([]table, n),
			exp:  make([]int64, n),
			down: make([]table, n),
		}
		for k := range n {
			s.local(k)
		}
		for k := n - 1; k >= 0; k-- {
			if split.buckets[k].main == k {
				continue
			}
			pairs++
			got, d := s.pair(k), split.buckets[k].dims[0]
			var want []scaled.Number
			open := renormalised(s, e, k)
			for x := range d {
				for y := range d {
					point := &sumproduct.Expression{Dims: open.Dims, Scale: open.Scale, Tables: slices.Clone(open.Tables)}
					for bucket, v := range map[int]int{k: x, split.buckets[k].main: y} {
						one := make([]float64, d)
						one[v] = 1
						point.Tables = append(point.Tables, sumproduct.Table{Scope: []int{bucket}, Data: one})
					}
					want = append(want, contracted(t, point))
				}
			}
			// Both are the same up to a factor.
			a, b := scaled.Sum(scaled.FromFloats(got.data).Numbers()), scaled.Sum(want)
			for c := range want {
				if x, y := got.data[c]/a.Float64(), want[c].Div(b).Float64(); !b.IsZero() && !(math.Abs(x-y) < 1e-12) {
					t.Errorf("model %d, bucket %d: entry %d of M is %v, want %v", seed, k, c, x, y)
				}
			}
			s.global(k)
		}
		if got, want := s.value(), contracted(t, renormalised(s, e, -1)).LogAbs(); got != want &&
			!(math.Abs(got-want) < 1e-11) {
			t.Errorf("model %d: ln Z of the renormalised model is %v, want %v", seed, got, want)
		}
	}
	if pairs < 50 {
		t.Errorf("%d pairs are too few to say anything", pairs)
	}
}

// TestLeadingVector: it is the eigenvector of M Mᵀ with the largest Rayleigh quotient, and uniform
// where M leaves a choice.
func TestLeadingVector(t *testing.T) {
	s := &renormaliser{}
	u := s.leading(table{data: []float64{3, 0, 0, 4}}, 2)
	if !slices.Equal(u, []float64{0, 1}) {
		t.Errorf("of diag(3, 4): %v", u)
	}
	for _, data := range [][]float64{{2, 0, 0, 2}, {0, 0, 0, 0}} {
		if u := s.leading(table{data: data}, 2); math.Abs(u[0]-math.Sqrt(0.5)) > 1e-15 || u[0] != u[1] {
			t.Errorf("of %v: %v", data, u)
		}
	}
	if u := s.leading(table{data: []float64{1, 2, 3, 2, 4, 6}}, 2); math.Abs(u[1]-2*u[0]) > 1e-15 {
		t.Errorf("of (1, 2)ᵀ(1, 2, 3): %v", u)
	}
}
