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

// Wide returns a with as many digits again.
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

// fit normalises hi + lo, |lo| at most half a unit of hi, times 2^exp.
func fit(hi, lo float64, exp int64) Wide {
	b := math.Float64bits(hi)
	e := int64(b >> 52 & 0x7ff)
	switch {
	case e == 1023:
		return Wide{Hi: hi, Lo: lo, Exp: exp}
	case hi == 0:
		return Wide{}
	}

	// Sums of two numbers in ±[1, 2)
	// and products of them are no smaller than 2^-106: never subnormal.
	e -= 1023
	return Wide{Hi: math.Ldexp(hi, int(-e)), Lo: math.Ldexp(lo, int(-e)), Exp: exp + e}
}

// Mul returns a·b.
func (a Wide) Mul(b Wide) Wide {
	p := a.Hi * b.Hi
	if p == 0 {
		return Wide{}
	}

	e := math.FMA(a.Hi, b.Hi, -p)
	e += float64(a.Hi*b.Lo) + float64(a.Lo*b.Hi)
	hi := p + e
	return fit(hi, e-(hi-p), a.Exp+b.Exp)
}

// Add returns a+b.
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
	if shift > 120 {
		return a
	}

	f := math.Float64frombits(uint64(1023-shift) << 52) // 2^-shift
	bh, bl := b.Hi*f, b.Lo*f
	s, e := twoSum(a.Hi, bh)
	t, g := twoSum(a.Lo, bl)
	e += t

	hi := s + e
	e -= hi - s
	e += g
	s = hi + e
	return fit(s, e-(s-hi), a.Exp)
}

// twoSum returns a+b rounded, and the rounding error: s + e = a + b exactly.
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	v := s - a
	return s, (a - (s - v)) + (b - v)
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
	m, _ := mant.Float64()
	return Make(m, int64(exp))
}
