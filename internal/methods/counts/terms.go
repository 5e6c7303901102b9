package counts

// Terms of a variable's link: the count polynomial of each of its values.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// termPoly returns the polynomial of term x of a link in CP form, without the term's weight: Π_ℓ Σ_y A_ℓ[x, y] w_ℓ(y) z^{level(y)} over the
// legs ℓ that no table has. A are the link's vectors, and w and level what each value y contributes.
func (l *layout) termPoly(link, x int, ops *countspace.Ops) countspace.Poly {
	cp := l.net.Links[link].T.(*tensor.CP)
	var factors []countspace.Poly
	for mode, leg := range l.net.Links[link].Legs {
		if !l.onTable(leg) {
			factors = append(factors, l.legFactor(leg, cp.Vectors[mode], x))
		}
	}
	return countspace.Product(l.countVariables, factors, ops)
}

// legFactor returns the factor of one leg in term x of a link: Σ_y A[x, y] w(y) z^{level(y)} over the leg's values y. vectors are the
// link's vectors A on the leg, row by row. They are nil for the identity.
func (l *layout) legFactor(leg int, vectors []float64, x int) countspace.Poly {
	row := make([]scaled.Number, l.countVariables+1) // by level: 0 does not count, a counts at z_a
	if vectors == nil {                              // term x has value x alone
		w, level := l.contribution(leg, x)
		row[level] = scaled.FromFloat(w)
		return LinearPoly(row)
	}
	dim := l.net.Dims[leg]
	for y, a := range vectors[x*dim : (x+1)*dim] {
		w, level := l.contribution(leg, y)
		row[level] = row[level].Add(scaled.FromFloat(a).Mul(scaled.FromFloat(w)))
	}
	return LinearPoly(row)
}

// LinearPoly returns the polynomial row[0] + Σ_a row[a] z_a, over the variables z_1, z_2, …. Its box has 2 exponents in variable a if
// row[a] is not 0, and otherwise 1.
func LinearPoly(row []scaled.Number) countspace.Poly {
	shape := make([]int, len(row)-1)
	for a := range shape {
		shape[a] = 1
		if !row[a+1].IsZero() {
			shape[a] = 2
		}
	}
	p := countspace.New(shape)
	exponents := make([]int, len(shape))
	p.Set(exponents, row[0])
	for a := range shape {
		if shape[a] == 2 {
			exponents[a] = 1
			p.Set(exponents, row[a+1])
			exponents[a] = 0
		}
	}
	return p
}

// linkPoly returns the polynomial of a link that no table has, by the contributions of the values of its legs.
func (l *layout) linkPoly(link int, ops *countspace.Ops) (countspace.Poly, error) {
	legs := l.net.Links[link].Legs
	weights := make([]tensor.LegWeights, len(legs))
	for mode, leg := range legs {
		weights[mode] = l.legWeights(leg)
	}
	return tensor.CountPoly(l.net.Links[link].T, weights, l.countVariables+1, ops)
}
