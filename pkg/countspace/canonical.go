package countspace

import (
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// The canonical form of coefficients, on which the kernels rely.

// canonical returns p if all its coefficients are normalised (isCanonical), else a copy in which they are.
func canonical(p Poly) Poly {
	if isCanonical(p.Coef) {
		return p
	}
	q := New(p.Shape)
	for i := range q.Coef.Mant {
		x := p.Coef.At(i)
		q.Coef.Mant[i] = x.Mant
		q.Coef.Exp[i] = x.Exp
	}
	return q
}

// isCanonical reports whether every mantissa is in ±[1, 2), or 0 with exponent 0. It returns false for NaN and Inf, and if there are no
// exponents.
func isCanonical(v scaled.Vector) bool {
	if len(v.Exp) != len(v.Mant) {
		return false
	}
	const exponentOfOne = 1023 // the exponent field of a float64 in ±[1, 2)
	for i, m := range v.Mant {
		isNormalised := math.Float64bits(m)>>52&0x7ff == exponentOfOne
		if !isNormalised && (m != 0 || v.Exp[i] != 0) {
			return false
		}
	}
	return true
}

// reversed returns p with every axis reversed, r[c] = p[shape−1−c],
// which in row-major order is the list backwards.
func reversed(p Poly) Poly {
	r := New(p.Shape)
	n := len(p.Coef.Mant)
	for i := range n {
		r.Coef.Mant[n-1-i] = p.Coef.Mant[i]
		r.Coef.Exp[n-1-i] = p.Coef.Exp[i]
	}
	return r
}
