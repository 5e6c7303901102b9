package floats

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestPairs: sums, products, quotients and logarithms beside numbers of 400 bits.
func TestPairs(t *testing.T) {
	const bits = 400
	wide := func(p Pair) *big.Float {
		x := new(big.Float).SetPrec(bits).SetFloat64(p.High)
		return x.Add(x, new(big.Float).SetPrec(bits).SetFloat64(p.Low))
	}
	off := func(p Pair, want, size *big.Float) float64 {
		d := new(big.Float).Sub(wide(p), want)
		f, _ := d.Quo(d, size).Float64()
		return math.Abs(f)
	}
	size := func(x *big.Float) *big.Float { return new(big.Float).Abs(x) }
	rng := rand.New(rand.NewPCG(1, 1))
	random := func() Pair {
		return Pair{High: math.Ldexp(rng.NormFloat64(), rng.IntN(60)-30)}.Plus(Pair{High: 1e-18 * rng.NormFloat64()})
	}
	for range 2000 {
		a, b, x := random(), random(), rng.NormFloat64()
		sum := new(big.Float).Add(wide(a), wide(b))
		if e := off(a.Plus(b), sum, new(big.Float).Add(size(wide(a)), size(wide(b)))); e > 0x1p-103 {
			t.Fatalf("%v + %v is off by %.2g", a, b, e)
		}
		product := new(big.Float).Mul(wide(a), wide(b))
		if e := off(a.Times(b), product, size(product)); e > 0x1p-101 {
			t.Fatalf("%v · %v is off by %.2g", a, b, e)
		}
		quotient := new(big.Float).Quo(wide(a), new(big.Float).SetPrec(bits).SetFloat64(x))
		if e := off(a.DividedBy(x), quotient, size(quotient)); e > 0x1p-101 {
			t.Fatalf("%v / %v is off by %.2g", a, x, e)
		}
	}
	for range 500 {
		x := math.Exp(rng.NormFloat64() * math.Pow(10, float64(rng.IntN(5)-2)))
		if x == 0 || math.IsInf(x, 0) {
			continue
		}
		got := Log(x)
		if math.Abs(got.High-math.Log(x)) > 4e-16*(1+math.Abs(got.High)) {
			t.Fatalf("ln %v = %v", x, got)
		}
		back := exponential(wide(got))
		want := new(big.Float).SetPrec(bits).SetFloat64(x)
		f, _ := new(big.Float).Quo(new(big.Float).Sub(back, want), want).Float64()
		if math.Abs(f) > 0x1p-98*max(1, math.Abs(got.High)) {
			t.Fatalf("ln %v is off by %.2g", x, f)
		}
		e := got.Exp()
		f = math.Ldexp(e.Mant, int(e.Exp))/x - 1
		if !(math.Abs(f) <= 4*0x1p-53) {
			t.Fatalf("e^ln %v is off by %.2g", x, f)
		}
	}
}

// exponential returns e^x by its series, after x is halved 40 times.
func exponential(x *big.Float) *big.Float {
	const halvings = 40
	y := new(big.Float).SetMantExp(x, -halvings)
	sum, term := big.NewFloat(1).SetPrec(600), big.NewFloat(1).SetPrec(600)
	for k := 1; k < 20; k++ {
		term.Quo(term.Mul(term, y), big.NewFloat(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}
