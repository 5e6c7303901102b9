package learned

// The steps that sweeps consist of: multiplying by, and contracting with, the polynomial of one leg
// or of one small core at two levels, in place.
//
// countspace does the same for any pieces; these loops do it without a call per coefficient, which
// is three to five times faster where almost every piece is short.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
)

// longestShort is the number of coefficients up to which the loops here beat countspace's.
const longestShort = 6

// isShort reports whether q is a polynomial in one variable with 2 to longestShort coefficients, each with an exponent.
func isShort(q countspace.Poly) bool {
	return len(q.Shape) == 1 && q.Shape[0] > 1 && q.Shape[0] <= longestShort && len(q.Coef.Exp) == q.Shape[0]
}

// multiply returns p·q. It may overwrite p, which is the caller's own. Both have normalised coefficients, as results of countspace and of
// multiply have. If q is short (isShort) and p has an exponent for each coefficient, a loop here computes the product, and counts its
// multiplications in ops. All other products go to countspace.
func multiply(p, q countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if len(p.Coef.Exp) != len(p.Coef.Mant) || !isShort(q) {
		return p.Mul(q, ops)
	}

	// In place, from the last coefficient: coefficient k of p·q is Σ_j q[j] p[k−j]. A coefficient is mant · 2^exp.
	mant, exp, n := p.Coef.Mant, p.Coef.Exp, p.Size()
	qMant, qExp := q.Coef.Mant, q.Coef.Exp
	for range len(qMant) - 1 {
		mant, exp = append(mant, 0), append(exp, 0)
	}
	for k := len(mant) - 1; k >= 0; k-- {
		var sum float64
		var sumExp int64
		for j := max(0, k-n+1); j < len(qMant) && j <= k; j++ {
			sum, sumExp = addTwo(sum, sumExp, mant[k-j]*qMant[j], exp[k-j]+qExp[j])
		}
		mant[k], exp[k] = sum, sumExp
	}

	ops.Add(n * len(qMant))
	p.Shape = []int{len(mant)}
	p.Coef.Mant, p.Coef.Exp = mant, exp
	return p
}

// correlate returns the polynomial with coefficients Σ_j q[j] s[k+j] for each k. It may overwrite s, which is the caller's own. Both have
// normalised coefficients. If q is short (isShort) and s is longer and has an exponent for each coefficient, a loop here computes the
// result, and counts its multiplications in ops. All other polynomials go to countspace.Correlate.
func correlate(s, q countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if len(s.Coef.Exp) != len(s.Coef.Mant) || !fitsIn(q.Shape, s.Shape) || !isShort(q) {
		return countspace.Correlate(s, q, ops)
	}

	// In place, from the first coefficient. A coefficient is mant · 2^exp.
	mant, exp := s.Coef.Mant, s.Coef.Exp
	qMant, qExp := q.Coef.Mant, q.Coef.Exp
	n := len(mant) - len(qMant) + 1
	for k := range n {
		sum, sumExp := addTwo(mant[k]*qMant[0], exp[k]+qExp[0], mant[k+1]*qMant[1], exp[k+1]+qExp[1])
		for j := 2; j < len(qMant); j++ {
			sum, sumExp = addTwo(sum, sumExp, mant[k+j]*qMant[j], exp[k+j]+qExp[j])
		}
		mant[k], exp[k] = sum, sumExp
	}

	ops.Add(n * len(qMant))
	s.Shape = []int{n}
	s.Coef.Mant, s.Coef.Exp = mant[:n], exp[:n]
	return s
}

// fitsIn reports whether no side of box q is longer than the same side of box s.
func fitsIn(q, s []int) bool {
	for a := range q {
		if q[a] > s[a] {
			return false
		}
	}
	return true
}

// addTwo returns a·2^i + b·2^j as a number and an exponent, normalised: the number is 0 or in ±[1, 2). a and b are 0 or in ±[1, 4).
func addTwo(a float64, i int64, b float64, j int64) (float64, int64) {
	if a == 0 {
		a, i, b, j = b, j, 0, 0
	}
	if b != 0 { // a becomes the sum, in units of the larger exponent
		if j > i {
			a, i, b, j = b, j, a, i
		}
		if d := i - j; d < 1000 { // else b is far below the last digit of a, and 2^−d may be beyond float64
			a += float64(b * math.Float64frombits(uint64(1023-d)<<52)) // b · 2^−d
		}
	}

	if a == 0 {
		return 0, 0
	}
	bits := math.Float64bits(a)       // move its exponent to i
	i += int64(bits>>52&0x7ff) - 1023 // a float64 has its exponent, plus 1023, in the bits 52 to 62
	return math.Float64frombits(bits&^(0x7ff<<52) | 1023<<52), i
}

// copyPoly returns a copy of p that the caller may overwrite, with room for further coefficients.
func copyPoly(p countspace.Poly, capacity int) countspace.Poly {
	n := p.Size()
	mant, exp := make([]float64, n, n+capacity), make([]int64, n, n+capacity)
	copy(mant, p.Coef.Mant)
	copy(exp, p.Coef.Exp)
	p.Coef.Mant, p.Coef.Exp = mant, exp
	p.Shape = append([]int(nil), p.Shape...)
	return p
}

// canonicalCopy returns a copy of p with normalised coefficients, as results of countspace have.
func canonicalCopy(p countspace.Poly) countspace.Poly {
	return countspace.Crop(p, p.Shape)
}
