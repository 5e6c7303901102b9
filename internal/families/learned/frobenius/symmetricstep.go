package frobenius

// S given R, in closed form: the projection of the residual on every count class.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// symmetricStep returns the S that minimises ‖residual − S∘R‖ for part i's R, the residual of
// the other components:
//
//	S_c = P_c / N_c,   P_c = [z^c]⟨residual, R⟩,   N_c = [z^c] Π_ℓ (Σ_x v_ℓ[x]² z^λ(x)),
//
// and 0 where N_c is 0. S is then scaled so that ‖S∘R‖ is near 1 and its coefficients stay in range
// from sweep to sweep.
func (m *model) symmetricStep(i int, q products) countspace.Poly {
	target := countspace.Crop(q.base, m.sp.shape)
	for k, other := range m.parts {
		if k == i || m.fit.Alpha[k].IsZero() {
			continue
		}
		x := q.others[k]
		if other.s != nil {
			x = countspace.Hadamard(x, *other.s)
		}
		target = target.Sub(x.Scale(m.fit.Alpha[k]))
	}

	norm := countspace.Crop(q.self, m.sp.shape)
	s := countspace.New(m.sp.shape)
	var square scaled.Number
	c := make([]int, len(s.Shape))
	for j := range s.Size() {
		if n := norm.Coef.At(j); n.Sign() > 0 {
			x := target.Coef.At(j).Div(n)
			s.Set(c, x)
			square = square.Add(x.Mul(x).Mul(n))
		}
		advanceIndex(c, s.Shape)
	}

	if square.IsZero() {
		return s
	}
	return s.Scale(scaled.One.Div(square.Sqrt()))
}
