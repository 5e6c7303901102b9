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

// isShort reports whether q is a short polynomial in one variable, with exponents.
func isShort(q countspace.Poly) bool {
	return len(q.Shape) == 1 && q.Shape[0] > 1 && q.Shape[0] <= longestShort && len(q.Coef.Exp) == q.Shape[0]
}

// multiply returns p·q. p is the caller's own and may be overwritten; both are canonical, as
// countspace and multiply leave them.
func multiply(p, q countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if len(p.Coef.Exp) != len(p.Coef.Mant) {
		return p.Mul(q, ops)
	}
	if !isShort(q) {
		return p.Mul(q, ops)
	}

	m, e, n := p.Coef.Mant, p.Coef.Exp, p.Size()
	qm, qe := q.Coef.Mant, q.Coef.Exp
	for range len(qm) - 1 {
		m, e = append(m, 0), append(e, 0)
	}
	for k := len(m) - 1; k >= 0; k-- {
		var x float64
		var i int64
		for j := max(0, k-n+1); j < len(qm) && j <= k; j++ {
			x, i = addTwo(x, i, m[k-j]*qm[j], e[k-j]+qe[j])
		}
		m[k], e[k] = x, i
	}

	ops.Add(n * len(qm))
	p.Shape = []int{len(m)}
	p.Coef.Mant, p.Coef.Exp = m, e
	return p
}

// correlate returns h[k] = Σ_j q[j] s[k+j], overwriting s, which is the caller's own; both are
// canonical.
func correlate(s, q countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if len(s.Coef.Exp) != len(s.Coef.Mant) || !fitsIn(q.Shape, s.Shape) {
		return countspace.Correlate(s, q, ops)
	}
	if !isShort(q) {
		return countspace.Correlate(s, q, ops)
	}

	m, e := s.Coef.Mant, s.Coef.Exp
	qm, qe := q.Coef.Mant, q.Coef.Exp
	n := len(m) - len(qm) + 1
	for k := range n {
		x, i := addTwo(m[k]*qm[0], e[k]+qe[0], m[k+1]*qm[1], e[k+1]+qe[1])
		for j := 2; j < len(qm); j++ {
			x, i = addTwo(x, i, m[k+j]*qm[j], e[k+j]+qe[j])
		}
		m[k], e[k] = x, i
	}

	ops.Add(n * len(qm))
	s.Shape = []int{n}
	s.Coef.Mant, s.Coef.Exp = m[:n], e[:n]
	return s
}

// fitsIn reports whether no side of the box q is longer than the same side of the box s.
func fitsIn(q, s []int) bool {
	for a := range q {
		if q[a] > s[a] {
			return false
		}
	}
	return true
}

// addTwo returns a·2^i + b·2^j in canonical form; a and b are 0 or in ±[1, 4).
func addTwo(a float64, i int64, b float64, j int64) (float64, int64) {
	if a == 0 {
		a, i, b, j = b, j, 0, 0
	}
	if b != 0 {
		if j > i {
			a, i, b, j = b, j, a, i
		}
		if d := i - j; d < 1000 {
			a += float64(b * math.Float64frombits(uint64(1023-d)<<52))
		}
	}

	if a == 0 {
		return 0, 0
	}
	bits := math.Float64bits(a)
	i += int64(bits>>52&0x7ff) - 1023
	return math.Float64frombits(bits&^(0x7ff<<52) | 1023<<52), i
}

// copyPoly returns a copy of p that the caller may overwrite, with capacity for further coefficients.
func copyPoly(p countspace.Poly, capacity int) countspace.Poly {
	n := p.Size()
	m, e := make([]float64, n, n+capacity), make([]int64, n, n+capacity)
	copy(m, p.Coef.Mant)
	copy(e, p.Coef.Exp)
	p.Coef.Mant, p.Coef.Exp = m, e
	p.Shape = append([]int(nil), p.Shape...)
	return p
}

// canonicalCopy returns a copy of p with normalised coefficients, as every result of countspace has them.
func canonicalCopy(p countspace.Poly) countspace.Poly {
	return countspace.Crop(p, p.Shape)
}
