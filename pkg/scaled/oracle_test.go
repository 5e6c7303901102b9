package scaled_test

import (
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// exactly returns a as an exact big.Float with room for sums over the exponents these tests use.
func exactly(a scaled.Number) *big.Float {
	f := new(big.Float).SetPrec(20000).SetFloat64(a.Mant)
	return f.SetMantExp(f, int(a.Exp))
}

// nearest rounds f to 53 bits, ties to even.
func nearest(f *big.Float) scaled.Number {
	var mant big.Float
	exp := new(big.Float).SetPrec(53).Set(f).MantExp(&mant)
	m, _ := mant.Float64()
	if m == 0 {
		return scaled.Number{}
	}
	return scaled.Number{Mant: 2 * m, Exp: int64(exp) - 1}
}

// anyNumber returns a normalised number of either sign with an exponent within ±span,
// sometimes 0, sometimes a short one.
func anyNumber(rng *rand.Rand, span int64) scaled.Number {
	e := rng.Int64N(2*span+1) - span
	sign := float64(1 - 2*rng.IntN(2))
	switch rng.IntN(8) {
	case 0:
		return scaled.Number{}
	case 1, 2:
		return scaled.Number{Mant: sign, Exp: e}
	case 3:
		return scaled.Number{Mant: sign * math.Nextafter(2, 0), Exp: e}
	}
	return scaled.Number{Mant: sign * (1 + rng.Float64()), Exp: e}
}
