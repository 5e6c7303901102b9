package countspace

import "github.com/basetensor/basetensor/pkg/scaled"

// Products and correlations where one polynomial has few coefficients that are not 0: a leg in
// several variables, legs that two symmetric factors share.

// Polynomials in two and more variables are added term by term that have at most few coefficients which are not
// 0, or thin times fewer than their box. Measured: a term takes about three times as long as one of a long run,
// and runs of a leg's box are short.
const (
	few  = 8
	thin = 3
)

// isThin reports whether a product with p is faster term by term, over the coefficients of p that are not 0: whether p has two variables or
// more, and at most few such coefficients, or at most Size/thin of them.
func isThin(p Poly) bool {
	if len(p.Shape) < 2 {
		return false
	}
	n := countNonZeros(p.Coef)
	return n <= few || n*thin <= p.Size()
}

// sums are accumulators over a box, one for each coefficient.
type sums struct {
	shape []int
	acc   []accumulator
}

// newSums returns sums of 0 over a box.
func newSums(shape []int) sums {
	s := sums{shape: shape, acc: make([]accumulator, volume(shape))}
	for i := range s.acc {
		s.acc[i] = newAccumulator()
	}
	return s
}

// poly returns the sums as a polynomial.
func (s sums) poly() Poly {
	r := New(s.shape)
	for i := range s.acc {
		x := s.acc[i].value()
		r.Coef.Mant[i] = x.Mant
		r.Coef.Exp[i] = x.Exp
	}
	return r
}

// addMultiple adds x·p[c] to the sum at c + shift, for all c at which both exist. It returns the number of these c.
func (s sums) addMultiple(x scaled.Number, p Poly, shift []int) int {
	return s.addRows(x, p, shift, 0, 0, 0)
}

// addRows adds x·p[c] to the sum at c + shift, for all c at which both exist and which begin with the counts that the caller has chosen for
// the variables before axis. indexS and indexP are the row-major indices of the chosen counts in s and p, over the variables before axis.
// It calls itself for each count of variable axis. n is the number of sums that changed.
func (s sums) addRows(x scaled.Number, p Poly, shift []int, axis, indexS, indexP int) (n int) {
	if axis == len(shift) {
		return s.addRun(x, p.Coef, indexS, indexP, 1) // no variables at all: one coefficient
	}
	k := shift[axis]
	first := max(0, -k)
	end := min(p.Shape[axis], s.shape[axis]-k)
	if first >= end {
		return 0
	}
	indexS *= s.shape[axis]
	indexP *= p.Shape[axis]
	isLastAxis := axis == len(shift)-1
	if isLastAxis {
		return s.addRun(x, p.Coef, indexS+first+k, indexP+first, end-first)
	}
	for c := first; c < end; c++ {
		n += s.addRows(x, p, shift, axis+1, indexS+c+k, indexP+c)
	}
	return n
}

// addRun adds x times n neighbouring coefficients, from indexP in v on, to the sums from indexS on. It returns n.
func (s sums) addRun(x scaled.Number, v scaled.Vector, indexS, indexP, n int) int {
	acc := s.acc[indexS : indexS+n]
	mant, exp := v.Mant[indexP:indexP+n], v.Exp[indexP:indexP+n]
	for i := range acc {
		if mant[i] != 0 {
			acc[i].add(mant[i]*x.Mant, exp[i]+x.Exp)
		}
	}
	return n
}

// mulThin returns p·q, with coefficients of this shape, for canonical polynomials (all coefficients normalised). It adds p times each
// coefficient of q that is not 0.
func mulThin(p, q Poly, shape []int, ops *Ops) Poly {
	s := newSums(shape)
	c := make([]int, len(shape))
	for i, x := range q.Coef.Mant {
		if ops.done() {
			break
		}
		if x != 0 {
			ops.Add(s.addMultiple(q.Coef.At(i), p, c))
		}
		next(c, q.Shape)
	}
	return s.poly()
}

// correlateThin returns h[k] = Σ_j p[j]·s[k+j] for the k of this shape, for canonical polynomials (all coefficients normalised). It adds s,
// shifted by −j, times each coefficient p[j] that is not 0.
func correlateThin(s, p Poly, shape []int, ops *Ops) Poly {
	h := newSums(shape)
	j := make([]int, len(shape))
	shift := make([]int, len(shape))
	for i, x := range p.Coef.Mant {
		if ops.done() {
			break
		}
		if x != 0 {
			for a := range shift {
				shift[a] = -j[a]
			}
			ops.Add(h.addMultiple(p.Coef.At(i), s, shift))
		}
		next(j, p.Shape)
	}
	return h.poly()
}
