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

// isThin reports whether the coefficients of p that are not 0 are worth listing.
func isThin(p Poly) bool {
	if len(p.Shape) < 2 {
		return false
	}
	n := 0
	for _, x := range p.Coef.Mant {
		if x != 0 {
			n++
		}
	}
	return n <= few || n*thin <= p.Size()
}

// sums are accumulators over a box.
type sums struct {
	shape []int
	acc   []accumulator
}

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

// axpy adds x·p[c] to the sum at c + shift, for all c where both exist; it returns their number.
func (s sums) axpy(x scaled.Number, p Poly, shift []int) int {
	return s.rows(x, p, shift, 0, 0, 0)
}

// rows is axpy under the indices chosen so far, is and ip their partial places in s and p.
func (s sums) rows(x scaled.Number, p Poly, shift []int, axis, is, ip int) (n int) {
	if axis == len(shift) {
		return s.run(x, p.Coef, is, ip, 1)
	}
	k := shift[axis]
	lo := max(0, -k)
	hi := min(p.Shape[axis], s.shape[axis]-k)
	if lo >= hi {
		return 0
	}
	is *= s.shape[axis]
	ip *= p.Shape[axis]
	if axis == len(shift)-1 {
		return s.run(x, p.Coef, is+lo+k, ip+lo, hi-lo)
	}
	for c := lo; c < hi; c++ {
		n += s.rows(x, p, shift, axis+1, is+c+k, ip+c)
	}
	return n
}

// run adds x times n neighbouring coefficients.
func (s sums) run(x scaled.Number, v scaled.Vector, is, ip, n int) int {
	acc := s.acc[is : is+n]
	mant, exp := v.Mant[ip:ip+n], v.Exp[ip:ip+n]
	for i := range acc {
		if mant[i] != 0 {
			acc[i].add(mant[i]*x.Mant, exp[i]+x.Exp)
		}
	}
	return n
}

// mulThin returns p·q for canonical polynomials, q term by term.
func mulThin(p, q Poly, shape []int, ops *Ops) Poly {
	s := newSums(shape)
	c := make([]int, len(shape))
	for i, x := range q.Coef.Mant {
		if ops.done() {
			break
		}
		if x != 0 {
			ops.Add(s.axpy(q.Coef.At(i), p, c))
		}
		next(c, q.Shape)
	}
	return s.poly()
}

// correlateThin returns h[k] = Σ_j p[j]·s[k+j] for canonical polynomials over a box, p term by term.
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
			ops.Add(h.axpy(p.Coef.At(i), s, shift))
		}
		next(j, p.Shape)
	}
	return h.poly()
}
