package closed

// The joint marginal of a set of variables, unnormalised.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// jointCounts returns the joint marginal of a set for the
// classes of rank one and the symmetric ones, cell by cell,
//
//	M(x) = Σ_c S_c [z^c] Π_{v in set} w_v(x_v) p_v,x_v(z) · Π_{other links} p_j(z)
//
// where the product over the other links is formed once and S contracted with it,
// so that a cell costs a few small products.
func (j form) jointCounts() ([]scaled.Number, error) {
	s, levels := j.s, j.levels
	if levels.D == 1 {
		s = countspace.Constant(0, scaled.One)
	}

	weights := j.legWeights(j.r, levels)
	asked := make(map[int]bool, len(j.Joint))
	for _, v := range j.Joint {
		asked[j.Net.Variables[v].Link] = true
	}

	var polys []countspace.Poly
	for k, link := range j.Net.Links {
		if err := j.Ctx.Err(); err != nil {
			return nil, err
		}
		if asked[k] {
			continue
		}
		p, err := tensor.CountPoly(link.T, on(link.Legs, weights), levels.D, j.Ops)
		if err != nil {
			return nil, fmt.Errorf("link %d: %w", k, err)
		}
		polys = append(polys, p)
	}

	c := jointCells{form: j, left: countspace.Correlate(s, counts.Multiply(levels.D-1, polys, j.Ops), j.Ops)}
	for _, v := range j.Joint {
		link := j.Net.Links[j.Net.Variables[v].Link]
		cp := link.T.(*tensor.CP)
		term := termOf(cp, on(link.Legs, weights), levels.D, j.Ops)
		row := make([]countspace.Poly, len(cp.Weights))
		for x, w := range cp.Weights {
			row[x] = term.poly(x).Scale(scaled.FromFloat(w))
		}
		c.terms = append(c.terms, row)
	}

	if err := c.add(0, countspace.Constant(levels.D-1, scaled.One)); err != nil {
		return nil, err
	}
	return c.out, nil
}

// jointCells walks the cells of a set, the last variable fastest.
type jointCells struct {
	form
	left  countspace.Poly     // S contracted with all other links
	terms [][]countspace.Poly // per variable of the set and value
	out   []scaled.Number
}

// add appends the cells that begin with the values whose product is p.
func (c *jointCells) add(k int, p countspace.Poly) error {
	if k == len(c.terms) {
		c.out = append(c.out, countspace.Dot(c.left, p, c.Ops))
		return c.Ctx.Err()
	}
	for _, term := range c.terms[k] {
		if err := c.add(k+1, p.Mul(term, c.Ops)); err != nil {
			return err
		}
	}
	return nil
}
