// Package closed contracts the closed forms of the paper: components of rank one and in CP form (Lemma 2), symmetric ones (Lemma 3)
// and those times a tensor of rank one (Lemma 4).
package closed

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Parts of the paper's classes: of rank one, in CP form, symmetric, symmetry-rank-one.

// RankOne is Q = ⊗_ℓ v_ℓ (Lemma 2).
type RankOne struct {
	Frame *btn.Frame
	R     [][]float64 // R[ℓ] has Dims[ℓ] entries; nil means all ones
}

// Class implements btn.Part.
func (*RankOne) Class() btn.Class { return btn.ClassRankOne }

// About implements btn.Part.
func (p *RankOne) About() btn.About { return btn.About{Shared: &p.Frame} }

// Fits implements btn.Part: it returns an error unless the frame is valid for the network and the vectors have the dimensions of its legs.
func (p *RankOne) Fits(n *btn.Network) error {
	if err := p.Frame.Fits(n); err != nil {
		return err
	}
	return checkVectors(p.R, n)
}

// checkVectors returns an error unless r has a vector of the right length for each leg of the network. A nil vector, or a nil list, is all
// ones.
func checkVectors(r [][]float64, n *btn.Network) error {
	if len(r) != 0 && len(r) != len(n.Dims) {
		return btn.Misfit("vectors for %d legs, the network has %d", len(r), len(n.Dims))
	}
	for l, v := range r {
		if v != nil && len(v) != n.Dims[l] {
			return btn.Misfit("vector of leg %d has %d entries, the leg has dimension %d",
				l, len(v), n.Dims[l])
		}
	}
	return nil
}

// CP is a sum of rank-one terms, contracted together (Lemma 2).
type CP struct {
	Frame  *btn.Frame
	Tensor *tensor.CP // over all legs that the frame has numbers on, in leg order
}

// Class implements btn.Part.
func (*CP) Class() btn.Class { return btn.ClassCP }

// About implements btn.Part.
func (p *CP) About() btn.About { return btn.About{Shared: &p.Frame} }

// Fits implements btn.Part: it returns an error unless the frame is valid for the network, and the CP tensor has the legs of the network
// with their dimensions. For each leg the tensor has to have a vector of every term, or none at all, which stands for the identity.
func (p *CP) Fits(n *btn.Network) error {
	if err := p.Frame.Fits(n); err != nil {
		return err
	}
	isOverAllLegs := p.Tensor != nil && len(p.Tensor.Shape) == len(n.Dims) && len(p.Tensor.Vectors) == len(n.Dims)
	if !isOverAllLegs {
		return btn.Misfit("a CP tensor over all %d legs is needed", len(n.Dims))
	}

	rank := len(p.Tensor.Weights)
	for l, d := range n.Dims {
		switch v := p.Tensor.Vectors[l]; {
		case p.Tensor.Shape[l] != d:
			return btn.Misfit("the CP tensor has dimension %d on leg %d, the leg has %d",
				p.Tensor.Shape[l], l, d)
		case v == nil && rank != d:
			return btn.Misfit("identity vectors on leg %d need rank %d, the rank is %d", l, d, rank)
		case v != nil && len(v) != d*rank:
			return btn.Misfit("vectors of leg %d have %d entries, %d terms of dimension %d are needed",
				l, len(v), rank, d)
		}
	}
	return nil
}

// SymmetryRankOne is Q = S ∘ R (Lemma 4), or Q = S without R (Lemma 3).
type SymmetryRankOne struct {
	Frame *btn.Frame
	S     countspace.Poly // over the frame's levels
	R     [][]float64     // as of RankOne; nil: class symmetric, R = 1
}

// Class implements btn.Part. A component without R is of class symmetric.
func (p *SymmetryRankOne) Class() btn.Class {
	if p.R == nil {
		return btn.ClassSymmetric
	}
	return btn.ClassSymmetryRankOne
}

// About implements btn.Part.
func (p *SymmetryRankOne) About() btn.About { return btn.About{KeepsRange: true, Shared: &p.Frame} }

// Fits implements btn.Part: it returns an error unless the frame, its levels and the vectors are valid for the network, and S is finite and
// has a coefficient for each combination of counts of the levels. A level is a class of the values of a leg; legs at level 0 are not
// counted.
func (p *SymmetryRankOne) Fits(n *btn.Network) error {
	if err := p.Frame.Fits(n); err != nil {
		return err
	}
	if err := checkVectors(p.R, n); err != nil {
		return err
	}

	levels := p.Frame.Levels
	if err := levels.Validate(n.Dims); err != nil {
		return btn.Misfit("%w", err)
	}

	// S has a coefficient for each combination of counts.
	shape := levels.Shape()
	if len(p.S.Shape) != len(shape) {
		return btn.Misfit("S has %d count variables, the levels have %d", len(p.S.Shape), len(shape))
	}

	entries, err := levels.Size()
	if err != nil {
		return btn.Misfit("%w", err)
	}

	for a, side := range shape {
		if p.S.Shape[a] != side {
			return btn.Misfit("S has %d counts at level %d, the levels have %d",
				p.S.Shape[a], a+1, side)
		}
	}
	if p.S.Coef.Len() != entries || (p.S.Coef.Exp != nil && len(p.S.Coef.Exp) != entries) {
		return btn.Misfit("S has %d coefficients, its shape %v needs %d",
			p.S.Coef.Len(), shape, entries)
	}
	if !p.S.Coef.IsFinite() {
		return btn.Misfit("S has an entry that is not finite")
	}
	return nil
}

// Tensors implements btn.Tensorial.
func (p *RankOne) Tensors() btn.Tensors { return btn.Tensors{R: p.R} }

// SetTensors implements btn.Tensorial.
func (p *RankOne) SetTensors(t btn.Tensors) { p.R = t.R }

// Tensors implements btn.Tensorial.
func (p *CP) Tensors() btn.Tensors { return btn.Tensors{CP: p.Tensor} }

// SetTensors implements btn.Tensorial.
func (p *CP) SetTensors(t btn.Tensors) { p.Tensor = t.CP }

// Tensors implements btn.Tensorial.
func (p *SymmetryRankOne) Tensors() btn.Tensors { return btn.Tensors{S: &p.S, R: p.R} }

// SetTensors implements btn.Tensorial: it replaces S, if there is one, and R.
func (p *SymmetryRankOne) SetTensors(t btn.Tensors) {
	if t.S != nil {
		p.S = *t.S
	}
	p.R = t.R
}
