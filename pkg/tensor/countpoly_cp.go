// Count polynomials of CP tensors: a product of linear polynomials per term.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// countPoly returns the count polynomial Σ_t weight_t Π_ℓ (Σ_a ⟨v_ℓt, w_ℓ[·,a]⟩ z^a) over d levels, where v_ℓt is the vector of term t
// on leg ℓ. The tensors of variables come this way too, with a leg for each of their factors. With one level it is a number, the inner
// product.
func (t *CP) countPoly(w []LegWeights, d int, ops *countspace.Ops) (countspace.Poly, error) {
	if d == 1 {
		return countspace.Constant(0, t.inner(w, ops)), nil
	}

	if _, err := sizeWithin(weightBox(w, d), MaxCoefficients); err != nil {
		return countspace.Poly{}, err
	}

	sum := countspace.Constant(d-1, scaled.Number{})
	for i, weight := range t.Weights {
		if weight == 0 {
			continue
		}
		p := product(d-1, t.factors(i, w, d, ops), ops)
		sum = sum.Add(p.Scale(scaled.FromFloat(weight)))
	}
	return sum, nil
}

// factors returns the factors Σ_a ⟨v_ℓi, w_ℓ[·,a]⟩ z^a of term i, one for each leg ℓ. They are linear in every variable.
func (t *CP) factors(i int, w []LegWeights, d int, ops *countspace.Ops) []countspace.Poly {
	factors := make([]countspace.Poly, len(t.Shape))
	for leg := range t.Shape {
		row := make([]scaled.Number, d)
		for a := range d {
			row[a] = t.legDot(i, leg, w[leg], d, a, ops)
		}
		factors[leg] = linear(row)
	}
	return factors
}

// legDot returns Σ_x v[x] w[x·d+a] for the vector v of term i on a leg. If the leg's vectors are the identity, that is the weight of
// value i.
func (t *CP) legDot(i, leg int, w LegWeights, d, a int, ops *countspace.Ops) scaled.Number {
	v := t.Vectors[leg]
	dim := t.Shape[leg]
	if v == nil {
		return scaled.FromFloat(w[i*d+a])
	}
	ops.Add(dim)
	return dot(v[i*dim:(i+1)*dim], w, dim, d, a)
}

// inner returns ⟨t, ⊗w⟩ = Σ_t weight_t Π_ℓ ⟨v_ℓt, w_ℓ⟩,
// the contraction with a rank-one tensor (Lemma 2).
func (t *CP) inner(w []LegWeights, ops *countspace.Ops) scaled.Number {
	var sum scaled.Number
	for i, weight := range t.Weights {
		p := scaled.FromFloat(weight)
		for leg := range t.Shape {
			if p.IsZero() {
				break
			}
			p = p.Mul(t.legDot(i, leg, w[leg], 1, 0, ops)) // one level, and of it level 0
			ops.Add(1)
		}
		sum = sum.Add(p)
	}
	return sum
}
