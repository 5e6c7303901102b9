// Count polynomials of symmetric and symmetry-CP tensors.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// countPoly returns Σ_i α_i read(Π_ℓ legPoly): R is absorbed in the weights of the legs (Lemma 4).
func (t *SymmetryCP) countPoly(w []LegWeights, d int, ops *countspace.Ops) (countspace.Poly, error) {
	sum := countspace.Constant(d-1, scaled.Number{})
	j := newJoining(t.Levels, w, d)
	if _, err := j.box(w); err != nil {
		return countspace.Poly{}, err
	}
	for _, term := range t.Terms {
		p := countspace.Product(j.vars(), j.legPolys(term, w), ops)
		p = j.read(p, term.S, len(w), -1)
		ops.Add(len(p.Coef.Mant))
		sum = sum.Add(p.Scale(scaled.FromFloat(term.Alpha)))
	}
	return sum, nil
}

func (j joining) legPolys(term SymmetryRankOne, w []LegWeights) []countspace.Poly {
	ps := make([]countspace.Poly, len(w))
	for leg, list := range w {
		ps[leg] = j.legPoly(leg, term.vector(leg), list)
	}
	return ps
}

// vector returns R on a leg, nil for all ones.
func (term SymmetryRankOne) vector(leg int) []float64 {
	if term.R == nil {
		return nil
	}
	return term.R[leg]
}
