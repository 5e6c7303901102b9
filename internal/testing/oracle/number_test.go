package oracle

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
)

// rat returns a as a rational number of the standard library.
func rat(a Number) *big.Rat {
	r := new(big.Rat)
	if a.mant == nil {
		return r
	}
	r.SetInt(a.mant)
	power := new(big.Int).Lsh(big.NewInt(1), uint(max(a.exp, -a.exp)))
	if a.exp < 0 {
		return r.Quo(r, new(big.Rat).SetInt(power))
	}
	return r.Mul(r, new(big.Rat).SetInt(power))
}

// TestNumbersAreRationals compares products, sums, negatives and quotients of numbers with those of big.Rat.
func TestNumbersAreRationals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	d := modeltest.NewDrawer(rng, modeltest.Wild)
	d.Zero, d.Out = 0.1, 0.5
	for range 500 {
		x, y := d.Number(), -d.Number()
		a, b := FromFloat(x, 0), FromFloat(y, d.Rand.Int64N(100)-50)
		p, q := rat(a), rat(b)
		if want := new(big.Rat).SetFloat64(x); p.Cmp(want) != 0 {
			t.Fatalf("%v became %v", x, p)
		}
		if got, want := rat(a.Mul(b)), new(big.Rat).Mul(p, q); got.Cmp(want) != 0 {
			t.Errorf("%v·%v = %v, want %v", p, q, got, want)
		}
		if got, want := rat(a.Add(b)), new(big.Rat).Add(p, q); got.Cmp(want) != 0 {
			t.Errorf("%v+%v = %v, want %v", p, q, got, want)
		}
		if !a.Add(a.Neg()).IsZero() || !a.Neg().Neg().Equal(a) {
			t.Errorf("−%v is wrong", x)
		}
		if !b.IsZero() {
			if want, _ := new(big.Rat).Quo(p, q).Float64(); a.Over(b) != want {
				t.Errorf("%v/%v = %v, want %v", p, q, a.Over(b), want)
			}
		}
	}
}

// TestLogarithms compares logarithms with values from bc -l: l(3), l(2)·2000, and the series of ln(1+x) near 1.
func TestLogarithms(t *testing.T) {
	for _, c := range []struct {
		x    float64
		exp  int64
		want float64
	}{
		{3, 0, 1.09861228866810969139},
		{1, 2000, 1386.29436111989061883},
		{1, -100_000, -69314.7180559945309417},
		{1, 0, 0},
		{1 + 1e-12, 0, 1.000088900582e-12}, // the float64 nearest to 1+1e-12 is 1+1.000088900582e-12
	} {
		got := FromFloat(c.x, c.exp).Ln()
		if math.Abs(got-c.want) > 1e-15*max(1, math.Abs(c.want)) {
			t.Errorf("ln(%v·2^%d) = %v, want %v", c.x, c.exp, got, c.want)
		}
	}
	if got := FromFloat(5, 90_000).LnOver(FromFloat(2.5, 90_001)); got != 0 {
		t.Errorf("ln 1 = %v", got)
	}
}
