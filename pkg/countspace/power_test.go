package countspace

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestPowerAgainstBig: the multinomial theorem and repeated squaring against products one by one,
// with exact numbers.
func TestPowerAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 1))
	closed := 0
	for trial := range 200 {
		p, m := anyPoly(rng, trial%4, 40), rng.IntN(6)
		if trial%2 == 0 { // few terms
			for i := range p.Coef.Mant {
				if rng.IntN(p.Size()) > 2 {
					p.put(i, scaled.Number{})
				}
			}
		}
		if Closed(p) {
			closed++
		}
		one := bigPoly{{}: big.NewFloat(1).SetPrec(oracleBits)}
		want, size := one, one
		abs := New(p.Shape)
		for i := range abs.Coef.Mant {
			abs.put(i, p.Coef.At(i).Abs())
		}
		for range m {
			want, _ = bigMul(want, bigOf(p))
			size, _ = bigMul(size, bigOf(abs))
		}
		checkPoly(t, "p^m", Power(p, m, nil), want, size, 40*40)
	}
	if closed < 30 {
		t.Errorf("%d closed forms among 200", closed)
	}
}

// TestPowerKeepsDigits: the relative error of a closed form does not grow with the number of legs.
func TestPowerKeepsDigits(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		n    int
	}{{1, 1, 2_000}, {1e-30, 1e20, 2_000}, {-3, 1e-5, 2_001}, {0.3, 0.7, 2_000}} {
		p := Power(Linear([]float64{c.a, c.b}), c.n, nil)
		worst := 0.0
		for k, want := range bigBinomial(c.n, c.a, c.b) {
			worst = max(worst, relativeError(p.Coef.At(k), want))
		}
		if worst > 0x1p-52 {
			t.Errorf("(%g + %g z)^%d: relative error %.2g", c.a, c.b, c.n, worst)
		}
	}
}

// TestRangesAreThoseOfTheWhole: products and correlations of some coefficients have the bits of all.
func TestRangesAreThoseOfTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(18, 1))
	for range 200 {
		p, q := anyPoly(rng, 1, 30), anyPoly(rng, 1, 30)
		if isOneLeg(p) || isOneLeg(q) {
			continue
		}
		whole := p.Mul(q, nil)
		from := rng.IntN(whole.Size())
		to := from + 1 + rng.IntN(whole.Size()-from)
		part := MulRange(p, q, from, to, nil)
		for k := from; k < to; k++ {
			if part.At([]int{k - from}) != whole.At([]int{k}) {
				t.Fatalf("coefficient %d of %d to %d", k, from, to)
			}
		}
		from, to = from-p.Size()/2, to-p.Size()/2
		h := CorrelateRange(q, p, from, to, nil)
		for k := from; k < to; k++ {
			if h.At([]int{k - from}) != DotShift(q, p, []int{k}, nil) {
				t.Fatalf("correlation at %d of %d to %d", k, from, to)
			}
		}
	}
}

// TestCorrelateOnSomePlaces: at these it is Correlate, elsewhere 0.
func TestCorrelateOnSomePlaces(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 1))
	for trial := range 200 {
		vars := 1 + trial%3
		p, places := anyPoly(rng, vars, 30), anyPoly(rng, vars, 30)
		s := anyPoly(rng, vars, 30).Mul(p, nil).Mul(places, nil)
		if s.IsZero() {
			continue
		}
		got, want := CorrelateOn(s, p, places, nil), Correlate(s, p, nil)
		k := make([]int, vars)
		for i := range got.Coef.Mant {
			switch x := got.Coef.At(i); {
			case places.Coef.Mant[i] == 0 && !x.IsZero():
				t.Fatalf("trial %d: %v at %v, which is no place", trial, x, k)
			case places.Coef.Mant[i] != 0 && x.Sub(want.At(k)).Abs().Cmp(want.At(k).Abs().Mul(scaled.FromFloat(1e-9))) > 0:
				t.Fatalf("trial %d: %v at %v, want %v", trial, x, k, want.At(k))
			}
			next(k, got.Shape)
		}
	}
}
