// Count polynomials of CP tensors: a product of linear polynomials per term.

package tensor

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// countPoly returns Σ_t weight_t Π_ℓ (Σ_a ⟨v_ℓt, w_ℓ[·,a]⟩ z^a).
// Variable tensors of any degree come this way.
func (t *CP) countPoly(w []LegWeights, d int, ops *countspace.Ops) (countspace.Poly, error) {
	if d == 1 {
		return countspace.Constant(0, t.inner(w, ops)), nil
	}

	if _, err := sizeWithin(weightBox(w, d), MaxCoefficients); err != nil {
		return countspace.Poly{}, err
	}

	var legs []int // nil: all
	if len(t.Shape) >= manyLegs {
		if legs = t.weighted(w, d); len(legs) > 2 {
			legs = nil // the tree of products stays as it is
		}
	}
	sum := countspace.Constant(d-1, scaled.Number{})
	for i, weight := range t.Weights {
		if weight == 0 {
			continue
		}
		var p countspace.Poly
		if legs == nil {
			p = product(d-1, t.factors(i, w, d, ops), ops)
		} else {
			factors := make([]countspace.Poly, len(legs))
			for k, leg := range legs {
				factors[k] = t.factor(i, leg, w[leg], d, ops)
			}
			p = product(d-1, factors, ops)
			ops.Add(len(t.Shape) - len(legs))
		}
		sum = sum.Add(p.Scale(scaled.FromFloat(weight)))
	}
	return sum, nil
}

// factors returns the polynomials of term i, one per leg, linear in every variable.
func (t *CP) factors(i int, w []LegWeights, d int, ops *countspace.Ops) []countspace.Poly {
	factors := make([]countspace.Poly, len(t.Shape))
	for leg := range t.Shape {
		factors[leg] = t.factor(i, leg, w[leg], d, ops)
	}
	return factors
}

// factor returns the polynomial of term i on a leg.
func (t *CP) factor(i, leg int, w LegWeights, d int, ops *countspace.Ops) countspace.Poly {
	row := make([]scaled.Number, d)
	for a := range d {
		row[a] = t.legDot(i, leg, w, d, a, ops)
	}
	return linear(row)
}

// manyLegs is the number from which on it pays to look for legs without weights.
const manyLegs = 64

// weighted returns the legs whose polynomials are not 1 in every term: of a variable's many legs few have weights or levels.
func (t *CP) weighted(w []LegWeights, d int) []int {
	legs := []int{}
	for leg, list := range w {
		one := t.Vectors[leg] == nil
		for k, x := range list {
			one = one && (k%d == 0 && x == 1 || k%d != 0 && x == 0)
		}
		if !one {
			legs = append(legs, leg)
		}
	}
	return legs
}

// legDot returns Σ_x v[x] w[x·d+a] for the vector v of term i on a leg:
// one entry where the vectors are the identity.
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
			p = p.Mul(t.legDot(i, leg, w[leg], 1, 0, ops))
			ops.Add(1)
		}
		sum = sum.Add(p)
	}
	return sum
}
