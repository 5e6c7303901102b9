package floats

// Pairs: numbers of twice the digits of a float64, for logarithms that cancel.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Pair is High + Low, |Low| at most half a unit in the last place of High: 104 bits where nothing overflows. The zero value is 0.
//
// Source: T. J. Dekker, A floating-point technique for extending the available precision (1971).
type Pair struct{ High, Low float64 }

// ln2 is the logarithm of 2.
var ln2 = Pair{math.Ln2, 2.3190468138462996e-17}

// exactSum returns a + b as a pair, without rounding (Knuth's two-sum): the rounded sum, and its rounding error.
func exactSum(a, b float64) Pair {
	sum := a + b
	roundedB := sum - a
	return Pair{sum, (a - (sum - roundedB)) + (b - roundedB)}
}

// Product returns a·b as a pair, exactly.
func Product(a, b float64) Pair {
	p := float64(a * b)
	return Pair{p, math.FMA(a, b, -p)}
}

// Plus returns p + q.
func (p Pair) Plus(q Pair) Pair {
	s := exactSum(p.High, q.High)
	t := exactSum(p.Low, q.Low)
	s = exactSum(s.High, s.Low+t.High)
	return exactSum(s.High, s.Low+t.Low)
}

// Minus returns p − q.
func (p Pair) Minus(q Pair) Pair { return p.Plus(Pair{-q.High, -q.Low}) }

// Times returns p·q.
func (p Pair) Times(q Pair) Pair {
	s := Product(p.High, q.High)
	return exactSum(s.High, s.Low+(float64(p.High*q.Low)+float64(p.Low*q.High)))
}

// TimesFloat returns p·x.
func (p Pair) TimesFloat(x float64) Pair { return p.Times(Pair{High: x}) }

// DividedBy returns p/x: the quotient q of floats, and the remainder p − q·x divided by x.
func (p Pair) DividedBy(x float64) Pair {
	q := p.High / x
	remainder := p.Minus(Product(q, x))
	return exactSum(q, remainder.High/x)
}

// logTerms are the terms of the series of a logarithm: the ratio of one to the next is at most 0.0295, and those from logPairs on are below
// 2^-53 of the first.
const logTerms, logPairs = 21, 11

// Log returns ln x for a positive x, with an error below 2^-100 of it or of 1, whichever is larger. With x = m·2^e and m near 1,
//
//	ln x = e·ln 2 + 2 artanh t,  t = (m − 1)/(m + 1),  artanh t = t·Σ_k t^{2k}/(2k + 1).
func Log(x float64) Pair {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}

	// t as a pair: the quotient of floats, and the remainder divided again.
	numerator, denominator := m-1, exactSum(m, 1)
	q := numerator / denominator.High
	remainder := Pair{High: numerator}.Minus(denominator.TimesFloat(q))
	t := exactSum(q, remainder.High/denominator.High)

	// The series from its last term (Horner). Floats are precise enough for the small terms, from logPairs on; the others are pairs.
	square := t.Times(t)
	tail := 0.0
	for k := logTerms; k >= logPairs; k-- {
		tail = tail*square.High + 1/float64(2*k+1)
	}
	sum := Pair{High: tail}
	for k := logPairs - 1; k >= 0; k-- {
		sum = sum.Times(square).Plus(Pair{High: 1}.DividedBy(float64(2*k + 1)))
	}
	return sum.Times(t).TimesFloat(2).Plus(ln2.TimesFloat(float64(e)))
}

// Exp returns e^p with an error of two roundings, for |p| below 2^50: e^p = 2^k · e^r with the remainder r = p − k·ln 2.
func (p Pair) Exp() scaled.Number {
	if math.IsInf(p.High, -1) {
		return scaled.Number{}
	}
	k := math.Round(p.High / math.Ln2)
	remainder := p.Minus(ln2.TimesFloat(k))
	exp := math.Exp(remainder.High)
	return scaled.Make(exp+exp*remainder.Low, int64(k)) // e^Low is 1 + Low up to a rounding
}
