package plan

// B in count space, found by structure: symmetric cores of any size among cores of rank one. Nothing is
// learned, nothing has signs that the model has not, and nothing more expensive is looked at before it has
// been priced.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// countBytes is what a coefficient takes at the peak: a float64 and an int64, four times.
const countBytes = 64

// counted returns B in count space where some symmetric core is so large that elimination would begin with a
// long chain of counters, and every connected part of the network has such a form or a cheap elimination
// order. It returns nil where there is none, and an error (over budget, with the bytes) where there is one
// that does not fit.
//
// Its Plan has the flops and the bytes that the value takes. Cost: one pass over the cores.
func counted(ctx context.Context, net *btn.Network, memory int64) (*btn.Plan, error) {
	if !hasLongChain(net) {
		return nil, nil
	}
	for _, core := range net.Cores {
		if len(core.Legs) == 0 {
			return nil, nil // a number among the cores: only networks built directly have that
		}
	}

	long, rest := longParts(net)
	if len(long) == 1 && !hasLegs(net, rest) {
		return countForm(ctx, net, memory)
	}
	if len(rest) > 0 {
		long = append(long, rest)
	}
	product := &btn.Product{}
	cost := btn.Cost{}
	for _, links := range long {
		part, _ := net.Sub(links)
		form, err := partForm(ctx, part, memory)
		if err != nil || form == nil {
			return nil, err
		}
		own := &form.Estimates[0]
		product.Factors = append(product.Factors, btn.ProductFactor{Links: links, Estimate: own})
		cost.Flops += own.Cost.Flops
		cost.Bytes = max(cost.Bytes, own.Cost.Bytes)
	}

	return exactOf(cost, product), nil
}

// longParts lists the links of every connected part that has a long chain, and those of all other parts together.
func longParts(net *btn.Network) (long [][]int, rest []int) {
	chained := make([]bool, len(net.Dims))
	for _, core := range net.Cores {
		for _, leg := range core.Legs {
			chained[leg] = isLongChain(core)
		}
	}

	for _, links := range net.Connected() {
		found := false
		for _, k := range links {
			for _, leg := range net.Links[k].Legs {
				found = found || chained[leg]
			}
		}
		if found {
			long = append(long, links)
		} else {
			rest = append(rest, links...)
		}
	}

	slices.Sort(rest)
	return long, rest
}

func hasLegs(net *btn.Network, links []int) bool {
	return slices.ContainsFunc(links, func(k int) bool { return len(net.Links[k].Legs) > 0 })
}

// partForm is counted for one part of a network: in count space, or along an elimination order that is cheap.
// Parts are multiplied where nobody counts what cancels, so that a form of several terms must have one sign.
func partForm(ctx context.Context, part *btn.Network, memory int64) (*btn.Plan, error) {
	d, err := countForm(ctx, part, memory)
	if err != nil {
		return nil, err
	}
	if d != nil && (d.Len() == 1 || !signed(part)) {
		return d, nil
	}
	if hasLongChain(part) {
		return nil, nil
	}

	shape, err := lower.Shape(ctx, part)
	if err != nil {
		return nil, err
	}
	order, err := contractionorder.MinFill(ctx, shape)
	if err != nil {
		return nil, err
	}

	cost, err := contractionorder.EvaluateOrder(ctx, shape, order)
	if err != nil {
		return nil, err
	}
	if cost.Flops > policy.HeavyFlops || cost.Bytes > float64(memory) {
		return nil, nil // worth a search of its own
	}
	return eliminationPlan(order, cost), nil
}

// hasLongChain reports whether some core is symmetric and has a long chain of counters.
func hasLongChain(net *btn.Network) bool {
	return slices.ContainsFunc(net.Cores, isLongChain)
}

func isLongChain(core btn.Core) bool {
	form := symmetryTerms(core.T)
	return form != nil && counters(form)*float64(len(core.Legs)+1) >= policy.LongChain
}

// counters is the number of count vectors of a symmetric core.
func counters(form *tensor.SymmetryCP) float64 {
	n := 1.0
	for _, side := range form.Levels.Shape() {
		n *= float64(side)
	}
	return n
}

// signed reports whether a symmetric core has terms of both signs.
func signed(net *btn.Network) bool {
	negative := func(list []float64) bool {
		for _, x := range list {
			if x < 0 {
				return true
			}
		}
		return false
	}
	for _, core := range net.Cores {
		form := symmetryTerms(core.T)
		if form == nil {
			continue
		}
		for _, term := range form.Terms {
			if term.Alpha < 0 || negative(term.S.Mant) {
				return true
			}
			for _, r := range term.R {
				if negative(r) {
					return true
				}
			}
		}
	}

	return false
}

// countForm returns B = Σ α (⊗_c S_c) ∘ R over the symmetric cores c, every one with levels of its own, where
// all other cores are of rank one: one component per choice of a term in every core. With k symmetric cores
// that is a polynomial in all their counts, so that it is nil where more than one is symmetric and it costs
// more than countFlops.
func countForm(ctx context.Context, net *btn.Network, memory int64) (*btn.Plan, error) {
	terms, coefficients, levels := 1, 1.0, 1
	var kept []int
	factors := make([][]countTerm, len(net.Cores))
	for c, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		form := symmetryTerms(core.T)
		if form == nil {
			one, ok := strictRankOne(core.T)
			if !ok {
				return nil, nil
			}
			factors[c] = []countTerm{one}
			continue
		}

		kept = append(kept, c)
		if len(form.Terms) == 0 || len(form.Terms) > policy.MostCountTerms/terms || levels+form.Levels.D-1 > math.MaxUint8 {
			return nil, nil
		}
		terms *= len(form.Terms)
		levels += form.Levels.D - 1
		coefficients *= counters(form)
	}

	cost := btn.Cost{Bytes: countBytes * coefficients * float64(max(1, terms/4))}
	if cost.Bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget,
			"plan: the symmetric factors have %.3g count vectors together, which takes %.3g bytes in "+
				"count space, the budget is %d bytes",
			coefficients, cost.Bytes, memory)
	}

	frame := &btn.Frame{Closed: true, Levels: keptLevels(net, kept, levels)}
	cost.Flops = float64(terms) * contract.CountFlops(net, frame.Levels)
	if len(kept) > 1 && cost.Flops > policy.CountFlops {
		return nil, nil
	}

	for _, c := range kept {
		factors[c] = countTerms(symmetryTerms(net.Cores[c].T))
	}
	parts, alpha := expandCounts(net, factors, frame)
	plan := exactOf(cost, parts...)
	plan.Estimates[0].Alpha = alpha
	return plan, nil
}

// keptLevels gives every kept core levels of its own, one core after the other; legs of others stay at level 0.
func keptLevels(net *btn.Network, kept []int, levels int) countspace.Levels {
	out := countspace.Levels{D: levels, Of: zeroLevels(net.Dims)}
	offset := 0
	for _, c := range kept {
		own := symmetryTerms(net.Cores[c].T).Levels
		for mode, leg := range net.Cores[c].Legs {
			for x, level := range own.Of[mode] {
				if level > 0 {
					out.Of[leg][x] = level + uint8(offset)
				}
			}
		}
		offset += own.D - 1
	}
	return out
}

// countTerm is one term of one core: a weight, vectors by mode (nil: all ones), and S of a core that is symmetric.
type countTerm struct {
	weight scaled.Number
	r      [][]float64
	s      *countspace.Poly
}

// countTerms returns the terms of a symmetric core with their S.
func countTerms(form *tensor.SymmetryCP) []countTerm {
	out := make([]countTerm, len(form.Terms))
	for i, f := range symmetricFactors(form) {
		out[i] = countTerm{weight: scaled.FromFloat(f.weight), r: f.r, s: f.s}
	}
	return out
}

// expandCounts returns the product of all sums as components and weights, the last core's terms fastest.
func expandCounts(
	net *btn.Network, factors [][]countTerm, frame *btn.Frame,
) (parts []btn.Part, alphas []scaled.Number) {
	choice := make([]int, len(factors))
	for {
		r := make([][]float64, len(net.Dims))
		s := countspace.Constant(0, scaled.One)
		alpha := scaled.One
		for c, i := range choice {
			f := factors[c][i]
			alpha = alpha.Mul(f.weight)
			if f.s != nil {
				s = outer(s, *f.s)
			}
			for mode, leg := range net.Cores[c].Legs {
				if f.r != nil && f.r[mode] != nil {
					r[leg] = f.r[mode]
				}
			}
		}

		parts = append(parts, &btn.SymmetryRankOne{Frame: frame, S: s, R: r})
		alphas = append(alphas, alpha)
		if !nextChoice(choice, factors) {
			return parts, alphas
		}
	}
}

// outer returns a(y)·b(z), a polynomial in the variables of both.
func outer(a, b countspace.Poly) countspace.Poly {
	shape := append(append([]int{}, a.Shape...), b.Shape...)
	out := countspace.Poly{Shape: shape, Coef: scaled.NewVector(a.Size() * b.Size())}
	for i := range a.Size() {
		x := a.Coef.At(i)
		for k := range b.Size() {
			out.Coef.Set(i*b.Size()+k, x.Mul(b.Coef.At(k)))
		}
	}
	return out
}

// strictTolerance is the relative difference of an entry from the product of its vectors that is put down to rounding.
const strictTolerance = 1e-15

// strictRankOne writes a tensor as one term, exactly up to the rounding of every single entry: zeros are
// zeros, and entries far below the largest count like all others.
func strictRankOne(t tensor.Tensor) (countTerm, bool) {
	switch t := t.(type) {
	case *tensor.CP:
		return cpRankOne(t)
	case *tensor.Dense:
		return denseRankOne(t)
	}
	return countTerm{}, false
}

// cpRankOne is the one term of a CP tensor, false if it has others.
func cpRankOne(t *tensor.CP) (countTerm, bool) {
	if len(t.Weights) != 1 {
		return countTerm{}, false
	}
	out := countTerm{weight: scaled.FromFloat(t.Weights[0]), r: make([][]float64, len(t.Shape))}
	copy(out.r, t.Vectors) // one term over one value is all ones
	return out, true
}

// denseRankOne compares t[x] · p^(n−1) with Π_k t[p at x_k], p being the largest entry and its place.
func denseRankOne(t *tensor.Dense) (countTerm, bool) {
	pivot := 0
	for i, x := range t.Data {
		if math.Abs(x) > math.Abs(t.Data[pivot]) {
			pivot = i
		}
	}

	n := len(t.Shape)
	out := countTerm{weight: scaled.One, r: make([][]float64, n)}
	if n == 0 {
		out.weight = scaled.FromFloat(t.Data[0])
		return out, true
	}

	p := scaled.FromFloat(t.Data[pivot])
	if p.IsZero() {
		out.weight = p
		return out, true
	}

	for range n - 1 {
		out.weight = out.weight.Div(p)
	}
	stride := len(t.Data)
	for k, d := range t.Shape {
		stride /= d
		at := pivot - pivot/stride%d*stride
		out.r[k] = make([]float64, d)
		for x := range d {
			out.r[k][x] = t.Data[at+x*stride]
		}
	}

	for i, want := range t.Data {
		got, stride := out.weight, len(t.Data)
		for k, d := range t.Shape {
			stride /= d
			got = got.Mul(scaled.FromFloat(out.r[k][i/stride%d]))
		}
		w := scaled.FromFloat(want)
		if got.Sub(w).Abs().Cmp(w.Abs().Mul(scaled.FromFloat(strictTolerance*float64(n)))) > 0 {
			return countTerm{}, false
		}
	}

	return out, true
}
