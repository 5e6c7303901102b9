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

// procrustes visits every leg ℓ once and replaces its map by the orthogonal O that minimises ‖B − B̃ ×_ℓ O‖:
//
//	M[x, y] = ⟨B with leg ℓ = x, B̃ with leg ℓ = y⟩ = U Σ Vᵀ,   O = U Vᵀ
//
// B̃ ×_ℓ O is B̃ with O applied to leg ℓ. This maximises ⟨B, B̃ ×_ℓ O⟩ = tr(OᵀM), and ‖B̃ ×_ℓ O‖ = ‖B̃‖. x is in the network's own
// coordinates and y in the learned ones, so O replaces the leg's map and nothing accumulates. G does not change. b is recomputed and α
// refitted; if that explains less, the model stays as it was. Legs of large symmetric cores keep their maps. Cost: one backward and one
// forward pass over the cores for each component, and an SVD of d × d for each leg.
func (m *model) procrustes(ctx context.Context) error {
	previous := m.snapshot()

	// A chain over the cores for the scalar product of B with each part.
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

	// At the end, a chain's prefix is the product of all cores.
	for k, p := range m.parts {
		m.b[k] = countspace.Dot(p.s, chains[k].prefix, m.sp.ops)
	}
	if err := m.refit(); err != nil {
		return err
	}
	if m.fit.Explained.Cmp(previous.fit.Explained) < 0 {
		*m = *previous
	}
	return nil
}

// rotateCore learns the map of every leg of core c, one after the other, and moves the chains of all parts past the core. The map is the
// orthogonal matrix nearest to M[x, y] = ⟨B with the leg at x, B̃ with the leg at y⟩. M follows from the core's polynomials with the leg at
// x, and from the core's environment in each part: the part and all other cores. Cores that take no maps keep theirs. A part is one
// component S∘R of the model: S weighs counts, and R has a vector for each leg.
func (m *model) rotateCore(c int, chains []*chain) error {
	environments := make([]countspace.Poly, len(chains))
	for k := range chains {
		var err error
		if environments[k], err = chains[k].environment(m.sp.coreBox(c)); err != nil {
			return err
		}
	}

	for mode, leg := range m.sp.cores[c].Legs {
		if !m.sp.takesMaps(c) { // a large symmetric core: only its chains are moved
			break
		}
		overlap, err := m.legOverlap(c, mode, environments)
		if err != nil {
			return err
		}
		if o := nearestOrthogonal(overlap); o != nil { // nil: no map is better than another
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

// legOverlap returns the matrix M of one leg: M[x, y] = Σ_k α_k ⟨B with the leg at x, part k with the leg at y⟩. The leg is number mode of
// core c. environments[k] is the core's environment in part k, the part and all other cores. A part is one component S∘R of the model: S
// weighs counts, and R has a vector for each leg.
func (m *model) legOverlap(c, mode int, environments []countspace.Poly) ([][]scaled.Number, error) {
	leg := m.sp.cores[c].Legs[mode]
	overlap := zeroMatrix(m.sp.dims[leg])
	for k, p := range m.parts {
		if m.fit.Alpha[k].IsZero() {
			continue
		}
		polys, err := m.sp.legPolys(c, mode, p.r)
		if err != nil {
			return nil, err
		}
		products := m.sp.shiftedProducts(polys, environments[k]) // by x and level
		for x := range overlap {
			for y, v := range p.r[leg] {
				level := m.sp.levels.Of[leg][y]
				term := products[x][level].Mul(scaled.FromFloat(v)).Mul(m.fit.Alpha[k])
				overlap[x][y] = overlap[x][y].Add(term)
			}
		}
	}
	return overlap, nil
}

// largestMapped is the number of legs up to which a symmetric core takes maps: seen through them it
// is no longer a function of one count, and its polynomials cost O(n³) at two levels.
const largestMapped = 12

// takesMaps reports whether the legs of core c take learned maps: not those of large symmetric cores.
func (sp *space) takesMaps(c int) bool {
	switch sp.cores[c].T.(type) {
	case *tensor.Symmetric, *tensor.SymmetryCP:
		return len(sp.cores[c].Legs) <= largestMapped
	}
	return true
}

// randomMaps returns, by leg, a random orthogonal map, or nil for a leg that takes none. It is the orthogonal factor of a Gaussian matrix.
// Starts after the first begin with these if maps are learned.
func (sp *space) randomMaps(seed uint64, start int) [][]float64 {
	rng := rand.New(rand.NewPCG(seed, uint64(start)<<42|1<<41)) // bit 41: another stream than that of any component of the start
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

// nearestOrthogonal returns the orthogonal matrix nearest to m = U Σ Vᵀ, which is U Vᵀ, row by row. It returns nil if m is 0 or not finite,
// or if the decomposition fails; then no map is better than another.
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

	// m as float64, in units of its largest entry.
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
	w.Mul(a, u, vt, d, d, d) // a = U Vᵀ: its entries, those of m, are no longer needed
	return a
}
