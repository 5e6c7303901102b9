package frobenius

// Data shared by all scalar products of one problem: dimensions, cores, levels, maps, and the
// order legs are visited in.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// space is the base tensor with the levels and the maps under which components are seen. Its cores
// never change: learned maps enter through the leg weights.
type space struct {
	dims   []int
	cores  []btn.Core
	levels countspace.Levels
	shape  []int // box of the levels
	order  []int // all legs, core after core
	rot    [][]float64
	ops    *countspace.Ops
	// C of Fit.Rounding, and the rounding of the maps (btn.MapRounding) relative to ‖B‖; set by scale
	cancelled, mapped float64
}

// newSpace checks cores and levels.
func newSpace(net *btn.Network, levels countspace.Levels) (*space, error) {
	if err := net.ValidateCores(); err != nil {
		return nil, fmt.Errorf("frobenius: %w", err)
	}
	if err := levels.Validate(net.Dims); err != nil {
		return nil, fmt.Errorf("frobenius: %w", err)
	}
	if _, err := levels.Size(); err != nil {
		return nil, fmt.Errorf("frobenius: %w", err)
	}
	sp := &space{
		dims:      net.Dims,
		cores:     net.Cores,
		levels:    levels,
		shape:     levels.Shape(),
		rot:       make([][]float64, len(net.Dims)),
		ops:       &countspace.Ops{},
		cancelled: 1,
	}
	for _, core := range net.Cores {
		sp.order = append(sp.order, core.Legs...)
	}
	return sp, nil
}

// weights returns W[x, a] = Σ_{y: λ(y)=a} O[x, y] v[y] of a leg over d levels, d being 1 (no
// counting) or levels.D.
func (sp *space) weights(leg int, v []float64, d int) tensor.LegWeights {
	w := make(tensor.LegWeights, len(v)*d)
	o := sp.rot[leg]
	for y, vy := range v {
		a := sp.level(leg, y, d)
		if o == nil {
			w[y*d+a] = vy
			continue
		}
		for x := range v {
			w[x*d+a] += o[x*len(v)+y] * vy
		}
	}
	return w
}

// level returns λ_ℓ(y), 0 when nothing is counted.
func (sp *space) level(leg, y, d int) int {
	if d == 1 {
		return 0
	}
	return int(sp.levels.Of[leg][y])
}

// row returns Σ_y u[y] w[y] z^λ(y) of a leg, as weights by level.
func (sp *space) row(leg int, u, w []float64, d int) []float64 {
	row := make([]float64, d)
	for y := range u {
		row[sp.level(leg, y, d)] += u[y] * w[y]
	}
	return row
}

// corePoly returns the count polynomial of core c under u = R.
func (sp *space) corePoly(c int, r [][]float64, d int) (countspace.Poly, error) {
	p, err := tensor.CountPoly(sp.cores[c].T, sp.coreWeights(c, r, d), d, sp.ops)
	if err != nil {
		return p, fmt.Errorf("frobenius: core %d: %w", c, err)
	}
	return p, nil
}

// coreWeights returns the weights of all legs of core c under u = R: see weights.
func (sp *space) coreWeights(c int, r [][]float64, d int) []tensor.LegWeights {
	legs := sp.cores[c].Legs
	w := make([]tensor.LegWeights, len(legs))
	for mode, leg := range legs {
		w[mode] = sp.weights(leg, r[leg], d)
	}
	return w
}

// basePoly returns Π_c p_{B^(c)}, the count polynomial of B under u = R.
func (sp *space) basePoly(r [][]float64, d int) (countspace.Poly, error) {
	ps := make([]countspace.Poly, len(sp.cores))
	for c := range sp.cores {
		p, err := sp.corePoly(c, r, d)
		if err != nil {
			return countspace.Poly{}, err
		}
		ps[c] = p
	}
	return countspace.Product(d-1, ps, sp.ops), nil
}

// pairPoly returns Π_ℓ (Σ_y u_ℓ[y] w_ℓ[y] z^λ(y)).
func (sp *space) pairPoly(u, w [][]float64, d int) countspace.Poly {
	ps := make([]countspace.Poly, len(sp.order))
	for j, leg := range sp.order {
		ps[j] = countspace.Linear(sp.row(leg, u[leg], w[leg], d))
	}
	return countspace.Product(d-1, ps, sp.ops)
}

// normSq returns ‖B‖² = Π_c ‖B^(c)‖².
func (sp *space) normSq() (scaled.Number, error) {
	n := scaled.One
	for c, core := range sp.cores {
		x, err := tensor.NormSq(core.T)
		if err != nil {
			return n, fmt.Errorf("frobenius: core %d: %w", c, err)
		}
		n = n.Mul(x)
	}
	if !n.IsFinite() || n.Sign() < 0 {
		return n, fmt.Errorf("%w: ‖B‖²", ErrNotFinite)
	}
	return n, nil
}

// scale returns ‖B‖², and sets cancelled and mapped.
func (sp *space) scale(net *btn.Network) (scaled.Number, error) {
	norm2, err := sp.normSq()
	if err != nil || norm2.IsZero() {
		return norm2, err
	}
	ratio := scaled.One.Div(norm2)
	for c, core := range sp.cores {
		x, err := tensor.NormSq(contraction.Absolute(core.T))
		if err != nil {
			return norm2, fmt.Errorf("frobenius: core %d: %w", c, err)
		}
		ratio = ratio.Mul(x)
	}
	sp.cancelled = max(1, ratio.Sqrt().Float64())
	sp.mapped = btn.MapRounding(net) * sp.cancelled
	return norm2, nil
}

// NormSq returns ‖B‖², the product of the cores' own: their legs are disjoint. It returns an error
// for a network whose cores do not cover its legs, and if a core has no finite norm.
// Cost: tensor.NormSq of every core.
func NormSq(net *btn.Network) (scaled.Number, error) {
	sp, err := newSpace(net, countspace.TwoLevels(net.Dims))
	if err != nil {
		return scaled.Number{}, err
	}
	return sp.normSq()
}
