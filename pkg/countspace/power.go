package countspace

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Powers: the count polynomial of many equal pieces.

// Power returns p^m for m ≥ 0, over the box whose sides are m·(side − 1) + 1.
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

// Closed reports whether Power has a closed form for p: at most two coefficients that are not 0, or
// no more than one more of them than variables.
func Closed(p Poly) bool {
	most := max(2, len(p.Shape)+1)
	n := 0
	for _, x := range p.Coef.Mant {
		if x != 0 {
			n++
		}
	}
	return n <= most
}

// nonZeros lists the places of the coefficients that are not 0.
func nonZeros(v scaled.Vector) []int {
	var out []int
	for i, x := range v.Mant {
		if x != 0 {
			out = append(out, i)
		}
	}
	return out
}

// powers writes the terms of a power into r.
type powers struct {
	r     Poly
	ratio []scaled.Wide // term i over term 0
	step  []int         // place of term i less that of term 0, in r's box
	terms int           // written, since they were counted
	ops   *Ops
}

// multinomial is Power by the multinomial theorem.
func multinomial(p Poly, terms []int, m int, ops *Ops) Poly {
	shape := make([]int, len(p.Shape))
	for a, side := range p.Shape {
		shape[a] = m*(side-1) + 1
	}
	w := powers{r: New(shape), ops: ops}
	if len(terms) == 0 {
		return w.r
	}

	// The place of a term in the larger box.
	place := func(i int) int {
		at, stride := 0, 1
		for a := len(shape) - 1; a >= 0; a-- {
			at += i % p.Shape[a] * stride
			i /= p.Shape[a]
			stride *= shape[a]
		}
		return at
	}
	first := p.Coef.At(terms[0]).Wide()
	for _, i := range terms[1:] {
		w.ratio = append(w.ratio, divide(p.Coef.At(i).Wide(), first))
		w.step = append(w.step, place(i)-place(terms[0]))
	}

	w.emit(len(w.ratio), wholePower(first, m), m, m*place(terms[0]))
	w.count()
	return w.r
}

// countEvery is the number of terms counted together.
const countEvery = 1 << 9

// count counts the terms written.
func (w *powers) count() {
	w.ops.Add(w.terms)
	w.terms = 0
}

// emit writes all terms with given counts of the terms after number k, c of which is the one with
// rest legs at term 0 and none at 1 … k, at its place in the box.
func (w *powers) emit(k int, c scaled.Wide, rest, at int) {
	if k == 0 {
		w.r.put(at, w.r.Coef.At(at).Add(c.Number()))
		if w.terms++; w.terms == countEvery {
			w.count()
		}
		return
	}
	for n := 0; ; n++ {
		w.emit(k-1, c, rest-n, at)
		if n == rest || w.ops.done() {
			return
		}

		// One more leg at term k is one less at term 0.
		c = c.Mul(w.ratio[k-1]).Mul(fraction(rest-n, n+1))
		at += w.step[k-1]
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
	minus := q.Mul(b)
	minus.Hi, minus.Lo = -minus.Hi, -minus.Lo
	rest := a.Add(minus)
	return q.Add(scaled.Make(rest.Hi/b.Hi, rest.Exp-b.Exp).Wide())
}

// wholePower returns a^m by squaring.
func wholePower(a scaled.Wide, m int) scaled.Wide {
	out := scaled.WideOne
	for ; m > 0; m /= 2 {
		if m%2 == 1 {
			out = out.Mul(a)
		}
		a = a.Mul(a)
	}
	return out
}
