// Count polynomials of symmetric and symmetry-CP tensors.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// countPoly returns the count polynomial over d levels: the sum over the terms of α_i times joining.countPoly of the product of the legs'
// polynomials, which have R multiplied in (Lemma 4).
func (t *SymmetryCP) countPoly(
	w []LegWeights, d int, ops *countspace.Ops,
) (countspace.Poly, error) {
	sum := countspace.Constant(d-1, scaled.Number{})
	j := newJoining(t.Levels, w, d)
	if _, err := j.box(w); err != nil {
		return countspace.Poly{}, err
	}

	for _, term := range t.Terms {
		p := product(j.vars(), j.legPolys(term, w), ops)
		p = j.countPoly(p, term.S, len(w), -1) // −1: no leg beside these
		ops.Add(len(p.Coef.Mant))
		sum = sum.Add(p.Scale(scaled.FromFloat(term.Alpha)))
	}
	return sum, nil
}

// legPolys returns the polynomial of every leg under a term's vectors (legPoly).
func (j joining) legPolys(term SymmetryRankOne, w []LegWeights) []countspace.Poly {
	ps := make([]countspace.Poly, len(w))
	for leg, list := range w {
		ps[leg] = j.legPoly(leg, term.vector(leg), list)
	}
	return ps
}

// vector returns the term's vector R on a leg; nil stands for all ones.
func (term SymmetryRankOne) vector(leg int) []float64 {
	if term.R == nil {
		return nil
	}
	return term.R[leg]
}

// block is the number of legs that are multiplied in one tree before they join a product in several variables.
const block = 8

// product returns the product of the polynomials ps, one for each leg, in vars variables. In one variable a balanced tree is best. In m
// > 1 variables it multiplies the product so far by the product of the next block of legs. A tree would multiply two halves of n legs at
// its root, which costs (n/2)^(2m), all blocks cost n^(m+1). With two variables and 300 legs that is 500 million multiply-adds against
// 90.
func product(vars int, ps []countspace.Poly, ops *countspace.Ops) countspace.Poly {
	if vars <= 1 || len(ps) <= block {
		return countspace.Product(vars, ps, ops)
	}
	p := countspace.Product(vars, ps[:block], ops)
	for ps = ps[block:]; len(ps) > 0; ps = ps[min(block, len(ps)):] {
		p = p.Mul(countspace.Product(vars, ps[:min(block, len(ps))], ops), ops)
	}
	return p
}
