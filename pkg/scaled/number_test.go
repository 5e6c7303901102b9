package scaled_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestArithmeticIsCorrectlyRounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for trial := range 20000 {
		span := []int64{3, 60, 2000}[trial%3]
		a, b := anyNumber(rng, span), anyNumber(rng, span)
		x, y := exactly(a), exactly(b)
		wide := func() *big.Float { return new(big.Float).SetPrec(20000) }
		check := func(op string, got scaled.Number, want *big.Float) {
			t.Helper()
			if got != nearest(want) {
				t.Fatalf("trial %d: %v %s %v = %v, want %v", trial, a, op, b, got, nearest(want))
			}
		}
		check("+", a.Add(b), wide().Add(x, y))
		check("-", a.Sub(b), wide().Sub(x, y))
		check("*", a.Mul(b), wide().Mul(x, y))
		if !b.IsZero() {
			check("/", a.Div(b), wide().SetPrec(400).Quo(x, y))
		}
		check("sqrt", a.Abs().Sqrt(), wide().SetPrec(400).Sqrt(exactly(a.Abs())))
		if got, want := a.Cmp(b), x.Cmp(y); got != want {
			t.Fatalf("trial %d: %v cmp %v = %d, want %d", trial, a, b, got, want)
		}
	}
}

func TestMakeNormalises(t *testing.T) {
	for _, c := range []struct {
		mant float64
		exp  int64
		want scaled.Number
	}{
		{0, 77, scaled.Number{}},
		{math.Copysign(0, -1), 5, scaled.Number{}},
		{1, 0, scaled.One},
		{-12, 3, scaled.Number{Mant: -1.5, Exp: 6}},
		{0.375, -1, scaled.Number{Mant: 1.5, Exp: -3}},
		{math.SmallestNonzeroFloat64, 10, scaled.Number{Mant: 1, Exp: -1064}},
		{math.MaxFloat64, 1 << 40, scaled.Number{Mant: math.Nextafter(2, 0), Exp: 1<<40 + 1023}},
	} {
		if got := scaled.Make(c.mant, c.exp); got != c.want {
			t.Errorf("Make(%v, %d) = %v, want %v", c.mant, c.exp, got, c.want)
		}
	}
}

func TestFloat64AndBack(t *testing.T) {
	for _, x := range []float64{0, 1, -3.75, 1e300, -1e-300, math.MaxFloat64,
		math.SmallestNonzeroFloat64, 2.5e-310} {
		if got := scaled.FromFloat(x).Float64(); got != x {
			t.Errorf("%v comes back as %v", x, got)
		}
	}
	for _, c := range []struct {
		a    scaled.Number
		want float64
	}{
		{scaled.Number{Mant: 1.5, Exp: 1 << 50}, math.Inf(1)},
		{scaled.Number{Mant: -1.5, Exp: 1024}, math.Inf(-1)},
		{scaled.Number{Mant: 1.5, Exp: -(1 << 50)}, 0},
		{scaled.Number{Mant: 1.5, Exp: -1075}, math.SmallestNonzeroFloat64},
	} {
		if got := c.a.Float64(); got != c.want {
			t.Errorf("%v as a float64 is %v, want %v", c.a, got, c.want)
		}
	}
}

func TestLogarithms(t *testing.T) {
	// ln 2^1e6 = 1e6·0.69314718055994530941723…, from the constant's published digits.
	a := scaled.Number{Mant: -1, Exp: 1_000_000}
	if got, want := a.LogAbs(), 693147.18055994530941723; math.Abs(got-want) > 1e-9 {
		t.Errorf("ln|−2^1e6| = %.12f, want %.12f", got, want)
	}
	if got, want := a.Log10Abs(), 301029.99566398119521373; math.Abs(got-want) > 1e-9 {
		t.Errorf("log10|−2^1e6| = %.12f, want %.12f", got, want)
	}
	if !math.IsInf(scaled.Number{}.LogAbs(), -1) || !math.IsInf(scaled.Number{}.Log10Abs(), -1) {
		t.Error("the logarithm of 0 is not −Inf")
	}
	for _, l := range []float64{0, -1, 12.5, -700, 700, 1e5, -1e5} {
		if got := scaled.FromLog(l).LogAbs(); math.Abs(got-l) > 1e-15*(10+math.Abs(l)) {
			t.Errorf("ln exp(%v) = %v", l, got)
		}
	}
	if !scaled.FromLog(math.Inf(-1)).IsZero() || scaled.FromLog(math.Inf(1)).IsFinite() ||
		scaled.FromLog(math.NaN()).IsFinite() {
		t.Error("exp of an infinity or NaN is wrong")
	}
}

func TestNotFinite(t *testing.T) {
	inf := scaled.FromFloat(math.Inf(1))
	nan := scaled.FromFloat(math.NaN())
	big := scaled.Number{Mant: 1, Exp: 5000}
	for name, got := range map[string]scaled.Number{
		"Inf+big": inf.Add(big), "big+Inf": big.Add(inf), "NaN+big": nan.Add(big),
		"big-NaN": big.Sub(nan),
		"Inf-Inf": inf.Sub(inf), "1/0": scaled.One.Div(scaled.Number{}),
		"0·Inf":   inf.Mul(scaled.Number{}),
		"sqrt -1": scaled.One.Neg().Sqrt(),
	} {
		if got.IsFinite() {
			t.Errorf("%s = %v, a number", name, got)
		}
	}
}

// bigExp is exp(l) by its series at l/2^60, squared 60 times, with 400 bits.
func bigExp(l float64) *big.Float {
	f := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	x := new(big.Float).SetPrec(400).SetMantExp(f(l), -60)
	sum, term := f(1), f(1)
	for k := 1; k < 40; k++ {
		term.Mul(term, x).Quo(term, f(float64(k)))
		sum.Add(sum, term)
	}
	for range 60 {
		sum.Mul(sum, sum)
	}
	return sum
}

// TestFromLogKeepsDigits: of values far beyond float64, too.
func TestFromLogKeepsDigits(t *testing.T) {
	for _, l := range []float64{1e-9, -0.3, 1, -709, 12345.678, -1e6 / 3, 1e6 / 7, 1e9 / 7, -1e9 / 3} {
		got, want := scaled.FromLog(l), bigExp(l)
		off := new(big.Float).SetPrec(400).SetFloat64(got.Mant)
		off.SetMantExp(off, int(got.Exp))
		off.Quo(off.Sub(off, want), want)
		if r, _ := off.Float64(); math.Abs(r) > 0x1p-51 {
			t.Errorf("exp(%v) is off by %.2g", l, r)
		}
	}
}
