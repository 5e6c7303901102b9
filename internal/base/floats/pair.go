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

// exactly returns a + b as a pair.
func exactly(a, b float64) Pair {
	s := a + b
	v := s - a
	return Pair{s, (a - (s - v)) + (b - v)}
}

// Product returns a·b as a pair, exactly.
func Product(a, b float64) Pair {
	p := float64(a * b)
	return Pair{p, math.FMA(a, b, -p)}
}

// Plus returns p + q.
func (p Pair) Plus(q Pair) Pair {
	s := exactly(p.High, q.High)
	t := exactly(p.Low, q.Low)
	s = exactly(s.High, s.Low+t.High)
	return exactly(s.High, s.Low+t.Low)
}

// Minus returns p − q.
func (p Pair) Minus(q Pair) Pair { return p.Plus(Pair{-q.High, -q.Low}) }

// Times returns p·q.
func (p Pair) Times(q Pair) Pair {
	s := Product(p.High, q.High)
	return exactly(s.High, s.Low+(float64(p.High*q.Low)+float64(p.Low*q.High)))
}

// By returns p·x.
func (p Pair) By(x float64) Pair { return p.Times(Pair{High: x}) }

// Over returns p/x.
func (p Pair) Over(x float64) Pair {
	q := p.High / x
	rest := p.Minus(Product(q, x))
	return exactly(q, rest.High/x)
}

// logTerms are the terms of the series of a logarithm: the ratio of one to the next is at most 0.0295, and those from logPairs on are below
// 2^-53 of the first.
const logTerms, logPairs = 21, 11

// Log returns ln x with an error below 2^-100 of it, or of 1 where that is larger, for a positive x: 2 artanh t, t = (m − 1)/(m + 1).
func Log(x float64) Pair {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	up, down := m-1, exactly(m, 1)
	q := up / down.High
	rest := Pair{High: up}.Minus(down.By(q))
	t := exactly(q, rest.High/down.High)
	square := t.Times(t)
	tail := 0.0
	for k := logTerms; k >= logPairs; k-- {
		tail = tail*square.High + 1/float64(2*k+1)
	}
	sum := Pair{High: tail}
	for k := logPairs - 1; k >= 0; k-- {
		sum = sum.Times(square).Plus(Pair{High: 1}.Over(float64(2*k + 1)))
	}
	return sum.Times(t).By(2).Plus(ln2.By(float64(e)))
}

// Exp returns e^p with an error of two roundings, for |p| below 2^50.
func (p Pair) Exp() scaled.Number {
	if math.IsInf(p.High, -1) {
		return scaled.Number{}
	}
	k := math.Round(p.High / math.Ln2)
	rest := p.Minus(ln2.By(k))
	e := math.Exp(rest.High)
	return scaled.Make(e+e*rest.Low, int64(k))
}
