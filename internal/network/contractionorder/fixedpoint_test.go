package contractionorder

import (
	"math"
	"math/rand/v2"
	"testing"
)

func bitsOf(x log2Fixed) float64 { return float64(x) / float64(oneBit) }

func TestFixedPointLogarithms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, x := range append([]uint64{1, 2, 3, 4, 1<<63 - 1, math.MaxUint64}, r.Uint64(),
		r.Uint64()>>20, r.Uint64()>>50) {
		want := math.Log2(float64(x))
		if got := bitsOf(log2(x)); math.Abs(got-want) > 0x1p-15 {
			t.Errorf("log2(%d) = %v, want %v", x, got, want)
		}
		if got := bitsOf(log2Quick(x)); math.Abs(got-want) > 0x1p-11 {
			t.Errorf("log2Quick(%d) = %v, want %v", x, got, want)
		}
	}
	for range 2000 {
		x, y := (r.Float64()-0.5)*1800, (r.Float64()-0.5)*60
		a, b := log2Fixed(x*float64(oneBit)), log2Fixed((x+y)*float64(oneBit))
		if got, want := pow2(a), math.Exp2(bitsOf(a)); math.Abs(got/want-1) > 1e-12 {
			t.Errorf("pow2(%v) = %v, want %v", bitsOf(a), got, want)
		}
		if got := bitsOf(log2Float(math.Exp2(bitsOf(a)))); math.Abs(got-bitsOf(a)) > 0x1p-11 {
			t.Errorf("log2Float of 2^%v = %v", bitsOf(a), got)
		}
		top := max(a, b)
		want := bitsOf(top) + math.Log2(math.Exp2(bitsOf(a-top))+math.Exp2(bitsOf(b-top)))
		if got := bitsOf(logAdd(a, b)); math.Abs(got-want) > 0x1p-9 {
			t.Errorf("logAdd(%v, %v) = %v, want %v", bitsOf(a), bitsOf(b), got, want)
		}
	}
	if pow2(1<<40) != 0x1p1000 || pow2(-1<<40) != 0 {
		t.Error("pow2 does not saturate")
	}
}

// TestRandomVariables compares means with the distributions': E[−log2 u] = 1/ln 2, and a
// Gumbel variable in bits has the standard deviation π/(√6 ln 2).
func TestRandomVariables(t *testing.T) {
	rng := rand.NewPCG(1, 2)
	const n = 200000
	exp, g, gg := 0.0, 0.0, 0.0
	for range n {
		exp += bitsOf(exponential(rng.Uint64()))
		x := bitsOf(gumbel(rng.Uint64()))
		g += x
		gg += x * x
	}
	if mean := exp / n; math.Abs(mean*math.Ln2-1) > 0.02 {
		t.Errorf("mean %v, want %v", mean, 1/math.Ln2)
	}
	deviation := math.Sqrt(gg/n - g/n*g/n)
	if want := math.Pi / math.Sqrt(6) / math.Ln2; math.Abs(deviation/want-1) > 0.02 {
		t.Errorf("deviation %v, want %v", deviation, want)
	}
}

func TestCoolingFactor(t *testing.T) {
	for _, steps := range []int{1, 7, 1000, 20000} {
		if got := math.Pow(coolingFactor(0.1, steps), float64(steps)); math.Abs(got-0.1) > 1e-6 {
			t.Errorf("%d steps cool by %v", steps, got)
		}
	}
}
