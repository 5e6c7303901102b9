package methods_test

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// largeNetwork has n binary legs, dense links of 1 to 3 legs, and an estimate of r parts
// whose S spans hundreds of orders of magnitude, like the interaction of a Curie–Weiss model.
func largeNetwork(n, r int, class btn.Class) (*btn.Network, *btn.Estimate) {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(r)))
	dims := mixedDims(rng, n, 2, 2)
	net := &btn.Network{Dims: dims, Scale: scaled.One}
	for first := 0; first < n; {
		legs := make([]int, min(1+rng.IntN(3), n-first))
		for k := range legs {
			legs[k] = first + k
		}
		net.Links = append(net.Links,
			btn.Link{Legs: legs, T: modeltest.Tensor(rng, modeltest.Dense, dims[:len(legs)],
				modeltest.SmallOptions{})})
		first += len(legs)
	}
	e, frame := &btn.Estimate{}, &btn.Frame{Levels: countspace.TwoLevels(dims)}
	for i := range r {
		q := &closed.SymmetryRankOne{Frame: frame, S: countspace.New([]int{n + 1})}
		for c := range n + 1 {
			m := float64(2*c-n) / float64(n)
			q.S.Set([]int{c}, scaled.FromLog(float64(n)*(m*m*(1+0.1*float64(i))-0.2*m)))
		}
		if class == btn.ClassSymmetryRankOne {
			for range dims {
				q.R = append(q.R, []float64{0.2 + rng.Float64(), 0.2 + rng.Float64()})
			}
		}
		alpha := 0.5 + rng.Float64()
		if class == btn.ClassRankOne {
			add(e, alpha, &closed.RankOne{Frame: frame})
			continue
		}
		add(e, alpha, q)
	}
	return net, e
}

// countsByBigFloat is the other way to the same number:
// a table over the count so far, link after link, in 100-bit floats.
func countsByBigFloat(net *btn.Network, q *closed.SymmetryRankOne) *big.Float {
	const precision = 100
	table := []*big.Float{new(big.Float).SetPrec(precision).SetInt64(1)}
	for _, link := range net.Links {
		next := make([]*big.Float, len(table)+len(link.Legs))
		for c := range next {
			next[c] = new(big.Float).SetPrec(precision)
		}
		oracle.Each(link.T.Dims(), func(x []int) {
			p, ones := oracle.Entry(link.T, x), 0
			for k, v := range x {
				ones += v
				if q.R != nil {
					p.Mul(p, big.NewFloat(q.R[link.Legs[k]][v]))
				}
			}
			term := new(big.Float).SetPrec(precision)
			for c, t := range table {
				next[c+ones].Add(next[c+ones], term.Mul(t, p))
			}
		})
		table = next
	}
	z := new(big.Float).SetPrec(precision)
	for c, t := range table {
		s := new(big.Float).SetPrec(precision).SetFloat64(q.S.Coef.Mant[c])
		z.Add(z, t.Mul(t, s.SetMantExp(s, int(q.S.Coef.Exp[c]))))
	}
	return z
}

// largeTolerance is relative to Z:
// all terms are positive, and 1000 legs take about that many roundings.
const largeTolerance = 1e-12

func testLarge(t *testing.T, n, r int, class btn.Class) {
	net, e := largeNetwork(n, r, class)
	for i, part := range e.Parts {
		v, err := plain(net, part)
		if err != nil {
			t.Fatal(err)
		}
		want := countsByBigFloat(net, part.(*closed.SymmetryRankOne))
		if off := oracle.RelativeError(v.Z.Mant, v.Z.Exp,
			want); !(math.Abs(off) <= largeTolerance) {
			t.Errorf("part %d: ln Z = %v, want %v (relative error %.3g)",
				i, v.Z.LogAbs(), oracle.Ln(want), off)
		}
	}
}

func TestSymmetricCoreOver1000Legs(t *testing.T) { testLarge(t, 1000, 1, btn.ClassSymmetric) }

func TestSymmetryCPCoreOfRank8Over300Legs(t *testing.T) {
	testLarge(t, 300, 8, btn.ClassSymmetryRankOne)
}

// TestVariableOf2000Legs: one variable tensor V in CP form on all legs of a symmetric core;
// only its two terms are ever visited, so Z = Σ_x w(x) S_{n·x}.
func TestVariableOf2000Legs(t *testing.T) {
	const n = 2000
	_, e := largeNetwork(n, 1, btn.ClassSymmetric)
	net := &btn.Network{Dims: make([]int, n), Scale: scaled.One}
	legs := make([]int, n)
	for l := range legs {
		net.Dims[l], legs[l] = 2, l
	}
	net.Links = []btn.Link{{Legs: legs,
		T: &tensor.CP{Shape: net.Dims, Weights: []float64{3, 5}, Vectors: make([][]float64, n)}}}
	v, err := plain(net, e.Parts[0])
	if err != nil {
		t.Fatal(err)
	}
	s := e.Parts[0].(*closed.SymmetryRankOne).S
	want := s.At([]int{0}).Mul(scaled.FromFloat(3)).Add(s.At([]int{n}).Mul(scaled.FromFloat(5)))
	if off := v.Z.Div(want).Float64() - 1; math.Abs(off) > largeTolerance {
		t.Errorf("ln Z = %v, want %v", v.Z.LogAbs(), want.LogAbs())
	}
}

// TestMarginalsOver1000Variables: one symmetric factor over n equal variables.
// Every variable is 1 with weight Σ_c (c/n)·C(n,c)·w^c·S_c, numbers far beyond float64.
func TestMarginalsOver1000Variables(t *testing.T) {
	const n, w = 1000, 0.25
	_, e := largeNetwork(n, 1, btn.ClassSymmetric)
	q := e.Parts[0].(*closed.SymmetryRankOne)
	s := q.S
	m := &factorgraph.Model{}
	whole := factorgraph.Factor{Table: &tensor.Symmetric{Shape: make([]int, n),
		Levels: q.Frame.Levels, Values: s.Coef}}
	for v := range n {
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, w}}})
		whole.Scope = append(whole.Scope, v)
		whole.Table.(*tensor.Symmetric).Shape[v] = 2
	}
	m.Factors = append(m.Factors, whole)
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v := withMarginals(t, net, q, problem.Options{})
	z, one, ways := scaled.Number{}, scaled.Number{}, scaled.One // C(n,c)·w^c
	for c := range n + 1 {
		term := ways.Mul(s.At([]int{c}))
		z = z.Add(term)
		one = one.Add(term.Mul(scaled.FromFloat(float64(c) / n)))
		ways = ways.Mul(scaled.FromFloat(w * float64(n-c) / float64(c+1)))
	}
	for i := range n {
		for x, want := range []scaled.Number{z.Sub(one), one} {
			got := scaled.Make(v.Marginals.Mant[2*i+x], v.Marginals.Exp)
			if off := got.Div(want).Float64() - 1; !(math.Abs(off) < 1e-11) {
				t.Fatalf("variable %d, value %d: %v, want %v", i, x, got, want)
			}
		}
	}
	if z.Exp < 1024 && z.Exp > -1024 {
		t.Errorf("Z = %v fits a float64: the test is too small", z)
	}
}

func benchmarkLarge(b *testing.B, n, r int, class btn.Class) {
	net, e := largeNetwork(n, r, class)
	b.ReportAllocs()
	for b.Loop() {
		for _, part := range e.Parts {
			if _, err := plain(net, part); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkSymmetric1000Legs(b *testing.B) { benchmarkLarge(b, 1000, 1, btn.ClassSymmetric) }
func BenchmarkSymmetryCP300LegsRank8(b *testing.B) {
	benchmarkLarge(b, 300, 8, btn.ClassSymmetryRankOne)
}
func BenchmarkSymmetryRankOne10000Legs(b *testing.B) {
	benchmarkLarge(b, 10000, 1, btn.ClassSymmetryRankOne)
}
