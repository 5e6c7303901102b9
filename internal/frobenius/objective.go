package frobenius

// The Frobenius objective of a dictionary of one's own: ‖B‖², b and G, and the weights they give.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Objective evaluates ‖B − Σ_i α_i Q^(i)‖² for components under one set of levels and maps.
type Objective struct {
	sp    *space
	norm2 scaled.Number
}

// NewObjective prepares the objective of a network's base tensor. levels serve all symmetric parts; rotations are the
// learned orthogonal maps as in btn.Decomposition.Rotations (nil for none).
// It returns an error if the cores do not cover the legs once each, or if levels or rotations do not fit them.
func NewObjective(net *btn.Network, levels countspace.Levels, rotations [][]float64) (*Objective, error) {
	sp, err := newSpace(net, levels, rotations)
	if err != nil {
		return nil, err
	}
	norm2, err := sp.normSq()
	if err != nil {
		return nil, err
	}
	return &Objective{sp: sp, norm2: norm2}, nil
}

// NormSq returns ‖B‖² = Π_c ‖B^(c)‖².
func (o *Objective) NormSq() scaled.Number { return o.norm2 }

// Flops returns the multiply-adds of coefficients spent so far.
func (o *Objective) Flops() int64 { return o.sp.ops.MulAdds }

// Base returns b_i = ⟨B, Q⟩,
//
//	⟨B, S∘R⟩ = Σ_c S_c [z^c] Π_c p_{B^(c)}(z)   under u = R,
//
// summed over the terms of a CP component; ‖B‖² for a component of class base.
// Cost: O(n²) multiply-adds for n legs at two levels, O(n) for rank one, times the count polynomials of the cores.
func (o *Objective) Base(q btn.Component) (scaled.Number, error) {
	if q.Class == btn.ClassBase {
		return o.base(q)
	}
	terms, err := o.sp.terms(q)
	if err != nil {
		return scaled.Number{}, err
	}
	return o.sp.baseProduct(terms)
}

// base is ⟨B, B⟩, after checking that the component is B without a mask.
func (o *Objective) base(q btn.Component) (scaled.Number, error) {
	if q.R != nil {
		return scaled.Number{}, fmt.Errorf("frobenius: a base component with a mask R has no scalar products in closed form")
	}
	return o.norm2, nil
}

// Gram returns G_ij = ⟨Q, Q'⟩,
//
//	⟨S∘R, S'∘R'⟩ = Σ_c S_c S'_c [z^c] Π_ℓ (Σ_x v_ℓ[x] v'_ℓ[x] z^λ(x)).
//
// Two rank-one terms cost O(Σ d), others O(n²) multiply-adds at two levels.
func (o *Objective) Gram(q, p btn.Component) (scaled.Number, error) {
	if q.Class == btn.ClassBase {
		if _, err := o.base(q); err != nil {
			return scaled.Number{}, err
		}
		return o.Base(p)
	}
	if p.Class == btn.ClassBase {
		return o.Gram(p, q)
	}
	left, err := o.sp.terms(q)
	if err != nil {
		return scaled.Number{}, err
	}
	right, err := o.sp.terms(p)
	if err != nil {
		return scaled.Number{}, err
	}
	return o.sp.termProduct(left, right), nil
}

// System returns G and b of a dictionary. It stops between scalar products when ctx is done.
func (o *Objective) System(ctx context.Context, dictionary []btn.Component) (g [][]scaled.Number, b []scaled.Number, err error) {
	g, b = square(len(dictionary)), make([]scaled.Number, len(dictionary))
	for i, q := range dictionary {
		if b[i], err = o.Base(q); err != nil {
			return nil, nil, fmt.Errorf("component %d: %w", i, err)
		}
		for j := 0; j <= i; j++ {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			x, err := o.Gram(q, dictionary[j])
			if err != nil {
				return nil, nil, fmt.Errorf("components %d and %d: %w", i, j, err)
			}
			g[i][j], g[j][i] = x, x
		}
	}
	return g, b, nil
}

// Weights fits α over a fixed dictionary (see FitWeights).
func (o *Objective) Weights(ctx context.Context, dictionary []btn.Component, nonNegative bool) (Fit, error) {
	g, b, err := o.System(ctx, dictionary)
	if err != nil {
		return Fit{}, err
	}
	return FitWeights(g, b, o.norm2, len(o.sp.dims), nonNegative)
}

func (sp *space) baseProduct(terms []term) (scaled.Number, error) {
	var sum scaled.Number
	for _, t := range terms {
		s, d := t.core(sp.levels)
		p, err := sp.basePoly(t.r, d)
		if err != nil {
			return sum, err
		}
		sum = sum.Add(t.weight.Mul(countspace.Dot(s, p, sp.ops)))
	}
	return sum, nil
}

func (sp *space) termProduct(left, right []term) scaled.Number {
	var sum scaled.Number
	for _, t := range left {
		for _, u := range right {
			s, d := t.joint(u, sp.levels)
			p := sp.pairPoly(t.r, u.r, d)
			sum = sum.Add(t.weight.Mul(u.weight).Mul(countspace.Dot(s, p, sp.ops)))
		}
	}
	return sum
}

func square(n int) [][]scaled.Number {
	g := make([][]scaled.Number, n)
	for i := range g {
		g[i] = make([]scaled.Number, n)
	}
	return g
}
