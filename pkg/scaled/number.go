// Package scaled holds real numbers of any range as (mantissa, exponent of 2), so that partition
// functions of thousands of variables neither overflow nor underflow. Logarithms are taken only at
// the very end.
package scaled

import (
	"math"
)

// Number is the value Mant·2^Exp with |Mant| in [1, 2), or zero (Mant == 0, Exp == 0). The zero
// value is the number 0. Numbers made by this package are normalised; Make normalises others. The
// exponent has 64 bits; no reachable computation overflows it.
type Number struct {
	Mant float64 `msgpack:"m" json:"m"`
	Exp  int64   `msgpack:"e" json:"e"`
}

// One is the number 1.
var One = Number{Mant: 1}

// Make returns mant·2^exp, normalised. NaN and Inf mantissas stay as they are (see IsFinite).
func Make(mant float64, exp int64) Number {
	const exponentMask, exponentOfOne = 0x7ff << 52, 1023 << 52 // the bits of a float64's exponent, and what they are in ±[1, 2)
	b := math.Float64bits(mant)
	if biased := b & exponentMask >> 52; biased-1 < 0x7fe { // neither 0, subnormal, infinite nor NaN
		return Number{Mant: math.Float64frombits(b&^exponentMask | exponentOfOne), Exp: exp + int64(biased) - 1023}
	}
	return makeSpecial(mant, exp)
}

// makeSpecial returns mant·2^exp, normalised, for a mant that is 0, subnormal, infinite or NaN.
func makeSpecial(mant float64, exp int64) Number {
	if mant == 0 {
		return Number{}
	}
	if math.IsNaN(mant) || math.IsInf(mant, 0) {
		return Number{Mant: mant}
	}
	f, e := math.Frexp(mant) // |f| in [0.5, 1)
	return Number{Mant: f * 2, Exp: exp + int64(e) - 1}
}

// FromFloat returns x as a Number.
func FromFloat(x float64) Number { return Make(x, 0) }

// IsZero reports whether a is exactly 0.
func (a Number) IsZero() bool { return a.Mant == 0 }

// IsFinite reports whether a is neither NaN nor ±Inf.
func (a Number) IsFinite() bool { return !math.IsNaN(a.Mant) && !math.IsInf(a.Mant, 0) }

// Sign returns −1, 0 or 1.
func (a Number) Sign() int {
	switch {
	case a.Mant > 0:
		return 1
	case a.Mant < 0:
		return -1
	}
	return 0
}

// Neg returns −a.
func (a Number) Neg() Number { return Number{Mant: -a.Mant, Exp: a.Exp} }

// Abs returns |a|.
func (a Number) Abs() Number { return Number{Mant: math.Abs(a.Mant), Exp: a.Exp} }

// Mul returns a·b, rounded once.
func (a Number) Mul(b Number) Number { return Make(a.Mant*b.Mant, a.Exp+b.Exp) }

// Div returns a/b, rounded once. Division by zero gives an infinite mantissa (see IsFinite).
func (a Number) Div(b Number) Number { return Make(a.Mant/b.Mant, a.Exp-b.Exp) }

// Add returns a+b, rounded once.
func (a Number) Add(b Number) Number {
	if a.Mant == 0 {
		return b
	}
	if b.Mant == 0 {
		return a
	}
	if a.Exp < b.Exp {
		a, b = b, a
	}

	shift := a.Exp - b.Exp
	if shift > 1000 { // b is below the last digit of a, unless it is not finite
		if !b.IsFinite() {
			return b
		}
		return a
	}
	return Make(a.Mant+math.Ldexp(b.Mant, -int(shift)), a.Exp)
}

// Sub returns a−b, rounded once.
func (a Number) Sub(b Number) Number { return a.Add(b.Neg()) }

// Sqrt returns the square root of a ≥ 0 (NaN mantissa below 0).
func (a Number) Sqrt() Number {
	m := a.Mant
	e := a.Exp
	if e&1 != 0 {
		m *= 2
		e--
	}
	return Make(math.Sqrt(m), e/2)
}

// Cmp compares a and b: −1, 0 or 1.
func (a Number) Cmp(b Number) int { return a.Sub(b).Sign() }

// Float64 returns the nearest float64: ±Inf beyond its range, 0 below it.
func (a Number) Float64() float64 {
	switch { // Ldexp takes an int: beyond these exponents, of ±[1, 2), the result is ±Inf or 0 in any case
	case a.Exp > 2000:
		return math.Ldexp(a.Mant, 2000)
	case a.Exp < -2200:
		return math.Ldexp(a.Mant, -2200)
	}
	return math.Ldexp(a.Mant, int(a.Exp))
}

// LogAbs returns ln|a| in nats; −Inf for 0.
func (a Number) LogAbs() float64 {
	if a.Mant == 0 {
		return math.Inf(-1)
	}
	return math.Log(math.Abs(a.Mant)) + float64(a.Exp)*math.Ln2
}

// Log10Abs returns log10|a|; −Inf for 0.
func (a Number) Log10Abs() float64 {
	if a.Mant == 0 {
		return math.Inf(-1)
	}
	return math.Log10(math.Abs(a.Mant)) + float64(a.Exp)*(math.Ln2/math.Ln10)
}

// ln2Low is the difference of ln 2 and its float64, math.Ln2.
const ln2Low = 2.3190468138462996e-17

// FromLog returns e^l, the value whose natural logarithm is l. The relative error is below 2^-51 for |l| up to 10^9, if l itself is exact.
// For −Inf it returns 0; +Inf and NaN stay.
func FromLog(l float64) Number {
	if math.IsInf(l, -1) {
		return Number{}
	}
	if l-l != 0 { // +Inf or NaN
		return Number{Mant: l}
	}

	// e^l = 2^exp · e^remainder, with ln 2 of twice the digits of a float64 in remainder = l − exp·ln 2.
	exp := math.Floor(l / math.Ln2)
	remainder := math.FMA(-exp, math.Ln2, l)
	remainder = math.FMA(-exp, ln2Low, remainder)
	return Make(math.Exp(remainder), int64(exp))
}

// Vector is a list of numbers stored as mantissas and exponents: entry i is Mant[i]·2^Exp[i].
// Entries need not be normalised; Exp may be nil, which means all exponents are 0.
type Vector struct {
	Mant []float64
	Exp  []int64
}

// At returns entry i, normalised.
func (v Vector) At(i int) Number {
	if v.Exp == nil {
		return FromFloat(v.Mant[i])
	}
	return Make(v.Mant[i], v.Exp[i])
}

// Len returns the number of entries.
func (v Vector) Len() int { return len(v.Mant) }
