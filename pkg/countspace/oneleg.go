package countspace

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Products and correlations with a polynomial of two coefficients in one variable: one leg with two
// levels. Learning does these once per leg over all counts, and sums of two terms need no
// accumulator.

// isOneLeg reports whether p is such a polynomial.
func isOneLeg(p Poly) bool { return len(p.Shape) == 1 && p.Shape[0] == 2 }

// mulOneLeg returns p·(q₀ + q₁z), r[k] = q₀·p[k] + q₁·p[k−1], for canonical polynomials.
func mulOneLeg(p, q Poly) Poly {
	n := p.Size()
	r := New([]int{n + 1})
	q0, q1 := q.Coef.At(0), q.Coef.At(1)
	r.put(0, p.Coef.At(0).Mul(q0))
	twoTerms(r.Coef, 1, p.Coef, 1, q0, 0, q1, n-1)
	r.put(n, p.Coef.At(n-1).Mul(q1))
	return r
}

// correlateOneLeg returns h[k] = p₀·s[k] + p₁·s[k+1] for canonical polynomials,
// s of at least two coefficients.
func correlateOneLeg(s, p Poly) Poly {
	n := s.Size() - 1
	h := New([]int{n})
	twoTerms(h.Coef, 0, s.Coef, 0, p.Coef.At(0), 1, p.Coef.At(1), n)
	return h
}

// twoTerms sets r[to+i] = x·v[a+i] + y·v[b+i] for i < n. All mantissas are canonical,
// and so are the results.
func twoTerms(
	r scaled.Vector, to int, v scaled.Vector, a int, x scaled.Number, b int, y scaled.Number, n int,
) {
	rm, re := r.Mant[to:to+n], r.Exp[to:to+n]
	am, ae := v.Mant[a:a+n], v.Exp[a:a+n]
	bm, be := v.Mant[b:b+n], v.Exp[b:b+n]
	for i := range rm {
		p, e := am[i]*x.Mant, ae[i]+x.Exp
		q, f := bm[i]*y.Mant, be[i]+y.Exp
		if q != 0 && (p == 0 || e < f) {
			p, e, q, f = q, f, p, e
		}

		// Now p is the one with the larger exponent, unless q is 0.
		if d := uint64(e - f); d < window {
			p += float64(q * power[d] * (1 / power[0]))
		} else if q-q != 0 {
			p += q
		}

		s := scaled.Make(p, e)
		rm[i], re[i] = s.Mant, s.Exp
	}
}
