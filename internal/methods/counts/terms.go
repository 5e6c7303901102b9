package counts

// Terms of a variable's link: the count polynomial of each of its values.

import (
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// termPoly returns the polynomial of term x of a CP link without its weight: Π_ℓ Σ_y A_ℓ[x, y] w_ℓ(y) z^{level(y)} over the legs ℓ that no
// table has.
func (l *layout) termPoly(link, x int, ops *countspace.Ops) countspace.Poly {
	k := &l.net.Links[link]
	cp := k.T.(*tensor.CP)
	var factors []countspace.Poly
	for mode, leg := range k.Legs {
		if !l.onTable(leg) {
			factors = append(factors, l.legFactor(leg, cp.Vectors[mode], x))
		}
	}
	return countspace.Product(l.countVariables, factors, ops)
}

// legFactor returns the factor of one leg in term x. v are the link's vectors on the leg, nil for the identity.
func (l *layout) legFactor(leg int, v []float64, x int) countspace.Poly {
	row := make([]scaled.Number, l.countVariables+1)
	if v == nil {
		w, level := l.contribution(leg, x)
		row[level] = scaled.FromFloat(w)
		return Linear(row)
	}
	dim := l.net.Dims[leg]
	for y, a := range v[x*dim : (x+1)*dim] {
		w, level := l.contribution(leg, y)
		row[level] = row[level].Add(scaled.FromFloat(a).Mul(scaled.FromFloat(w)))
	}
	return Linear(row)
}

// Linear returns row[0] + Σ_a row[a] z_a over a box that is 2 wide where row[a] is not 0.
func Linear(row []scaled.Number) countspace.Poly {
	shape := make([]int, len(row)-1)
	for a := range shape {
		shape[a] = 1
		if !row[a+1].IsZero() {
			shape[a] = 2
		}
	}
	p := countspace.New(shape)
	c := make([]int, len(shape))
	p.Set(c, row[0])
	for a := range shape {
		if shape[a] == 2 {
			c[a] = 1
			p.Set(c, row[a+1])
			c[a] = 0
		}
	}
	return p
}

// linkPoly returns the polynomial of a link that meets no table.
func (l *layout) linkPoly(link int, ops *countspace.Ops) (countspace.Poly, error) {
	k := &l.net.Links[link]
	w := make([]tensor.LegWeights, len(k.Legs))
	for mode, leg := range k.Legs {
		w[mode] = l.legWeights(leg)
	}
	return tensor.CountPoly(k.T, w, l.countVariables+1, ops)
}
