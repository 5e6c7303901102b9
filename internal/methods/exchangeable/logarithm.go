package exchangeable

// Logarithms with twice the digits of float64: sums of 10^6 of them, and multiples by counts, lose nothing that a term of Z would show.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// logarithm is a number of nats. High = −Inf is the logarithm of 0; Low is 0 then.
type logarithm floats.Pair

// impossible is the logarithm of 0.
var impossible = logarithm{High: math.Inf(-1)}

// isImpossible reports whether a is the logarithm of 0.
func (a logarithm) isImpossible() bool { return math.IsInf(a.High, -1) }

// plus returns a + b.
func (a logarithm) plus(b logarithm) logarithm {
	if a.isImpossible() || b.isImpossible() {
		return impossible
	}
	return logarithm(floats.Pair(a).Plus(floats.Pair(b)))
}

// minus returns a − b, for finite b.
func (a logarithm) minus(b logarithm) logarithm { return a.plus(logarithm{-b.High, -b.Low}) }

// times returns n · a, for n ≥ 0. It is 0 for n = 0 even if a is impossible.
func (a logarithm) times(n float64) logarithm {
	switch {
	case n == 0:
		return logarithm{}
	case a.isImpossible():
		return impossible
	}
	return logarithm(floats.Pair(a).TimesFloat(n))
}

// dividedBy returns a/n, for finite a.
func (a logarithm) dividedBy(n float64) logarithm { return logarithm(floats.Pair(a).DividedBy(n)) }

// isAbove reports whether a > b.
func (a logarithm) isAbove(b logarithm) bool {
	return a.High > b.High || a.High == b.High && a.Low > b.Low
}

// float returns the logarithm rounded to float64.
func (a logarithm) float() float64 { return a.High + a.Low }

// number returns e^a: its relative error is at most 2^-51.
func (a logarithm) number() scaled.Number { return floats.Pair(a).Exp() }

// logarithmOf returns ln x for x ≥ 0.
func logarithmOf(x float64) logarithm {
	if x == 0 {
		return impossible
	}
	return logarithm(floats.Log(x))
}

// logarithmOfNumber returns ln x for x ≥ 0.
func logarithmOfNumber(x scaled.Number) logarithm { return logarithmOfWide(x.Wide()) }

// logarithmOfWide returns ln x for x = (Hi + Lo) · 2^Exp ≥ 0: ln Hi + Lo/Hi + Exp · ln 2.
func logarithmOfWide(x scaled.Wide) logarithm {
	if x.IsZero() {
		return impossible
	}
	return logarithmOf(x.Hi).plus(logarithm{High: x.Lo / x.Hi}).plus(logarithmOf(2).times(math.Abs(float64(x.Exp))).signed(x.Exp))
}

// signed returns −a if sign is negative, and otherwise a.
func (a logarithm) signed(sign int64) logarithm {
	if sign < 0 {
		return logarithm{-a.High, -a.Low}
	}
	return a
}
