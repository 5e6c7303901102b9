package countspace

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestDotAndShiftsAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	for trial := range 300 {
		vars := trial % 4
		s, f := anyPoly(rng, vars, oracleSpan), anyPoly(rng, vars, 1+trial)
		bs, bf := bigOf(s), bigOf(f)
		want, size := bigCorrelate(bs, bf, nil)
		if got := Dot(s, f, nil); !within(got, want, size, f.Size()) {
			t.Fatalf("trial %d: dot is %v, want %.20g", trial, got, want)
		}
		shift := make([]int, vars)
		for a := range shift {
			shift[a] = rng.IntN(9) - 4
		}
		want, size = bigCorrelate(bs, bf, shift)
		if got := DotShift(s, f, shift, nil); !within(got, want, size, f.Size()) {
			t.Fatalf("trial %d: dot shifted by %v is %v, want %.20g", trial, shift, got, want)
		}
	}
}

func TestCorrelateAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 1))
	for trial := range 200 {
		s, p := anyPoly(rng, trial%4, oracleSpan), anyPoly(rng, trial%4, oracleSpan)
		h := Correlate(s, p, nil)
		bs, bp := bigOf(s), bigOf(p)
		k := make([]int, len(h.Shape))
		for i := range h.Coef.Mant {
			want, size := bigCorrelate(bs, bp, k)
			if !within(h.Coef.At(i), want, size, p.Size()) {
				t.Fatalf("trial %d: h%v is %v, want %.20g", trial, k, h.Coef.At(i), want)
			}
			next(k, h.Shape)
		}
		for a := range h.Shape {
			if want := max(1, s.Shape[a]-p.Shape[a]+1); h.Shape[a] != want {
				t.Fatalf("trial %d: side %d is %d, want %d", trial, a, h.Shape[a], want)
			}
		}
	}
}

// ⟨S, p·q⟩ = ⟨S contracted backwards with p, q⟩, to the last bit on small integers: learning's sweeps rely on it.
func TestCorrelateIsTheAdjointOfMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	for trial := range 200 {
		p, q := anyPoly(rng, trial%4, 0), anyPoly(rng, trial%4, 0)
		pq := p.Mul(q, nil)
		s := New(pq.Shape)
		for i := range s.Coef.Mant {
			s.put(i, scaled.FromFloat(float64(rng.IntN(99)-49)))
		}
		if got, want := Dot(Correlate(s, p, nil), q, nil), Dot(s, pq, nil); got != want {
			t.Fatalf("trial %d: backwards %v, forwards %v", trial, got, want)
		}
	}
}

// Terms far apart: terms that matter are kept exactly, negligible ones are dropped, and no order of arrival loses the large.
func TestTermsFarApart(t *testing.T) {
	num := func(m float64, e int64) scaled.Number { return scaled.Make(m, e) }
	ones := func(n int) Poly {
		p := New([]int{n})
		for i := range n {
			p.put(i, scaled.One)
		}
		return p
	}
	for _, c := range []struct {
		name  string
		terms []scaled.Number
		want  scaled.Number
	}{
		{"rising", []scaled.Number{num(1, -9000), num(1, -3000), num(1.5, 0)}, num(1.5, 0)},
		{"falling", []scaled.Number{num(1.5, 9000), num(1, 3000), num(1, 0)}, num(1.5, 9000)},
		{"large ones cancel before a small one",
			[]scaled.Number{num(1, 700), num(-1, 700), num(1.25, 0)}, num(1.25, 0)},
		{"zeros between", []scaled.Number{{}, num(1, -1<<50), {}, {}, {}, num(1, -1<<50), {}},
			num(1, 1-1<<50)},
		{"zeros only", make([]scaled.Number, 9), scaled.Number{}},
		{"in fours", []scaled.Number{num(1, 1<<50), num(1, 0), num(1, 1<<50), num(1, 1),
			num(-1, 1<<50), num(1, 1), num(1, 1),
			num(1, 1)}, num(1, 1<<50)},
	} {
		p := New([]int{len(c.terms)})
		for i, x := range c.terms {
			p.put(i, x)
		}
		if got := Dot(p, ones(len(c.terms)), nil); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNotFiniteComesOut(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for place := range 6 {
			p, q := New([]int{6}), New([]int{6})
			for i := range 6 {
				p.put(i, scaled.Make(1, 9000))
				q.put(i, scaled.Make(1, -1<<40))
			}
			p.put(place, scaled.FromFloat(bad))
			if got := Dot(p, q, nil); got.IsFinite() {
				t.Errorf("a dot product with %v at %d is the number %v", bad, place, got)
			}
			if r := p.Mul(q, nil); r.Coef.At(place).IsFinite() || r.Coef.At(place+5).IsFinite() {
				t.Errorf("a product with %v at %d hides it: %v", bad, place, r)
			}
		}
	}
}
