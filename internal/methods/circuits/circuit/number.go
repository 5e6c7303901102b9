package circuit

// Numbers ≥ 0 of any range, cheap to multiply and to add.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	radix       = 512                           // an exponent counts powers of 2^512
	minMantissa = 1.0 / (1 << 128) / (1 << 128) // 2^−256, the smallest mantissa
	endMantissa = 1.0 * (1 << 128) * (1 << 128) // 2^256, above the largest mantissa
	scaleUp     = endMantissa * endMantissa     // 2^512: m·scaleUp and e − 1 are the same number as m and e
	scaleDown   = minMantissa * minMantissa     // 2^−512: m·scaleDown and e + 1 are the same number as m and e
)

// number is m·2^(512·e) with m in [2^−256, 2^256), or 0. Products and sums round as in float64, and never leave its
// normal numbers, because two such m multiply to between 2^−512 and 2^512. The zero value is 0.
type number struct {
	m float64 // mantissa
	e int64   // exponent, which counts powers of 2^512
}

// numberOf returns x as a number m·2^(512·e), exactly: x.Exp = 512·e + r, with r in [−256, 256), becomes the exponent e and a factor 2^r of
// the mantissa m.
func numberOf(x scaled.Number) number {
	if x.Mant == 0 {
		return number{}
	}
	e := x.Exp >> 9 // x.Exp / 512, rounded down
	r := int(x.Exp - e<<9)
	if r >= radix/2 {
		r -= radix
		e++
	}
	return number{math.Ldexp(x.Mant, r), e}
}

// scaled returns the number m·2^(512·e) as a scaled.Number, exactly.
func (a number) scaled() scaled.Number { return scaled.Make(a.m, a.e*radix) }

// times returns a·b, rounded once. A number is m·2^(512·e); if the product of the mantissas leaves [2^−256, 2^256), the result moves a
// factor 2^512 to the exponent.
func (a number) times(b number) number {
	m := a.m * b.m
	e := a.e + b.e
	if m >= endMantissa {
		return number{m * scaleDown, e + 1}
	}
	if m < minMantissa {
		if m == 0 {
			return number{}
		}
		return number{m * scaleUp, e - 1}
	}
	return number{m, e}
}

// plus returns a+b, rounded once. A number is m·2^(512·e), so mantissas of equal exponents add up.
func (a number) plus(b number) number {
	if a.e != b.e {
		return a.plusUnaligned(b)
	}
	m := a.m + b.m
	if m >= endMantissa {
		return number{m * scaleDown, a.e + 1}
	}
	return number{m, a.e}
}

// plusUnaligned returns a+b, rounded once, for numbers with different exponents. An exponent counts powers of 2^512. If the exponents
// differ by two or more, the smaller number is below 2^−512 times the larger one, and the sum is rounded to the larger one.
func (a number) plusUnaligned(b number) number {
	switch {
	case b.m == 0:
		return a
	case a.m == 0:
		return b
	}
	if a.e < b.e {
		a, b = b, a
	}
	if a.e-b.e > 1 { // b is too small to change a
		return a
	}
	m := a.m + b.m*scaleDown // a.e = b.e + 1: b.m in units of 2^(512·a.e)
	if m >= endMantissa {
		return number{m * scaleDown, a.e + 1}
	}
	return number{m, a.e}
}

// less reports whether a < b. Numbers are at least 0, and their mantissas are normalised, so the larger exponent decides.
func (a number) less(b number) bool {
	switch {
	case b.m == 0:
		return false
	case a.m == 0:
		return true
	case a.e != b.e:
		return a.e < b.e
	}
	return a.m < b.m
}

// dividedBy returns a/b as a float64, for b > 0. An underflow is 0, an overflow +Inf. The quotient is (a.m/b.m)·2^(512·(a.e − b.e)).
func (a number) dividedBy(b number) float64 {
	switch e := a.e - b.e; { // beyond ±3 the quotient is out of the range of float64
	case a.m == 0 || e < -3:
		return 0
	case e > 3:
		return math.Inf(1)
	default:
		return math.Ldexp(a.m/b.m, int(e)*radix)
	}
}
