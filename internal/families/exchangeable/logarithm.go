package exchangeable

// Logarithms with twice the digits of float64: sums of 10^6 of them, and multiples by counts, lose nothing that a term of Z would show.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// logarithm is hi + lo nats, |lo| at most half a unit in the last place of hi: 106 bits. hi = −Inf is the logarithm of 0; lo is 0 then.
// Source: T. J. Dekker, A floating-point technique for extending the available precision (1971).
type logarithm struct{ hi, lo float64 }

// impossible is the logarithm of 0.
var impossible = logarithm{hi: math.Inf(-1)}

// ln2 is the logarithm of 2.
var ln2 = logarithm{hi: math.Ln2, lo: 0x1.abc9e3b39803fp-56}

// isZero reports whether the logarithm is that of 0.
func (a logarithm) isImpossible() bool { return math.IsInf(a.hi, -1) }

// plus returns a + b.
func (a logarithm) plus(b logarithm) logarithm {
	s := a.hi + b.hi
	if math.IsInf(s, 0) {
		return logarithm{hi: s}
	}
	v := s - a.hi
	e := (a.hi - (s - v)) + (b.hi - v) + a.lo + b.lo
	hi := s + e
	return logarithm{hi, e - (hi - s)}
}

// minus returns a − b, for finite b.
func (a logarithm) minus(b logarithm) logarithm { return a.plus(logarithm{-b.hi, -b.lo}) }

// times returns n·a. Nothing is impossible 0 times.
func (a logarithm) times(n float64) logarithm {
	if n == 0 {
		return logarithm{}
	}
	p := a.hi * n
	if math.IsInf(p, 0) {
		return logarithm{hi: p}
	}
	e := math.FMA(a.hi, n, -p) + float64(a.lo*n)
	hi := p + e
	return logarithm{hi, e - (hi - p)}
}

// above reports whether a > b.
func (a logarithm) above(b logarithm) bool { return a.hi > b.hi || a.hi == b.hi && a.lo > b.lo }

// float returns the logarithm rounded to float64.
func (a logarithm) float() float64 { return a.hi + a.lo }

// number returns e^a: its relative error is at most 2^-51.
func (a logarithm) number() scaled.Number {
	if a.isImpossible() {
		return scaled.Number{}
	}
	n := math.Round(a.hi / math.Ln2)
	return scaled.Make(math.Exp(a.minus(ln2.times(n)).float()), int64(n))
}

// logarithmOf returns ln (x + rest) for x ≥ 0 and a rest of at most a unit in the last place of x.
func logarithmOf(x, rest float64) logarithm {
	if x == 0 {
		return impossible
	}
	m, e := math.Frexp(x)
	rest = math.Ldexp(rest, -e)
	if m < math.Sqrt2/2 {
		m, rest, e = 2*m, 2*rest, e-1
	}
	first := math.Log(m)
	// One step of Newton's iteration: ln m = first + (m e^−first − 1), up to the square of the last.
	inverse := exponential(-first)
	p := m * inverse.hi
	off := (p - 1) + (math.FMA(m, inverse.hi, -p) + float64(m*inverse.lo) + float64(rest*inverse.hi))
	hi := first + off
	return ln2.times(float64(e)).plus(logarithm{hi, off - (hi - first)})
}

// exponential returns e^x for |x| ≤ 1/2, as an unevaluated sum of twice the digits.
func exponential(x float64) logarithm {
	const halvings, terms = 6, 12
	x = math.Ldexp(x, -halvings)
	sum, term := logarithm{}, logarithm{hi: 1} // e^x − 1
	for k := 1; k <= terms; k++ {
		term = term.times(x).over(float64(k))
		sum = sum.plus(term)
	}
	for range halvings { // (1 + s)² − 1 = 2 s + s²
		sum = sum.times(2).plus(sum.product(sum))
	}
	return logarithm{hi: 1}.plus(sum)
}

// product returns a·b.
func (a logarithm) product(b logarithm) logarithm {
	p := a.hi * b.hi
	e := math.FMA(a.hi, b.hi, -p) + float64(a.hi*b.lo) + float64(a.lo*b.hi)
	hi := p + e
	return logarithm{hi, e - (hi - p)}
}

// over returns a/n.
func (a logarithm) over(n float64) logarithm {
	q := a.hi / n
	e := (math.FMA(-q, n, a.hi) + a.lo) / n
	hi := q + e
	return logarithm{hi, e - (hi - q)}
}

// logarithmOfNumber returns ln x for x ≥ 0.
func logarithmOfNumber(x scaled.Number) logarithm {
	if x.IsZero() {
		return impossible
	}
	return logarithmOf(x.Mant, 0).plus(ln2.times(float64(x.Exp)))
}

// logarithmOfWide returns ln x for x ≥ 0.
func logarithmOfWide(x scaled.Wide) logarithm {
	if x.IsZero() {
		return impossible
	}
	return logarithmOf(x.Hi, x.Lo).plus(ln2.times(float64(x.Exp)))
}
