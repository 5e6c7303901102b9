package circuit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestNumbersAreThoseOfScaled: the same roundings as another representation has, whose own oracle is math/big.
func TestNumbersAreThoseOfScaled(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 20))
	draw := func() scaled.Number {
		if rng.IntN(10) == 0 {
			return scaled.Number{}
		}
		return scaled.Make(1+rng.Float64(), rng.Int64N(2400)-1200)
	}
	for range 200_000 {
		x, y := draw(), draw()
		a, b := numberOf(x), numberOf(y)
		for _, n := range []number{a, b} {
			if n.m != 0 && (n.m < minMantissa || n.m >= endMantissa) {
				t.Fatalf("%v is not normalised", n)
			}
		}
		switch {
		case a.scaled() != x:
			t.Fatalf("%v became %v", x, a.scaled())
		case a.times(b).scaled() != x.Mul(y):
			t.Fatalf("%v · %v = %v, want %v", x, y, a.times(b).scaled(), x.Mul(y))
		case a.plus(b).scaled() != x.Add(y):
			t.Fatalf("%v + %v = %v, want %v", x, y, a.plus(b).scaled(), x.Add(y))
		case a.less(b) != (x.Cmp(y) < 0):
			t.Fatalf("%v < %v is %v", x, y, a.less(b))
		case b.m != 0 && a.dividedBy(b) != x.Div(y).Float64() && math.Abs(a.dividedBy(b)) > 1e-300 && !math.IsInf(a.dividedBy(b), 1):
			t.Fatalf("%v / %v = %v, want %v", x, y, a.dividedBy(b), x.Div(y).Float64())
		}
	}
}
