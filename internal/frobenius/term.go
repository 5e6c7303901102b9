package frobenius

// One form for all classes: a component as a sum of weight · S ∘ R, where S may be 1.

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/linalg"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// term is weight · S ∘ ⊗ r_ℓ. Without S it is rank one. Rows have largest entry in [1, 2) unless they are 0.
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

// terms validates a component and writes it as a sum of terms. A base component has none: it is B itself.
func (sp *space) terms(c btn.Component) ([]term, error) {
	switch c.Class {
	case btn.ClassRankOne:
		t, err := sp.term(nil, c.R)
		return []term{t}, err
	case btn.ClassSymmetric, btn.ClassSymmetryRankOne:
		if err := sp.checkPoly(c.S); err != nil {
			return nil, err
		}
		r := c.R
		if c.Class == btn.ClassSymmetric {
			r = nil
		}
		t, err := sp.term(&c.S, r)
		return []term{t}, err
	case btn.ClassCP:
		return sp.cpTerms(c)
	}
	return nil, fmt.Errorf("frobenius: class %q has no scalar products in closed form", c.Class)
}

func (sp *space) checkPoly(s countspace.Poly) error {
	if len(s.Shape) != len(sp.shape) {
		return fmt.Errorf("frobenius: S has %d variables, the levels have %d", len(s.Shape), len(sp.shape))
	}
	size := 1
	for a, side := range s.Shape {
		if side != sp.shape[a] {
			return fmt.Errorf("frobenius: S has shape %v, the levels need %v", s.Shape, sp.shape)
		}
		size *= side
	}
	if s.Coef.Len() != size || s.Coef.Exp != nil && len(s.Coef.Exp) != size {
		return fmt.Errorf("frobenius: S has %d coefficients, its shape %v needs %d", s.Coef.Len(), s.Shape, size)
	}
	for i := range s.Coef.Mant {
		if !s.Coef.At(i).IsFinite() {
			return fmt.Errorf("%w: coefficient %d of S", ErrNotFinite, i)
		}
	}
	return nil
}

// term normalises the rows of R by powers of two, exactly; a nil row is all ones.
func (sp *space) term(s *countspace.Poly, r [][]float64) (term, error) {
	t := term{weight: scaled.One, s: s, r: make([][]float64, len(sp.dims))}
	if r != nil && len(r) != len(sp.dims) {
		return t, fmt.Errorf("frobenius: R has vectors for %d legs, the network has %d", len(r), len(sp.dims))
	}
	for leg, d := range sp.dims {
		if r == nil || r[leg] == nil {
			t.r[leg] = ones(d)
			continue
		}
		if len(r[leg]) != d {
			return t, fmt.Errorf("frobenius: R has %d entries on leg %d of dimension %d", len(r[leg]), leg, d)
		}
		v, e, ok := linalg.BinaryNormalised(r[leg])
		if !ok {
			return t, fmt.Errorf("%w: R on leg %d", ErrNotFinite, leg)
		}
		t.r[leg] = v
		t.weight = t.weight.Mul(scaled.Make(1, e))
	}
	return t, nil
}

// cpTerms writes a CP component as its rank-one terms.
func (sp *space) cpTerms(c btn.Component) ([]term, error) {
	if c.CP == nil || len(c.CP.Vectors) != len(sp.dims) {
		return nil, fmt.Errorf("frobenius: a CP component needs vectors on all %d legs", len(sp.dims))
	}
	out := make([]term, len(c.CP.Weights))
	for i, w := range c.CP.Weights {
		r := make([][]float64, len(sp.dims))
		for leg, d := range sp.dims {
			v := c.CP.Vectors[leg]
			switch {
			case v == nil && d == len(c.CP.Weights):
				r[leg] = make([]float64, d)
				r[leg][i] = 1
			case len(v) == d*len(c.CP.Weights):
				r[leg] = v[i*d : (i+1)*d]
			default:
				return nil, fmt.Errorf("frobenius: CP component has %d vector entries on leg %d, rank %d and dimension %d", len(v), leg, len(c.CP.Weights), d)
			}
		}
		t, err := sp.term(nil, r)
		if err != nil {
			return nil, err
		}
		t.weight = t.weight.Mul(scaled.FromFloat(w))
		if !t.weight.IsFinite() {
			return nil, fmt.Errorf("%w: weight of CP term %d", ErrNotFinite, i)
		}
		out[i] = t
	}
	return out, nil
}

func ones(d int) []float64 {
	v := make([]float64, d)
	for x := range v {
		v[x] = 1
	}
	return v
}
