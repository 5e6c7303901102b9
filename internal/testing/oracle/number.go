// Numbers without rounding.

package oracle

import (
	"fmt"
	"math"
	"math/big"
)

// Number is the dyadic rational mant·2^exp, exactly. The zero value is 0.
type Number struct {
	mant *big.Int // nil: 0; else odd
	exp  int64
}

// maxShift bounds the bits that an exact sum may take: beyond it the oracle has no answer, and says
// so by a panic.
const maxShift = 1 << 26

// One is the number 1.
var One = Number{mant: big.NewInt(1)}

// FromFloat returns x·2^exp. It panics unless x is finite.
func FromFloat(x float64, exp int64) Number {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		panic(fmt.Sprintf("oracle: %v is not a finite number", x))
	}
	const precision = 53
	frac, e := math.Frexp(x)
	return NewNumber(big.NewInt(int64(math.Ldexp(frac, precision))), exp+int64(e)-precision)
}

// NewNumber returns m·2^exp. It changes m, which the caller must not use again.
func NewNumber(m *big.Int, exp int64) Number {
	if m.Sign() == 0 {
		return Number{}
	}
	zeros := m.TrailingZeroBits()
	return Number{mant: m.Rsh(m, zeros), exp: exp + int64(zeros)}
}

// IsZero reports whether a is 0.
func (a Number) IsZero() bool { return a.mant == nil }

// Sign returns −1, 0 or 1.
func (a Number) Sign() int {
	if a.mant == nil {
		return 0
	}
	return a.mant.Sign()
}

// Mul returns a·b.
func (a Number) Mul(b Number) Number {
	if a.mant == nil || b.mant == nil {
		return Number{}
	}
	return Number{mant: new(big.Int).Mul(a.mant, b.mant), exp: a.exp + b.exp}
}

// Add returns a+b.
func (a Number) Add(b Number) Number {
	if a.mant == nil {
		return b
	}
	if b.mant == nil {
		return a
	}

	// Shift the mantissa of the number with the larger exponent to the exponent of the other.
	if a.exp < b.exp {
		a, b = b, a
	}
	shift := a.exp - b.exp
	if shift > maxShift {
		panic(fmt.Sprintf("oracle: a sum of numbers with %d bits between them", shift))
	}
	sum := new(big.Int).Lsh(a.mant, uint(shift))
	return NewNumber(sum.Add(sum, b.mant), b.exp)
}

// Neg returns −a.
func (a Number) Neg() Number {
	if a.mant == nil {
		return a
	}
	return Number{mant: new(big.Int).Neg(a.mant), exp: a.exp}
}

// Equal reports whether a and b are the same number.
func (a Number) Equal(b Number) bool {
	if a.mant == nil || b.mant == nil {
		return a.mant == nil && b.mant == nil
	}
	return a.exp == b.exp && a.mant.Cmp(b.mant) == 0
}

// quotientBits is the precision of quotients and logarithms before they become float64.
const quotientBits = 128

// float returns f and exp with a = f·2^exp, where f is the mantissa, rounded to quotientBits. The exponent is separate since it may exceed
// the range of big.Float.
func (a Number) float() (f *big.Float, exp int64) {
	f = new(big.Float).SetPrec(quotientBits)
	if a.mant == nil {
		return f, 0
	}
	return f.SetInt(a.mant), a.exp
}

// Over returns a/b, b ≠ 0, as the nearest float64: 0 or ±Inf beyond its range.
func (a Number) Over(b Number) float64 {
	numerator, numeratorExp := a.float()
	denominator, denominatorExp := b.float()
	q := new(big.Float).SetPrec(quotientBits).Quo(numerator, denominator)
	shift := max(-1<<20, min(1<<20, numeratorExp-denominatorExp)) // beyond ±2^20 the result is 0 or ±Inf in any case
	x, _ := q.SetMantExp(q, int(shift)).Float64()
	return x
}

// LnOver returns ln(a/b) in nats for a, b > 0.
func (a Number) LnOver(b Number) float64 {
	numerator, numeratorExp := a.float()
	denominator, denominatorExp := b.float()
	q := new(big.Float).SetPrec(quotientBits).Quo(numerator, denominator)

	// a/b = x·2^shift with x in [½, 1).
	m := new(big.Float)
	shift := int64(q.MantExp(m)) + numeratorExp - denominatorExp
	x, _ := m.Float64()
	if shift == 1 {
		x, shift = 2*x, 0 // a/b may be near 1 from above, where ln ½ + ln 2 would cancel
	}
	return math.Log(x) + float64(shift)*math.Ln2
}

// Ln returns ln a in nats, a > 0.
func (a Number) Ln() float64 { return a.LnOver(One) }

// Float64 returns the nearest float64.
func (a Number) Float64() float64 { return a.Over(One) }

// Float returns the number in 160 bits.
func (a Number) Float() *big.Float {
	f := newFloat()
	if a.mant == nil {
		return f
	}
	return f.SetMantExp(f.SetInt(a.mant), int(a.exp))
}
