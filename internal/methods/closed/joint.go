package closed

// The joint marginal of a set of variables, unnormalised.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// jointCounts returns the joint marginal of the variables j.Joint, cell by cell, unnormalised:
//
//	M(x) = Σ_c S_c [z^c] Π_{v asked} w_v(x_v) p_{v,x_v}(z) · Π_{other links} p_j(z)
//
// for components of rank one and symmetric ones. A link is a tensor of the network and its legs. p_j is its polynomial, in which a monomial
// z^c stands for counts c of legs by level. S is contracted with the product over the other links once, so that a cell takes a few
// small products. The last variable changes fastest. Without counts, for components of rank one, all polynomials are constants and S is 1.
func (j form) jointCounts() ([]scaled.Number, error) {
	s, levels := j.symmetricPoly, j.levels
	if levels.D == 1 { // nothing is counted: a component of rank one
		s = countspace.Constant(0, scaled.One)
	}

	weights := j.legWeights(j.vectors, levels)
	isAsked := make(map[int]bool, len(j.Joint)) // by link
	for _, v := range j.Joint {
		isAsked[j.Net.Variables[v].Link] = true
	}
	others, err := j.multiplyLinks(isAsked, weights, levels)
	if err != nil {
		return nil, err
	}
	c := jointCells{form: j, others: countspace.Correlate(s, others, j.Ops)}

	// The polynomial of each value of the variables that are asked about, times its weight.
	for _, v := range j.Joint {
		link := j.Net.Links[j.Net.Variables[v].Link]
		cp := link.T.(*tensor.CP)
		term := newTerms(cp, pickWeights(link.Legs, weights), levels.D, j.Ops)
		row := make([]countspace.Poly, len(cp.Weights))
		for x, w := range cp.Weights {
			row[x] = term.termPoly(x).Scale(scaled.FromFloat(w))
		}
		c.terms = append(c.terms, row)
	}

	if err := c.addCells(0, countspace.Constant(levels.D-1, scaled.One)); err != nil {
		return nil, err
	}
	return c.cells, nil
}

// multiplyLinks returns the product of the count polynomials of all links but those that are left out. A count polynomial has a variable
// for each level, a class of the values of a leg, and its exponents count legs at that level. weights are by leg.
func (j form) multiplyLinks(isLeftOut map[int]bool, weights []tensor.LegWeights, levels countspace.Levels) (p countspace.Poly, err error) {
	var polys []countspace.Poly
	for k, link := range j.Net.Links {
		if err := j.Ctx.Err(); err != nil {
			return p, err
		}
		if isLeftOut[k] {
			continue
		}
		p, err := tensor.CountPoly(link.T, pickWeights(link.Legs, weights), levels.D, j.Ops)
		if err != nil {
			return p, fmt.Errorf("link %d: %w", k, err)
		}
		polys = append(polys, p)
	}
	return counts.MultiplyPolys(levels.D-1, polys, j.Ops), nil // level 0 counts nothing, so it has no count variable
}

// jointCells walks the cells of a set, the last variable fastest.
type jointCells struct {
	form
	others countspace.Poly     // S contracted with all other links
	terms  [][]countspace.Poly // per variable of the set and value
	cells  []scaled.Number
}

// addCells appends to c.cells the cells in which the first k variables have given values, the last variable fastest. c.terms[k] has a
// polynomial for each value of variable k, and p is the product of those of the given values. c.others stands for everything else, so that
// a cell is the sum of the products of coefficients of c.others and p (Dot).
func (c *jointCells) addCells(k int, p countspace.Poly) error {
	if k == len(c.terms) {
		c.cells = append(c.cells, countspace.Dot(c.others, p, c.Ops))
		return c.Ctx.Err()
	}
	for _, term := range c.terms[k] {
		if err := c.addCells(k+1, p.Mul(term, c.Ops)); err != nil {
			return err
		}
	}
	return nil
}
