package frobenius

// The contribution of a core's leg to ⟨B, S∘R⟩, value by value.

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// coreBox returns the box of count vectors of core c's legs.
func (sp *space) coreBox(c, d int) []int {
	if d == 1 {
		return nil
	}
	of := make([][]uint8, len(sp.cores[c].Legs))
	for mode, leg := range sp.cores[c].Legs {
		of[mode] = sp.levels.Of[leg]
	}
	return countspace.Levels{D: d, Of: of}.Shape()
}

// shiftedProducts returns m[x][a] = Σ_j g_x[j] t[j+e_a]: the scalar product of B with the leg at
// value x, and of the component with the leg at level a and weight 1.
func (sp *space) shiftedProducts(polys []countspace.Poly, t countspace.Poly, d int) [][]scaled.Number {
	out := make([][]scaled.Number, len(polys))
	shift := make([]int, d-1)
	for x, g := range polys {
		out[x] = make([]scaled.Number, d)
		for a := range d {
			if a > 0 {
				shift[a-1] = 1
			}
			out[x][a] = countspace.DotShift(t, g, shift, sp.ops)
			if a > 0 {
				shift[a-1] = 0
			}
		}
	}
	return out
}

// legProducts returns Σ_x O[x, y] m[x][λ(y)] per learned coordinate y of a leg.
func (sp *space) legProducts(leg int, polys []countspace.Poly, t countspace.Poly, d int) []scaled.Number {
	m := sp.shiftedProducts(polys, t, d)
	n := len(polys)
	out := make([]scaled.Number, n)
	o := sp.rot[leg]
	for y := range out {
		a := sp.level(leg, y, d)
		if o == nil {
			out[y] = m[y][a]
			continue
		}
		for x := range n {
			out[y] = out[y].Add(m[x][a].Mul(scaled.FromFloat(o[x*n+y])))
		}
	}
	return out
}

// legPolys returns the count polynomials of core c with its mode fixed at each value, all other legs
// under r.
func (sp *space) legPolys(c, mode int, r [][]float64, d int) ([]countspace.Poly, error) {
	core := sp.cores[c]
	w := sp.coreWeights(c, r, d)
	n := sp.dims[core.Legs[mode]]
	if len(core.Legs) <= n {
		polys, err := tensor.LegPolys(core.T, w, d, sp.ops)
		if err != nil {
			return nil, fmt.Errorf("frobenius: core %d: %w", c, err)
		}
		return polys[mode], nil
	}

	// One leg of many: fixing it by weights costs less than the polynomials of all legs.
	out := make([]countspace.Poly, n)
	for x := range out {
		w[mode] = make(tensor.LegWeights, n*d)
		w[mode][x*d] = 1
		p, err := tensor.CountPoly(core.T, w, d, sp.ops)
		if err != nil {
			return nil, fmt.Errorf("frobenius: core %d: %w", c, err)
		}
		out[x] = p
	}

	return out, nil
}
