package wide

// The two kinds of numbers.

import (
	"math/big"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// field is an arithmetic of numbers of type T: it converts, multiplies and adds them. No result shares memory with a later one.
type field[T any] interface {
	fromNumber(n scaled.Number) T
	fromWide(a scaled.Wide) T
	toNumber(a T) scaled.Number
	isZero(a T) bool
	mul(a, b T) T
	add(a, b T) T
}

// double is the arithmetic of numbers of 106 bits.
type double struct{}

// fromNumber returns n as a number of 106 bits.
func (double) fromNumber(n scaled.Number) scaled.Wide { return n.Wide() }

// fromWide returns a as it is.
func (double) fromWide(a scaled.Wide) scaled.Wide { return a }

// toNumber returns a, rounded to the digits of a float64.
func (double) toNumber(a scaled.Wide) scaled.Number { return a.Number() }

// isZero reports whether a is 0.
func (double) isZero(a scaled.Wide) bool { return a.Hi == 0 }

// mul returns a·b, rounded to 106 bits.
func (double) mul(a, b scaled.Wide) scaled.Wide { return a.Mul(b) }

// add returns a + b, rounded to 106 bits.
func (double) add(a, b scaled.Wide) scaled.Wide { return a.Add(b) }

// large is the arithmetic of numbers of a given precision in bits. nil is 0.
type large struct{ precision uint }

// fromNumber returns n with the precision of l, nil for 0.
func (l large) fromNumber(n scaled.Number) *big.Float {
	if n.IsZero() {
		return nil
	}
	return n.Wide().Big(l.precision)
}

// fromWide returns a with the precision of l, nil for 0.
func (l large) fromWide(a scaled.Wide) *big.Float {
	if a.IsZero() {
		return nil
	}
	return a.Big(l.precision)
}

// toNumber returns a, rounded to the digits of a float64.
func (large) toNumber(a *big.Float) scaled.Number {
	if a == nil {
		return scaled.Number{}
	}
	return scaled.FromBig(a)
}

// isZero reports whether a is 0, which may be nil or a number.
func (large) isZero(a *big.Float) bool { return a == nil || a.Sign() == 0 }

// mul returns a·b, rounded to the precision of l; nil if a factor is nil.
func (l large) mul(a, b *big.Float) *big.Float {
	if a == nil || b == nil {
		return nil
	}
	return new(big.Float).SetPrec(l.precision).Mul(a, b)
}

// add returns a + b, rounded to the precision of l. If one is nil, it returns the other itself.
func (l large) add(a, b *big.Float) *big.Float {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(big.Float).SetPrec(l.precision).Add(a, b)
}
