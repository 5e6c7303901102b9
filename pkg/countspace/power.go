package countspace

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Powers: the count polynomial of many equal pieces.

// Power returns p^m for m ≥ 0. Along a variable along which p has side coefficients it has m·(side − 1) + 1.
//
// Where p has r coefficients that are not 0, in at least r−1 variables or r = 2, it is the
// multinomial theorem,
//
//	p^m = Σ_{n_1+…+n_r=m} m!/(n_1!…n_r!) Π_i p_i^{n_i} z^{Σ n_i e_i}
//
// term after term in numbers of 106 bits, each from its neighbour: the relative error of a
// coefficient is below 2^-52, for any m and signs, where no two terms meet. Cost: one step for each
// of the C(m+r−1, r−1) terms. Other polynomials are squared and multiplied.
func Power(p Poly, m int, ops *Ops) Poly {
	p = canonical(p)
	terms := nonZeros(p.Coef)
	switch {
	case m == 0:
		return Constant(len(p.Shape), scaled.One)
	case m == 1:
		return p
	case Closed(p):
		return multinomial(p, terms, m, ops)
	}

	half := Power(p, m/2, ops)
	square := half.Mul(half, ops)
	if m%2 == 0 {
		return square
	}
	return square.Mul(p, ops)
}

// Closed reports whether Power has a closed form for p: if p has at most two coefficients that are not 0, or at most one more of them than
// variables.
func Closed(p Poly) bool {
	limit := max(2, len(p.Shape)+1)
	return countNonZeros(p.Coef) <= limit
}

// countNonZeros returns the number of coefficients that are not 0.
func countNonZeros(v scaled.Vector) (n int) {
	for _, x := range v.Mant {
		if x != 0 {
			n++
		}
	}
	return n
}

// nonZeros lists the positions of the coefficients that are not 0.
func nonZeros(v scaled.Vector) []int {
	var positions []int
	for i, x := range v.Mant {
		if x != 0 {
			positions = append(positions, i)
		}
	}
	return positions
}

// expansion writes the terms of a power of p into the result. p has the terms 0, 1, …; a term of the power is given by how often it has
// each of them as a factor, m times in all.
type expansion struct {
	result    Poly
	ratio     []scaled.Wide // by term of p but term 0: its coefficient over that of term 0
	step      []int         // by term of p but term 0: its index in the result's box, less that of term 0
	uncounted int           // terms written that ops has not counted yet
	ops       *Ops
}

// multinomial returns p^m by the multinomial theorem: a term for each way to take a term of p from each of the m factors, in any order.
// terms has the positions of p's coefficients that are not 0.
func multinomial(p Poly, terms []int, m int, ops *Ops) Poly {
	shape := make([]int, len(p.Shape))
	for a, side := range p.Shape {
		shape[a] = m*(side-1) + 1
	}
	e := expansion{result: New(shape), ops: ops}
	if len(terms) == 0 {
		return e.result
	}

	// indexOf returns the index in the result's box of p's coefficient i.
	indexOf := func(i int) int {
		index, stride := 0, 1
		for a := len(shape) - 1; a >= 0; a-- {
			index += i % p.Shape[a] * stride
			i /= p.Shape[a]
			stride *= shape[a]
		}
		return index
	}
	term0, index0 := p.Coef.At(terms[0]).Wide(), indexOf(terms[0])
	for _, i := range terms[1:] {
		e.ratio = append(e.ratio, divide(p.Coef.At(i).Wide(), term0))
		e.step = append(e.step, indexOf(i)-index0)
	}

	e.addTerms(len(e.ratio), wholePower(term0, m), m, m*index0) // from the term that has term 0 of p as all m factors
	e.count()
	return e.result
}

// countEvery is the number of terms counted together.
const countEvery = 1 << 9

// count adds the terms written since the last call to ops.
func (e *expansion) count() {
	e.ops.Add(e.uncounted)
	e.uncounted = 0
}

// addTerms adds terms of the power p^m to the result. A term of the power has m factors, each a term of p. The caller has chosen how many
// are from each of the terms behind term k; addTerms goes through all choices of the remaining ones from the terms 0 to k. value is the
// term of the power that takes all of these from term 0, and index is its index in the result.
func (e *expansion) addTerms(k int, value scaled.Wide, remaining, index int) {
	if k == 0 {
		e.result.put(index, e.result.Coef.At(index).Add(value.Number()))
		if e.uncounted++; e.uncounted == countEvery {
			e.count()
		}
		return
	}
	for n := 0; ; n++ { // n factors are from term k
		e.addTerms(k-1, value, remaining-n, index)
		if n == remaining || e.ops.done() {
			return
		}

		// One more factor from term k is one less from term 0: the value changes by the ratio of their coefficients, the index by the
		// distance of their indices, and the multinomial coefficient by (remaining−n)/(n+1).
		value = value.Mul(e.ratio[k-1]).Mul(fraction(remaining-n, n+1))
		index += e.step[k-1]
	}
}

// fraction returns a/b with 106 bits, for 0 < a, b < 2^53.
func fraction(a, b int) scaled.Wide {
	x, y := float64(a), float64(b)
	q := x / y
	return scaled.FromFloat(q).Wide().Add(scaled.FromFloat(math.FMA(-q, y, x) / y).Wide())
}

// divide returns a/b with about 100 bits, b not 0.
func divide(a, b scaled.Wide) scaled.Wide {
	q := scaled.Make(a.Hi/b.Hi, a.Exp-b.Exp).Wide()
	product := q.Mul(b)
	product.Hi, product.Lo = -product.Hi, -product.Lo
	remainder := a.Add(product) // a − q·b
	return q.Add(scaled.Make(remainder.Hi/b.Hi, remainder.Exp-b.Exp).Wide())
}

// wholePower returns a^m for m ≥ 0, by repeated squaring.
func wholePower(a scaled.Wide, m int) scaled.Wide {
	result := scaled.WideOne
	for ; m > 0; m /= 2 {
		if m%2 == 1 {
			result = result.Mul(a)
		}
		a = a.Mul(a)
	}
	return result
}
