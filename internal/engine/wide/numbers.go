package wide

// The two kinds of numbers.

import (
	"math/big"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// field is an arithmetic of numbers of type T: it converts, multiplies and adds them. No result shares memory with a later one.
type field[T any] interface {
	of(n scaled.Number) T
	wide(a scaled.Wide) T
	number(a T) scaled.Number
	isZero(a T) bool
	mul(a, b T) T
	add(a, b T) T
}

// double is the arithmetic of numbers of 106 bits.
type double struct{}

func (double) of(n scaled.Number) scaled.Wide     { return n.Wide() }
func (double) wide(a scaled.Wide) scaled.Wide     { return a }
func (double) number(a scaled.Wide) scaled.Number { return a.Number() }
func (double) isZero(a scaled.Wide) bool          { return a.Hi == 0 }
func (double) mul(a, b scaled.Wide) scaled.Wide   { return a.Mul(b) }
func (double) add(a, b scaled.Wide) scaled.Wide   { return a.Add(b) }

// large is the arithmetic of numbers of a given precision in bits. nil is 0.
type large struct{ precision uint }

func (l large) of(n scaled.Number) *big.Float {
	if n.IsZero() {
		return nil
	}
	return n.Wide().Big(l.precision)
}

func (l large) wide(a scaled.Wide) *big.Float {
	if a.IsZero() {
		return nil
	}
	return a.Big(l.precision)
}

func (large) number(a *big.Float) scaled.Number {
	if a == nil {
		return scaled.Number{}
	}
	return scaled.FromBig(a)
}

func (large) isZero(a *big.Float) bool { return a == nil || a.Sign() == 0 }

func (l large) mul(a, b *big.Float) *big.Float {
	if a == nil || b == nil {
		return nil
	}
	return new(big.Float).SetPrec(l.precision).Mul(a, b)
}

func (l large) add(a, b *big.Float) *big.Float {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return new(big.Float).SetPrec(l.precision).Add(a, b)
}
