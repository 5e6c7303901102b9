package closed

// Lemma 2: a base tensor of rank one, or in CP form, contracts link by link.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// oneLevel is the count space of tensors that count nothing.
var oneLevel = countspace.Levels{D: 1}

// form is one contraction of a part of a closed form.
type form struct {
	contraction.Contraction
	fullNetwork   *btn.Network // with all legs, if Net has only the first ones
	isClosedForm  bool         // B itself, not a learned component
	rotations     [][]float64  // of the frame, by leg
	levels        countspace.Levels
	symmetricPoly countspace.Poly // S over the levels; empty for parts without S
	vectors       [][]float64     // R, by leg; nil: all ones
	cp            *tensor.CP      // of a part in CP form, which has no R
}

// formOf returns a contraction of a part, which is a *RankOne, a *CP or a *SymmetryRankOne. Each has a frame, the maps and levels that the
// components of a closed form or a learned decomposition share; Fits has checked that it is not nil. S is the symmetric factor of a part S
// ∘ R, as a polynomial: of the value of a leg, S only reads the level. The other two kinds of parts have no S and count nothing, so that
// one level is enough.
func formOf(j contraction.Contraction, part btn.Part) form {
	f := form{Contraction: j, fullNetwork: j.Net, levels: oneLevel}

	var frame *btn.Frame
	switch part := part.(type) {
	case *RankOne:
		frame = part.Frame
		f.vectors = part.R
	case *CP:
		frame = part.Frame
		f.cp = part.Tensor
	case *SymmetryRankOne:
		frame = part.Frame
		f.vectors = part.R
		f.symmetricPoly = part.S
		f.levels = part.Frame.Levels
	}

	f.isClosedForm = frame.Closed
	f.rotations = frame.Rotations
	return f
}

// Contract implements contraction.Contractor: it multiplies the values of the links (Lemma 2 with one term).
func (p *RankOne) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, problem, want)
	if err != nil {
		return btn.Value{}, err
	}
	return formOf(j, p).contract(func(f form) (scaled.Number, error) { return f.contractRankOne(f.vectors, scaled.One) })
}

// Contract implements contraction.Contractor: it sums the components of all terms (Lemma 2). There is no joint marginal of a part in CP
// form.
func (p *CP) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, problem, want)
	if err == nil {
		err = contraction.RefuseJoint(want)
	}
	if err != nil {
		return btn.Value{}, err
	}
	return formOf(j, p).contract(form.contractTerms)
}

// Contract implements contraction.Contractor: it multiplies the count polynomials of the links and contracts the product with S (Lemmas 3
// and 4).
func (p *SymmetryRankOne) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, problem, want)
	if err != nil {
		return btn.Value{}, err
	}
	return formOf(j, p).contract(form.contractSymmetric)
}

// contract returns the value of a part: Z, and the marginals and the joint marginal if they are wanted. run contracts a form, returns its Z
// and adds its marginals to the form's Marginals. If numbers are negative, judgeCancellation calls run once more, with the form without
// signs, and states in the value what cancels. A multiply-add is two flops.
func (j form) contract(run func(form) (scaled.Number, error)) (btn.Value, error) {
	z, err := run(j)
	if err != nil {
		return btn.Value{}, err
	}

	value := btn.Value{Z: z.Mul(j.Net.Scale), Flops: 2 * float64(j.Ops.MulAdds)}
	if j.Marginals != nil {
		if err := j.Marginals.CheckFinite(); err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.Marginals.Result(j.Net.Scale)
	}

	if err := j.judgeCancellation(&value, run); err != nil || j.Joint == nil {
		return value, err
	}
	if err := j.addJoint(&value); err != nil {
		return btn.Value{}, err
	}
	return value, nil
}

// addJoint adds the joint marginal and its flops to a value. It returns an error if a cell is not finite.
func (j form) addJoint(value *btn.Value) error {
	mulAddsBefore := j.Ops.MulAdds
	cells, err := j.jointCounts()
	if err != nil {
		return err
	}
	value.Flops += 2 * float64(j.Ops.MulAdds-mulAddsBefore)

	for x := range cells {
		cells[x] = cells[x].Mul(j.Net.Scale)
		if !cells[x].IsFinite() {
			return fmt.Errorf("%w: cell %d of the joint marginal", tensor.ErrNotFinite, x)
		}
	}
	value.Joint = j.JointOf(cells)
	return nil
}

// contractRankOne returns Π_j ⟨L^(j), ⊗_ℓ O_ℓ v_ℓ⟩ over the links j for the vectors v = r by leg, with the maps O of the frame (Lemma 2
// with one term). If marginals are wanted, it adds them times weight. If not, it returns 0 at the first link whose factor is 0.
func (j form) contractRankOne(r [][]float64, weight scaled.Number) (scaled.Number, error) {
	weights := j.legWeights(r, oneLevel)

	z := scaled.One
	factors := make([]scaled.Number, len(j.Net.Links)) // by link
	for k, link := range j.Net.Links {
		if err := j.Ctx.Err(); err != nil {
			return scaled.Number{}, err
		}
		p, err := tensor.CountPoly(link.T, pickWeights(link.Legs, weights), 1, j.Ops) // one level: nothing counts
		if err != nil {
			return scaled.Number{}, fmt.Errorf("link %d: %w", k, err)
		}

		factors[k] = p.At(nil) // p is a number
		z = z.Mul(factors[k])
		if z.IsZero() && j.Marginals == nil { // marginals need the factors of all links
			break
		}
	}

	if j.Marginals == nil {
		return z, nil
	}
	return z, j.rankOneMarginals(factors, weight, weights)
}

// rankOneMarginals adds the marginals of a rank-one term times weight: those of each link times the product of the factors of all other
// links. Any factor may be 0, so the products of those before and after a link are formed without a division. weights are those of the
// legs.
func (j form) rankOneMarginals(
	factors []scaled.Number, weight scaled.Number, weights []tensor.LegWeights,
) error {
	// productWithout[k] = weight · Π_{i≠k} factors[i]: first the factors before k, then those after it.
	productWithout := make([]scaled.Number, len(factors))
	product := weight
	for k, x := range factors {
		productWithout[k] = product
		product = product.Mul(x)
	}
	product = scaled.One
	for k := len(factors) - 1; k >= 0; k-- {
		productWithout[k] = productWithout[k].Mul(product)
		product = product.Mul(factors[k])
	}

	j.Ops.Add(3 * len(factors)) // 3 products for each link, above
	one := countspace.Constant(0, scaled.One)
	for k := range factors {
		if err := j.Ctx.Err(); err != nil {
			return err
		}
		if err := j.addMarginals(k, one, productWithout[k], weights); err != nil {
			return err
		}
	}
	return nil
}

// contractTerms returns Σ_t w_t Π_j ⟨L^(j), ⊗_ℓ O_ℓ v_ℓt⟩ over the terms t of a part in CP form (Lemma 2), summed with one rounding. It
// adds the marginals of all terms if they are wanted.
func (j form) contractTerms() (scaled.Number, error) {
	t := j.cp

	terms := make([]scaled.Number, 0, len(t.Weights))
	for i, w := range t.Weights {
		if w == 0 {
			continue
		}
		z, err := j.contractRankOne(termVectors(t, i), scaled.FromFloat(w))
		if err != nil {
			return scaled.Number{}, fmt.Errorf("term %d: %w", i, err)
		}
		terms = append(terms, z.Mul(scaled.FromFloat(w)))
	}
	return scaled.Sum(terms), nil
}

// termVectors returns the vectors of term i of a CP tensor, by leg. If a leg has no vectors, term i has the unit vector of value i there.
func termVectors(t *tensor.CP, i int) [][]float64 {
	r := make([][]float64, len(t.Shape))
	for l, d := range t.Shape {
		if v := t.Vectors[l]; v != nil {
			r[l] = v[i*d : (i+1)*d]
			continue
		}
		r[l] = make([]float64, d)
		r[l][i] = 1
	}
	return r
}

// addMarginals adds the marginals of the variable of link k, times weight. h is the derivative of Z by the link's count polynomial. Value x
// of the variable is term x of the link, so
//
//	M_v(x) = weight · w_v(x) · Σ_c h_c [z^c] Π_ℓ (Σ_y A_ℓ[x, y] Σ_a W_ℓ[y, a] z^a)
//
// over the legs ℓ, where A_ℓ are the link's vectors and W_ℓ the leg weights. It does nothing if the link is that of no variable.
func (j form) addMarginals(
	k int, h countspace.Poly, weight scaled.Number, weights []tensor.LegWeights,
) error {
	v := j.Marginals.Variable[k]
	if v < 0 || weight.IsZero() || h.IsZero() {
		return nil
	}

	cp := j.Net.Links[k].T.(*tensor.CP)
	levels := h.Vars() + 1 // level 0 and one for each variable of h
	terms := newTerms(cp, pickWeights(j.Net.Links[k].Legs, weights), levels, j.Ops)
	for x, w := range cp.Weights {
		if w == 0 {
			continue
		}
		sum := &j.Marginals.At[j.Marginals.Offset[v]+x]
		*sum = sum.Add(weight.Mul(scaled.FromFloat(w)).Mul(countspace.Dot(h, terms.termPoly(x), j.Ops)))
	}
	return nil
}
