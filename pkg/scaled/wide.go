package scaled

// Wide numbers: twice the digits of a float64, and any range.

import (
	"math"
	"math/big"
)

// Wide is the value (Hi + Lo)·2^Exp with |Hi| in [1, 2) and |Lo| at most half a unit in the last
// place of Hi, or zero (Hi == 0, Lo == 0, Exp == 0): 106 bits. Sums and products have a relative
// error below 2^-102, of the result, under any cancellation. The zero value is the number 0. Finite
// numbers only.
//
// Source: T. J. Dekker, A floating-point technique for extending the available precision (1971);
// Y. Hida, X. Li and D. Bailey, Library for double-double and quad-double arithmetic (2007).
type Wide struct {
	Hi, Lo float64
	Exp    int64
}

// WideOne is the number 1.
var WideOne = Wide{Hi: 1}

// Wide returns a as a wide number, exactly.
func (a Number) Wide() Wide { return Wide{Hi: a.Mant, Exp: a.Exp} }

// Number returns a rounded to a float64's digits.
func (a Wide) Number() Number { return Make(a.Hi, a.Exp) }

// IsZero reports whether a is exactly 0.
func (a Wide) IsZero() bool { return a.Hi == 0 }

// Abs returns |a|.
func (a Wide) Abs() Wide {
	if a.Hi < 0 {
		return Wide{Hi: -a.Hi, Lo: -a.Lo, Exp: a.Exp}
	}
	return a
}

// normalised returns (hi + lo)·2^exp with hi in ±[1, 2). |lo| is at most half a unit in the last place of hi. hi is not subnormal: sums and
// products of two numbers in ±[1, 2) are 0, or no smaller than 2^-106.
func normalised(hi, lo float64, exp int64) Wide {
	const exponentOfOne = 1023 // the exponent field of a float64 in ±[1, 2)
	biased := int64(math.Float64bits(hi) >> 52 & 0x7ff)
	switch {
	case biased == exponentOfOne:
		return Wide{Hi: hi, Lo: lo, Exp: exp}
	case hi == 0:
		return Wide{}
	}
	shift := biased - exponentOfOne
	return Wide{Hi: math.Ldexp(hi, int(-shift)), Lo: math.Ldexp(lo, int(-shift)), Exp: exp + shift}
}

// Mul returns a·b, rounded: the product of the high parts, its rounding error, and the products of high and low parts.
func (a Wide) Mul(b Wide) Wide {
	product := a.Hi * b.Hi
	if product == 0 {
		return Wide{}
	}

	low := math.FMA(a.Hi, b.Hi, -product)
	low += float64(a.Hi*b.Lo) + float64(a.Lo*b.Hi)
	hi := product + low
	return normalised(hi, low-(hi-product), a.Exp+b.Exp)
}

// Add returns a+b, rounded. The sums of the high parts and of the low parts are exact, as pairs, which are then joined from the largest
// part to the smallest.
func (a Wide) Add(b Wide) Wide {
	if a.Hi == 0 {
		return b
	}
	if b.Hi == 0 {
		return a
	}
	if a.Exp < b.Exp {
		a, b = b, a
	}

	shift := a.Exp - b.Exp
	if shift > 120 { // b is below the last digit of a
		return a
	}

	factor := math.Float64frombits(uint64(1023-shift) << 52) // 2^-shift
	high, highError := twoSum(a.Hi, b.Hi*factor)
	low, lowError := twoSum(a.Lo, b.Lo*factor)
	low = highError + low

	sum := high + low
	low -= sum - high
	low += lowError
	hi := sum + low
	return normalised(hi, low-(hi-sum), a.Exp)
}

// twoSum returns a + b, rounded, and the rounding error: their sum is exactly a + b (Knuth).
func twoSum(a, b float64) (sum, roundingError float64) {
	sum = a + b
	roundedB := sum - a
	return sum, (a - (sum - roundedB)) + (b - roundedB)
}

// Big returns a exactly, with precision bits (at least 106).
// Exponents are limited as in big.Float: |Exp| below 2^31.
func (a Wide) Big(precision uint) *big.Float {
	x := new(big.Float).SetPrec(precision).SetFloat64(a.Hi)
	x.Add(x, new(big.Float).SetPrec(precision).SetFloat64(a.Lo))
	return x.SetMantExp(x, int(a.Exp))
}

// FromBig returns x rounded to a float64's digits, for a finite x.
func FromBig(x *big.Float) Number {
	if x.Sign() == 0 {
		return Number{}
	}
	var mant big.Float
	exp := x.MantExp(&mant)
	m, _ := mant.Float64() // whether that rounds is of no interest
	return Make(m, int64(exp))
}
