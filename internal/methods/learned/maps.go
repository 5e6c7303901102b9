package learned

// Orthogonal maps on the legs, learned in closed form: one Procrustes step per leg.

import (
	"context"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// procrustes visits every leg once and replaces its map by the orthogonal O that minimises ‖B − B̃
// ×_ℓ O‖: with
//
//	M[x, y] = ⟨B with leg ℓ = x, B̃ with leg ℓ = y⟩ = U Σ Vᵀ,   O = U Vᵀ
//
// maximises ⟨B, B̃ ×_ℓ O⟩ = tr(OᵀM), and ‖B̃ ×_ℓ O‖ = ‖B̃‖. B is in the network's own coordinates
// and y in the learned ones, so O replaces the leg's map outright and nothing accumulates. G does
// not change; b is recomputed and α refitted. Legs of large symmetric cores keep the maps they have.
// Cost: one backward and one forward pass over the cores per component, and an SVD of d × d per leg.
func (m *model) procrustes(ctx context.Context) error {
	before := m.snapshot()
	chains := make([]*chain, len(m.parts))
	for k, p := range m.parts {
		var err error
		chains[k], err = newChain(p.s, len(m.sp.cores), m.sp.ops, func(c int) (countspace.Poly, error) {
			return m.sp.corePoly(c, p.r)
		})
		if err != nil {
			return err
		}
	}

	for c := range m.sp.cores {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.rotateCore(c, chains); err != nil {
			return err
		}
	}

	for k, p := range m.parts {
		m.b[k] = countspace.Dot(p.s, chains[k].prefix, m.sp.ops)
	}

	if err := m.refit(); err != nil {
		return err
	}
	if m.fit.Explained.Cmp(before.fit.Explained) < 0 {
		*m = *before
	}
	return nil
}

// rotateCore learns the map of every leg of core c, and moves the chains past the core. Cores that take no maps keep theirs.
func (m *model) rotateCore(c int, chains []*chain) error {
	env := make([]countspace.Poly, len(chains))
	for k := range chains {
		var err error
		if env[k], err = chains[k].environment(m.sp.coreBox(c)); err != nil {
			return err
		}
	}

	for mode, leg := range m.sp.cores[c].Legs {
		if !m.sp.takesMaps(c) {
			break
		}
		overlap := zeroMatrix(m.sp.dims[leg])
		for k, p := range m.parts {
			if m.fit.Alpha[k].IsZero() {
				continue
			}
			polys, err := m.sp.legPolys(c, mode, p.r)
			if err != nil {
				return err
			}
			products := m.sp.shiftedProducts(polys, env[k])
			for x := range overlap {
				for y, v := range p.r[leg] {
					t := products[x][m.sp.levels.Of[leg][y]].Mul(scaled.FromFloat(v)).Mul(m.fit.Alpha[k])
					overlap[x][y] = overlap[x][y].Add(t)
				}
			}
		}

		if o := nearestOrthogonal(overlap); o != nil {
			m.sp.rot[leg] = o
		}
	}

	for k, p := range m.parts {
		poly, err := m.sp.corePoly(c, p.r)
		if err != nil {
			return err
		}
		chains[k].advance(poly)
	}

	return nil
}

// largestMapped is the number of legs up to which a symmetric core takes maps: seen through them it
// is no longer a function of one count, and its polynomials cost O(n³) at two levels.
const largestMapped = 12

// takesMaps reports whether the legs of core c take learned maps.
func (sp *space) takesMaps(c int) bool {
	switch sp.cores[c].T.(type) {
	case *tensor.Symmetric, *tensor.SymmetryCP:
		return len(sp.cores[c].Legs) <= largestMapped
	}
	return true
}

// randomMaps returns a random orthogonal map for each leg that takes one, with which starts after the first begin if maps are learned. It
// is the orthogonal factor of a Gaussian matrix.
func (sp *space) randomMaps(seed uint64, start int) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, uint64(start)<<42|1<<41))
	rot := make([][]float64, len(sp.dims))
	for c, core := range sp.cores {
		if !sp.takesMaps(c) {
			continue
		}
		for _, leg := range core.Legs {
			draw := zeroMatrix(sp.dims[leg])
			for x := range draw {
				for y := range draw[x] {
					draw[x][y] = scaled.FromFloat(rng.NormFloat64())
				}
			}
			rot[leg] = nearestOrthogonal(draw)
		}
	}

	return rot
}

// nearestOrthogonal returns U Vᵀ of m = U Σ Vᵀ, row after row. It returns nil if m is 0 or not finite, or the decomposition fails; then
// no map is better than another.
func nearestOrthogonal(m [][]scaled.Number) []float64 {
	d := len(m)
	var largest scaled.Number
	for _, row := range m {
		for _, x := range row {
			if a := x.Abs(); a.Cmp(largest) > 0 {
				largest = a
			}
		}
	}

	if largest.IsZero() || !largest.IsFinite() {
		return nil
	}
	a := make([]float64, 0, d*d)
	for _, row := range m {
		for _, v := range row {
			a = append(a, v.Div(largest).Float64())
		}
	}

	var w linalg.Work
	u, s, vt := make([]float64, d*d), make([]float64, d), make([]float64, d*d)
	if err := w.SVD(a, d, d, u, s, vt); err != nil {
		return nil
	}
	w.Mul(a, u, vt, d, d, d)
	return a
}
