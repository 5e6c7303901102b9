package frobenius

// The scalar products of the learner for components given from outside: the reference for its
// sweeps.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/families/closed"
	exactparts "github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// objective evaluates ‖B − Σ_i α_i Q^(i)‖² for components under one set of levels and maps.
type objective struct {
	sp    *space
	norm2 scaled.Number
}

// newObjective prepares the objective of a network's base tensor. levels serve all symmetric parts;
// rotations are the learned orthogonal maps as in btn.Frame.Rotations (nil for none). It returns an
// error if levels do not fit the legs.
func newObjective(net *btn.Network, levels countspace.Levels, rotations [][]float64) (*objective, error) {
	sp, err := newSpace(net, levels)
	if err != nil {
		return nil, err
	}
	copy(sp.rot, rotations)
	norm2, err := sp.normSq()
	if err != nil {
		return nil, err
	}
	return &objective{sp: sp, norm2: norm2}, nil
}

// withBase returns b_i = ⟨B, Q⟩,
//
//	⟨B, S∘R⟩ = Σ_c S_c [z^c] Π_c p_{B^(c)}(z)   under u = R,
//
// summed over the terms of a CP part; ‖B‖² for B itself.
// Cost: O(n²) multiply-adds for n legs at two levels, O(n) for rank one, times the count polynomials
// of the cores.
func (o *objective) withBase(q btn.Part) (scaled.Number, error) {
	if isBase(q) {
		return o.norm2, nil
	}
	terms, err := o.sp.terms(q)
	if err != nil {
		return scaled.Number{}, err
	}
	return o.sp.baseProduct(terms)
}

// isBase reports whether a part is B itself.
func isBase(q btn.Part) bool {
	_, ok := q.(*exactparts.Elimination)
	return ok
}

// gram returns G_ij = ⟨Q, Q'⟩,
//
//	⟨S∘R, S'∘R'⟩ = Σ_c S_c S'_c [z^c] Π_ℓ (Σ_x v_ℓ[x] v'_ℓ[x] z^λ(x)).
//
// Two rank-one terms cost O(Σ d), others O(n²) multiply-adds at two levels.
func (o *objective) gram(q, p btn.Part) (scaled.Number, error) {
	if isBase(q) {
		return o.withBase(p)
	}
	if isBase(p) {
		return o.gram(p, q)
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

// system returns G and b of a dictionary. It stops between scalar products when ctx is done.
func (o *objective) system(
	ctx context.Context, dictionary []btn.Part,
) (g [][]scaled.Number, b []scaled.Number, err error) {
	g, b = square(len(dictionary)), make([]scaled.Number, len(dictionary))
	for i, q := range dictionary {
		if b[i], err = o.withBase(q); err != nil {
			return nil, nil, fmt.Errorf("component %d: %w", i, err)
		}
		for j := 0; j <= i; j++ {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			x, err := o.gram(q, dictionary[j])
			if err != nil {
				return nil, nil, fmt.Errorf("components %d and %d: %w", i, j, err)
			}
			g[i][j], g[j][i] = x, x
		}
	}
	return g, b, nil
}

// weights fits α over a fixed dictionary (see FitWeights).
func (o *objective) weights(ctx context.Context, dictionary []btn.Part, nonNegative bool) (Fit, error) {
	g, b, err := o.system(ctx, dictionary)
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

// terms validates a part and writes it as a sum of terms. An elimination has none: it is B itself.
func (sp *space) terms(q btn.Part) ([]term, error) {
	switch q := q.(type) {
	case *closed.RankOne:
		t, err := sp.term(nil, q.R)
		return []term{t}, err
	case *closed.SymmetryRankOne:
		if err := sp.checkPoly(q.S); err != nil {
			return nil, err
		}
		t, err := sp.term(&q.S, q.R)
		return []term{t}, err
	case *closed.CP:
		return sp.cpTerms(q.Tensor)
	}
	return nil, fmt.Errorf("frobenius: class %q has no scalar products in closed form", q.Class())
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
		return fmt.Errorf("frobenius: S has %d coefficients, its shape %v needs %d",
			s.Coef.Len(), s.Shape, size)
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
func (sp *space) cpTerms(c *tensor.CP) ([]term, error) {
	if c == nil || len(c.Vectors) != len(sp.dims) {
		return nil, fmt.Errorf("frobenius: a CP component needs vectors on all %d legs", len(sp.dims))
	}
	out := make([]term, len(c.Weights))
	for i, w := range c.Weights {
		r := make([][]float64, len(sp.dims))
		for leg, d := range sp.dims {
			v := c.Vectors[leg]
			switch {
			case v == nil && d == len(c.Weights):
				r[leg] = make([]float64, d)
				r[leg][i] = 1
			case len(v) == d*len(c.Weights):
				r[leg] = v[i*d : (i+1)*d]
			default:
				return nil, fmt.Errorf("frobenius: CP component has %d vector entries on leg "+
					"%d, rank %d and dimension %d",
					len(v), leg, len(c.Weights), d)
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
