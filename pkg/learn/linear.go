package learn

// The steps that sweeps consist of: multiplying by, and contracting with, the polynomial of one leg at two levels, in place.
//
// countspace does the same for any pieces; these two loops do it without a call per coefficient, which is five times
// faster where almost every piece is linear.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
)

// isLine reports whether q is q0 + q1·z in one variable, with exponents.
func isLine(q countspace.Poly) bool {
	return len(q.Shape) == 1 && q.Shape[0] == 2 && len(q.Coef.Exp) == 2
}

// multiply returns p·q. p is the caller's own and may be overwritten; it is canonical, as countspace and multiply leave it.
func multiply(p, q countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if !isLine(q) || len(p.Coef.Exp) != len(p.Coef.Mant) {
		return p.Mul(q, ops)
	}
	m, e := append(p.Coef.Mant, 0), append(p.Coef.Exp, 0)
	q0, q1 := q.Coef.Mant[0], q.Coef.Mant[1]
	f0, f1 := q.Coef.Exp[0], q.Coef.Exp[1]
	for k := len(m) - 1; k > 0; k-- {
		m[k], e[k] = addTwo(m[k]*q0, e[k]+f0, m[k-1]*q1, e[k-1]+f1)
	}
	m[0], e[0] = addTwo(m[0]*q0, e[0]+f0, 0, 0)
	ops.Add(2 * len(m))
	p.Shape = []int{len(m)}
	p.Coef.Mant, p.Coef.Exp = m, e
	return p
}

// contract returns h[k] = Σ_j q[j] s[k+j], overwriting s, which is the caller's own and canonical.
func contract(s, q countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if !isLine(q) || s.Shape[0] < 2 || len(s.Coef.Exp) != len(s.Coef.Mant) {
		return countspace.Correlate(s, q, ops)
	}
	m, e := s.Coef.Mant, s.Coef.Exp
	q0, q1 := q.Coef.Mant[0], q.Coef.Mant[1]
	f0, f1 := q.Coef.Exp[0], q.Coef.Exp[1]
	n := len(m) - 1
	for k := range n {
		m[k], e[k] = addTwo(m[k]*q0, e[k]+f0, m[k+1]*q1, e[k+1]+f1)
	}
	ops.Add(2 * n)
	s.Shape = []int{n}
	s.Coef.Mant, s.Coef.Exp = m[:n], e[:n]
	return s
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

// own returns a copy of p that the caller may overwrite, with room for more coefficients.
func own(p countspace.Poly, room int) countspace.Poly {
	n := p.Size()
	m, e := make([]float64, n, n+room), make([]int64, n, n+room)
	copy(m, p.Coef.Mant)
	copy(e, p.Coef.Exp)
	p.Coef.Mant, p.Coef.Exp = m, e
	p.Shape = append([]int(nil), p.Shape...)
	return p
}

// canonical returns a copy of p with normalised coefficients, as every result of countspace has them.
func canonical(p countspace.Poly) countspace.Poly {
	return countspace.Crop(p, p.Shape)
}
