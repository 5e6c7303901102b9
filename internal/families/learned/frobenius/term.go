package frobenius

// One form for all classes: a component as a sum of weight · S ∘ R, where S may be 1.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// term is weight · S ∘ ⊗ r_ℓ. Without S it is rank one. Rows have largest entry in [1, 2) unless
// they are 0.
type term struct {
	weight scaled.Number
	s      *countspace.Poly
	r      [][]float64
}

// depth is the number of levels that must be counted to meet t.
func (t term) depth(levels countspace.Levels) int {
	if t.s == nil {
		return 1
	}
	return levels.D
}

// joint returns the core of a pair of terms, S∘S', and the number of levels it needs.
func (t term) joint(u term, levels countspace.Levels) (countspace.Poly, int) {
	switch {
	case t.s == nil && u.s == nil:
		return countspace.Constant(0, scaled.One), 1
	case t.s == nil:
		return *u.s, levels.D
	case u.s == nil:
		return *t.s, levels.D
	}
	return countspace.Hadamard(*t.s, *u.s), levels.D
}

// core returns S and the number of levels it needs.
func (t term) core(levels countspace.Levels) (countspace.Poly, int) {
	if t.s == nil {
		return countspace.Constant(0, scaled.One), 1
	}
	return *t.s, levels.D
}

// ones is the vector of d ones.
func ones(d int) []float64 { return slices.Repeat([]float64{1}, d) }
