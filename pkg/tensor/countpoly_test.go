package tensor

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestLemma3CountPolyAgainstBruteForce(t *testing.T) {
	for seed := range uint64(150) {
		r := seeded(t, seed)
		dims := randomDims(r, r.IntN(6))
		d := 1 + r.IntN(3)
		for _, form := range randomForms(r, dims) {
			w := randomWeights(r, form, d)
			p, err := CountPoly(form, w, d, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, scale := bruteCounts(form, w, d, nil)
			samePoly(t, fmt.Sprintf("%T %v d=%d", form, dims, d), p, want, scale)
		}
	}
}

func TestLegPolysAgainstBruteForce(t *testing.T) {
	for seed := range uint64(60) {
		r := seeded(t, seed)
		dims := randomDims(r, 1+r.IntN(5))
		d := 1 + r.IntN(3)
		for _, form := range randomForms(r, dims) {
			w := randomWeights(r, form, d)
			out, err := LegPolys(form, w, d, nil)
			if err != nil {
				t.Fatal(err)
			}
			for leg, dim := range dims {
				if len(out[leg]) != dim {
					t.Fatalf("leg %d has %d polynomials, dimension %d", leg, len(out[leg]), dim)
				}
				for x, p := range out[leg] {
					want, scale := bruteCounts(form, w, d, map[int]int{leg: x})
					samePoly(t, fmt.Sprintf("%T %v d=%d leg %d at %d", form, dims, d, leg, x), p,
						want, scale)
				}
			}
		}
	}
}

// A table and weights near both ends of float64: coefficients reach 2^±6000. Oracle: math/big.
func TestCountPolyRange(t *testing.T) {
	r := seeded(t, 5)
	dims := []int{2, 3, 2, 2, 3, 2}
	table := randomDense(r, dims)
	vectors := randomCP(r, dims)
	for m, d := range dims {
		vectors.Vectors[m] = randomList(r, len(vectors.Weights)*d)
		for i := range vectors.Vectors[m] {
			vectors.Vectors[m][i] *= math.Ldexp(1, r.IntN(1800)-900)
		}
	}
	sym := randomSymmetryCP(r, dims)
	for i := range sym.Terms {
		sym.Terms[i].R = make([][]float64, len(dims))
		for m, d := range dims {
			sym.Terms[i].R[m] = randomList(r, d)
			for x := range d {
				sym.Terms[i].R[m][x] *= math.Ldexp(1, r.IntN(1800)-900)
			}
		}
	}
	for i := range table.Data {
		table.Data[i] *= math.Ldexp(1, r.IntN(1800)-900)
	}
	w := make([]LegWeights, len(dims))
	for leg, d := range dims {
		w[leg] = randomList(r, 2*d)
		for i := range w[leg] {
			w[leg][i] *= math.Ldexp(1, r.IntN(1800)-900)
		}
	}
	for _, form := range []Tensor{table, vectors, sym} {
		p, err := CountPoly(form, w, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, abs := bigCounts(form, w)
		for c := range want {
			got := p.At([]int{c})
			exact := new(big.Float).SetMantExp(big.NewFloat(got.Mant), int(got.Exp))
			diff := exact.Sub(exact, want[c])
			limit := new(big.Float).Mul(abs[c], big.NewFloat(tolerance))
			if diff.Abs(diff).Cmp(limit) > 0 {
				t.Errorf("%T: [z^%d] is off by %v, terms add up to %v", form, c, diff, abs[c])
			}
		}
	}
}

// bigCounts is bruteCounts for two levels in math/big, with the sum of absolute terms per count.
func bigCounts(t Tensor, w []LegWeights) (coef, abs []*big.Float) {
	n := len(w)
	for range n + 1 {
		coef, abs = append(coef, new(big.Float).SetPrec(300)), append(abs,
			new(big.Float).SetPrec(300))
	}
	two := make([]int, n)
	for i := range two {
		two[i] = 2
	}
	every(t.Dims(), func(x []int) {
		for _, entry := range bigEntry(t, x) {
			every(two, func(a []int) {
				p, c := new(big.Float).Set(entry), 0
				for leg := range x {
					p.Mul(p, big.NewFloat(w[leg][x[leg]*2+a[leg]]))
					c += a[leg]
				}
				coef[c].Add(coef[c], p)
				abs[c].Add(abs[c], p.Abs(p))
			})
		}
	})
	return coef, abs
}

// bigEntry returns the summands of entry x.
func bigEntry(t Tensor, x []int) (terms []*big.Float) {
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(f) }
	switch t := t.(type) {
	case *Dense:
		return []*big.Float{number(naive(t, x))}
	case *CP:
		for i, weight := range t.Weights {
			p := number(weight)
			for m := range x {
				p.Mul(p, number(t.Vectors[m][i*t.Shape[m]+x[m]]))
			}
			terms = append(terms, p)
		}
	case *SymmetryCP:
		for _, term := range t.Terms {
			p := number(term.Alpha * naiveValue(t.Levels, term.S, x))
			for m := range x {
				p.Mul(p, number(term.R[m][x[m]]))
			}
			terms = append(terms, p)
		}
	}
	return terms
}

// A variable tensor of degree 10,000: two terms, one linear polynomial a leg.
// Closed form: (1+z/2)^n + (1/3+z)^n.
func TestCountPolyVariableTensorOfDegree10000(t *testing.T) {
	n := 10000
	if testing.Short() {
		n = 2000
	}
	v := &CP{Shape: make([]int, n), Weights: []float64{1, 1}, Vectors: make([][]float64, n)}
	w := make([]LegWeights, n)
	for leg := range w {
		v.Shape[leg] = 2
		w[leg] = LegWeights{1, 0.5, 1. / 3, 1}
	}
	var ops countspace.Ops
	p, err := CountPoly(v, w, 2, &ops)
	if err != nil {
		t.Fatal(err)
	}
	lnChoose := func(c int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(c + 1))
		d, _ := math.Lgamma(float64(n - c + 1))
		return a - b - d
	}
	for _, c := range []int{0, 1, n / 3, n / 2, n} {
		want := scaled.FromLog(lnChoose(c) +
			float64(c)*math.Log(0.5)).Add(scaled.FromLog(lnChoose(c) + float64(n-c)*math.Log(1./3)))
		if got := p.At([]int{c}).LogAbs(); math.Abs(got-want.LogAbs()) > 1e-9*math.Max(1,
			math.Abs(got)) {
			t.Errorf("ln [z^%d] = %v, want %v", c, got, want.LogAbs())
		}
	}
	if ops.MulAdds > int64(n)*int64(n)*11/10 {
		t.Errorf("%d multiply-adds, two product trees take about n² = %d", ops.MulAdds, n*n)
	}
}

func TestCountPolyErrors(t *testing.T) {
	table := &Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}
	two := LegWeights{1, 1, 1, 1}
	for _, c := range []struct {
		t    Tensor
		w    []LegWeights
		d    int
		want error
	}{
		{table, []LegWeights{two}, 2, ErrShape},
		{table, []LegWeights{two, {1, 1, 1}}, 2, ErrShape},
		{table, []LegWeights{two, two}, 0, ErrShape},
		{nil, nil, 1, ErrShape},
		{table, []LegWeights{two, {1, math.NaN(), 1, 1}}, 2, ErrNotFinite},
		{table, []LegWeights{two, {1, math.Inf(-1), 1, 1}}, 2, ErrNotFinite},
	} {
		if _, err := CountPoly(c.t, c.w, c.d, nil); !errors.Is(err, c.want) {
			t.Errorf("CountPoly: %v, want %v", err, c.want)
		}
		if _, err := LegPolys(c.t, c.w, c.d, nil); !errors.Is(err, c.want) {
			t.Errorf("LegPolys: %v, want %v", err, c.want)
		}
	}
	// 300 legs at 5 levels: a box of 301^4 coefficients.
	n, d := 300, 5
	v := &CP{Shape: make([]int, n), Weights: []float64{1}, Vectors: make([][]float64, n)}
	s := &Symmetric{
		Shape:  make([]int, n),
		Levels: countspace.Levels{D: 1, Of: make([][]uint8, n)},
		Values: scaled.Vector{Mant: []float64{1}},
	}
	w := make([]LegWeights, n)
	for leg := range w {
		v.Shape[leg], v.Vectors[leg] = 1, []float64{1}
		s.Shape[leg], s.Levels.Of[leg] = 1, []uint8{0}
		w[leg] = LegWeights{1, 1, 1, 1, 1}
	}
	for _, form := range []Tensor{v, s} {
		if _, err := CountPoly(form, w, d, nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%T: %v, want %v", form, err, ErrTooLarge)
		}
		if _, err := LegPolys(form, w, d, nil); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%T: %v, want %v", form, err, ErrTooLarge)
		}
	}
}

// Joint counts over more legs than one block:
// the symmetric form against its own table, another algorithm.
func TestCountPolyJointCountsOfManyLegs(t *testing.T) {
	for seed := range uint64(4) {
		r := seeded(t, seed)
		dims := make([]int, 11)
		for leg := range dims {
			dims[leg] = 2 + r.IntN(2)*leg/10
		}
		form := randomSymmetryCP(r, dims)
		w := make([]LegWeights, len(dims))
		for leg, d := range dims {
			w[leg] = randomList(r, 2*d)
		}
		dense, err := ToDense(form, 1<<14)
		if err != nil {
			t.Fatal(err)
		}
		got, err := CountPoly(form, w, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := CountPoly(dense, w, 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		for c := range len(dims) + 1 {
			a, b := got.At([]int{c}).Float64(), want.At([]int{c}).Float64()
			if math.Abs(a-b) > 1e-10*(1+math.Abs(b)) {
				t.Fatalf("[z^%d] = %v, by its table %v", c, a, b)
			}
		}
	}
}

// Lemma 3 pays d^n for a table of n legs:
// partial tables hold polynomials, so no level is multiplied out.
func TestLemma3CostOfDenseTables(t *testing.T) {
	r := seeded(t, 1)
	for n := 4; n <= 14; n += 2 {
		form := randomDense(r, slices.Repeat([]int{2}, n))
		w := make([]LegWeights, n)
		for leg := range w {
			w[leg] = LegWeights{1, 2, 3, 4}
		}
		var ops countspace.Ops
		if _, err := CountPoly(form, w, 2, &ops); err != nil {
			t.Fatal(err)
		}
		// Σ_k 2^(n−k)·(k+1) multiply-adds for each of two levels,
		// k legs being contracted already: below 8·2^n.
		if ops.MulAdds > 8<<n || ops.MulAdds < 1<<n {
			t.Errorf("%d legs: %d multiply-adds, %d entries", n, ops.MulAdds, 1<<n)
		}
	}
}
