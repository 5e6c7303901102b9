package countspace

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Products and correlations with a polynomial of two coefficients in one variable: one leg with two
// levels. Learning does these once per leg over all counts, and sums of two terms need no
// accumulator.

// isOneLeg reports whether p has one variable and two coefficients: the polynomial of one leg with two levels.
func isOneLeg(p Poly) bool { return len(p.Shape) == 1 && p.Shape[0] == 2 }

// mulOneLeg returns p·(q₀ + q₁z), r[k] = q₀·p[k] + q₁·p[k−1], for canonical polynomials.
func mulOneLeg(p, q Poly) Poly {
	n := p.Size()
	r := New([]int{n + 1})
	q0, q1 := q.Coef.At(0), q.Coef.At(1)
	r.put(0, p.Coef.At(0).Mul(q0))
	setTwoTerms(slice(r.Coef, 1, n), slice(p.Coef, 1, n), q0, slice(p.Coef, 0, n-1), q1)
	r.put(n, p.Coef.At(n-1).Mul(q1))
	return r
}

// correlateOneLeg returns h[k] = p₀·s[k] + p₁·s[k+1] for canonical polynomials,
// s of at least two coefficients.
func correlateOneLeg(s, p Poly) Poly {
	n := s.Size() - 1
	h := New([]int{n})
	setTwoTerms(h.Coef, slice(s.Coef, 0, n), p.Coef.At(0), slice(s.Coef, 1, n+1), p.Coef.At(1))
	return h
}

// slice returns the entries first ≤ i < end of a vector with exponents.
func slice(v scaled.Vector, first, end int) scaled.Vector {
	return scaled.Vector{Mant: v.Mant[first:end], Exp: v.Exp[first:end]}
}

// setTwoTerms sets r_i = x·a_i + y·b_i for all entries. All numbers are normalised, and so are the results.
func setTwoTerms(r, a scaled.Vector, x scaled.Number, b scaled.Vector, y scaled.Number) {
	n := len(r.Mant)
	resultMant, resultExp := r.Mant, r.Exp[:n]
	aMant, aExp, bMant, bExp := a.Mant[:n], a.Exp[:n], b.Mant[:n], b.Exp[:n]
	for i := range resultMant {
		large, largeExp := aMant[i]*x.Mant, aExp[i]+x.Exp
		small, smallExp := bMant[i]*y.Mant, bExp[i]+y.Exp
		if small != 0 && (large == 0 || largeExp < smallExp) {
			large, largeExp, small, smallExp = small, smallExp, large, largeExp
		}

		// Now largeExp is the larger exponent, unless small is 0. A small term out of the window does not count, unless it is not finite.
		if d := uint64(largeExp - smallExp); d < window {
			large += float64(small * power[d] * (1 / power[0])) // small·2^−d, as power[d] is a fixed power of two times 2^−d
		} else if small-small != 0 {
			large += small
		}

		sum := scaled.Make(large, largeExp)
		resultMant[i], resultExp[i] = sum.Mant, sum.Exp
	}
}
