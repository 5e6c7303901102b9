package closed

// Terms of a variable's link: the count polynomial of each of its values.

import (
	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// terms are the rank-one terms of a CP tensor under weights of its legs. The sum of their polynomials times the tensor's weights is the
// polynomial of tensor.CountPoly.
type terms struct {
	cp      *tensor.CP
	weights []tensor.LegWeights // by leg of the tensor: weight of value y at level a at y*levels+a
	levels  int
	ops     *countspace.Ops
}

// newTerms returns the terms of a tensor under the weights of its legs.
func newTerms(cp *tensor.CP, weights []tensor.LegWeights, levels int, ops *countspace.Ops) terms {
	return terms{cp: cp, weights: weights, levels: levels, ops: ops}
}

// termPoly returns the polynomial of term x: the product over legs ℓ of
//
//	c_ℓ0 + Σ_{a≥1} c_ℓa z_a,   c_ℓa = ⟨A_ℓ[x,·], W_ℓ[·,a]⟩
//
// with a variable z_a for every level a, a class of the values of a leg, but level 0, which counts nothing. A_ℓ are the vectors of the CP
// tensor, W_ℓ the weights of the leg by level. The degree in each variable is at most the number of legs. With one level it is a constant.
func (t terms) termPoly(x int) countspace.Poly {
	if t.levels == 1 {
		p := scaled.One
		for leg := range t.cp.Shape {
			p = p.Mul(t.entry(x, leg, 0))
			t.ops.Add(1)
		}
		return countspace.Constant(0, p)
	}

	factors := make([]countspace.Poly, len(t.cp.Shape))
	for leg := range factors {
		row := make([]scaled.Number, t.levels)
		for a := range row {
			row[a] = t.entry(x, leg, a)
		}
		factors[leg] = counts.LinearPoly(row)
	}
	return counts.MultiplyPolys(t.levels-1, factors, t.ops)
}

// entry returns ⟨A_ℓ[x,·], W_ℓ[·,a]⟩ for leg ℓ and level a: the sum over the leg's values y of entry y of the vector of term x, times the
// weight of y at level a. Without vectors it is the weight of value x.
func (t terms) entry(x, leg, level int) scaled.Number {
	w, v := t.weights[leg], t.cp.Vectors[leg]
	if v == nil {
		return scaled.FromFloat(w[x*t.levels+level])
	}

	d := t.cp.Shape[leg]
	t.ops.Add(d)
	var sum scaled.Number
	for y, factor := range v[x*d : (x+1)*d] {
		sum = sum.Add(scaled.FromFloat(factor).Mul(scaled.FromFloat(w[y*t.levels+level])))
	}
	return sum
}
