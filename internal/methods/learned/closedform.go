package learned

// Exact decompositions in closed form: if the product of the ranks of all cores is small, nothing has to be learned.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ExactClosedForm returns the plan of ClosedForm as a plan of method exact.
func ExactClosedForm(ctx context.Context, n *btn.Network, maxTerms int) (plan *btn.Plan, ok bool, err error) {
	plan, ok, err = ClosedForm(ctx, n, maxTerms)
	if ok {
		plan.Method = query.MethodExact
	}
	return plan, ok, err
}

// ClosedForm returns an exact decomposition of the base tensor into at most maxTerms components. ok is false if it finds none. There are
// two forms:
//
//   - every core has low rank (parity, clauses, noisy-or, constants): one rank-one component per choice of a
//     term in every core; cores of rank one multiply into all of them and add none;
//   - one symmetric or symmetry-CP core of any rank, low rank for the others: symmetry-rank-one components
//     with the levels of that core on its legs and level 0 on all others.
//
// Exact means up to rounding: the errors of tensor.LowRank for all cores add up to btn.ClosedFormRounding at most. B = 0 and networks
// without legs are as in Learn, unless a core has very many terms. With more than one component ConditionGram is 0, which stands for not
// computed, since α is known and nothing is solved. Cost: tensor.LowRank of the cores until the count exceeds maxTerms. Errors: a network
// whose cores do not cover its legs, and the context's.
func ClosedForm(ctx context.Context, net *btn.Network, maxTerms int) (plan *btn.Plan, ok bool, err error) {
	if maxTerms < 1 {
		return nil, false, nil
	}

	// ‖B‖², now or, if it is expensive, once a form was found.
	var norm2 scaled.Number
	isExpensive := isNormExpensive(net)
	if !isExpensive {
		if norm2, err = NormSq(net); err != nil {
			return nil, false, err
		}
		if len(net.Dims) == 0 || norm2.IsZero() {
			return trivialForm(net, norm2)
		}
	}

	// The terms of every core, which are then multiplied out.
	factors, symmetric, residual, ok := factorise(ctx, net, maxTerms)
	if err := ctx.Err(); err != nil || !ok || residual > btn.ClosedFormRounding(net) {
		return nil, false, err
	}
	if isExpensive {
		if norm2, err = NormSq(net); err != nil || norm2.IsZero() {
			return nil, false, err
		}
	}

	frame := &btn.Frame{Closed: true}
	if symmetric >= 0 {
		frame.Levels = coreLevelsOnly(net, symmetric)
	}
	parts, alpha := expandProduct(net, factors, frame)
	plan = proposal.ExactPlan(query.Cost{}, parts...)
	estimate := &plan.Estimates[0]
	estimate.Alpha = alpha
	estimate.Quality.LnNormB = norm2.LogAbs() / 2
	if len(parts) > 1 {
		estimate.Quality.ConditionGram = 0 // not computed
	}
	return plan, true, nil
}

// trivialForm returns TrivialPlan as a plan of method exact.
func trivialForm(net *btn.Network, norm2 scaled.Number) (plan *btn.Plan, ok bool, err error) {
	plan, err = TrivialPlan(net, norm2)
	if err != nil {
		return nil, false, err
	}
	plan.Method = query.MethodExact
	return plan, true, nil
}

// isNormExpensive reports whether the norm of some CP core takes more than 10^7 flops: the square of its number of terms times the number
// of values of its legs.
func isNormExpensive(net *btn.Network) bool {
	const limit = 1e7 // flops
	for _, core := range net.Cores {
		if t, ok := core.T.(*tensor.CP); ok {
			values := 0.0
			for _, d := range t.Shape {
				values += float64(d)
			}
			if terms := float64(len(t.Weights)); terms*terms*values > limit {
				return true
			}
		}
	}
	return false
}

// zeroLevels returns, by leg and value, level 0 for every value.
func zeroLevels(dims []int) [][]uint8 {
	levels := make([][]uint8, len(dims))
	for leg, d := range dims {
		levels[leg] = make([]uint8, d)
	}
	return levels
}

// coreLevelsOnly returns levels for all legs: those of one symmetric core on its legs, and level 0 on the legs of all others.
func coreLevelsOnly(net *btn.Network, core int) countspace.Levels {
	coreLevels := counts.AsSymmetricTerms(net.Cores[core].T).Levels
	levels := countspace.Levels{D: coreLevels.D, Of: zeroLevels(net.Dims)}
	for mode, leg := range net.Cores[core].Legs {
		levels.Of[leg] = coreLevels.Of[mode]
	}
	return levels
}

// factor is one term of one core: weight · s ∘ ⊗ r.
type factor struct {
	weight float64
	r      [][]float64      // vectors by mode, the axis of the core; nil: all ones
	s      *countspace.Poly // of the core that stays symmetric; nil for all others
}

// factorise returns the terms of every core at low rank. If they make more than maxTerms components, the core for which that saves most
// stays symmetric; its number is symmetric, −1 for none. residual is the sum of the errors of all cores. ok is false if there would still
// be more than maxTerms components, or if more than one core cannot be written as few terms.
func factorise(
	ctx context.Context, net *btn.Network, maxTerms int,
) (factors [][]factor, symmetric int, residual float64, ok bool) {
	factors = make([][]factor, len(net.Cores))
	symmetric = -1
	product := 1.0 // the number of components that the cores so far make, where core symmetric stays symmetric
	saved := 1.0   // symmetricSaving of core symmetric
	for c, core := range net.Cores {
		if ctx.Err() != nil {
			return nil, -1, 0, false
		}
		form := counts.AsSymmetricTerms(core.T) // nil if the core has no such form
		cp, coreResidual, isLow := tensor.LowRank(core.T, maxTerms)
		residual += coreResidual
		if !isLow && form == nil {
			return nil, -1, 0, false
		}
		if isLow {
			factors[c] = cpFactors(cp)
		}

		saving := symmetricSaving(cp, isLow, form)
		switch {
		case math.IsInf(saving, 1) && math.IsInf(saved, 1):
			return nil, -1, 0, false // two cores that cannot be written as few terms
		case saving > saved: // this core stays symmetric, and the one so far has its terms of rank one again
			product *= saved * float64(len(form.Terms))
			saved, symmetric = saving, c
		default:
			product *= float64(len(factors[c]))
		}
		if product > float64(maxTerms) {
			return nil, -1, 0, false
		}
	}

	if product*saved <= float64(maxTerms) {
		return factors, -1, residual, true // components of rank one are contracted fastest
	}
	form := counts.AsSymmetricTerms(net.Cores[symmetric].T)
	factors[symmetric] = symmetricFactors(form)
	return factors, symmetric, residual, true
}

// symmetricSaving returns how many times fewer terms a core has if it stays symmetric: 1 if it has no symmetric form, and infinity if it is
// not low, which means that it cannot be written as few terms of rank one. cp has its terms of rank one, form the symmetric ones.
func symmetricSaving(cp *tensor.CP, isLow bool, form *tensor.SymmetryCP) float64 {
	switch {
	case !isLow:
		return math.Inf(1)
	case form != nil:
		return float64(len(cp.Weights)) / float64(len(form.Terms))
	}
	return 1
}

// symmetricFactors returns the terms of a core that stays symmetric, with their polynomials normalised.
func symmetricFactors(form *tensor.SymmetryCP) []factor {
	var out []factor
	for _, term := range form.Terms {
		s := countspace.Crop(countspace.Poly{Shape: form.Levels.Shape(), Coef: term.S}, form.Levels.Shape()) // normalises
		out = append(out, factor{weight: term.Alpha, r: term.R, s: &s})
	}
	return out
}

// cpFactors returns the terms of a core in CP form, which is a sum of products of one vector for each mode (leg). If a mode has no vectors,
// term i has the unit vector of value i there.
func cpFactors(cp *tensor.CP) []factor {
	out := make([]factor, len(cp.Weights))
	for i, w := range cp.Weights {
		r := make([][]float64, len(cp.Shape))
		for mode, d := range cp.Shape {
			if cp.Vectors[mode] == nil {
				r[mode] = make([]float64, d)
				r[mode][i] = 1
			} else {
				r[mode] = cp.Vectors[mode][i*d : (i+1)*d]
			}
		}
		out[i] = factor{weight: w, r: r}
	}
	return out
}

// expandProduct multiplies out the sums of all cores: it returns a component for each choice of a term in every core, and its weight α.
func expandProduct(net *btn.Network, factors [][]factor, frame *btn.Frame) (parts []btn.Part, alphas []scaled.Number) {
	choice := make([]int, len(factors)) // by core: the number of its term
	for {
		r, s, alpha := multiplyTerms(net, factors, choice)
		if s == nil {
			parts = append(parts, &closed.RankOne{Frame: frame, R: r})
		} else {
			parts = append(parts, &closed.SymmetryRankOne{Frame: frame, S: *s, R: r})
		}
		alphas = append(alphas, alpha)
		if hasMore := counts.NextChoice(choice, factors); !hasMore {
			return parts, alphas
		}
	}
}

// multiplyTerms returns the product of one term of every core: a vector for each leg (nil: all ones), S of the core that stays symmetric
// (nil if there is none), and the weight. Vectors are normalised by powers of two, which is exact.
func multiplyTerms(net *btn.Network, factors [][]factor, choice []int) (r [][]float64, s *countspace.Poly, alpha scaled.Number) {
	r, alpha = make([][]float64, len(net.Dims)), scaled.One
	for c, i := range choice {
		f := factors[c][i]
		alpha = alpha.Mul(scaled.FromFloat(f.weight))
		if f.s != nil {
			s = f.s
		}
		for mode, leg := range net.Cores[c].Legs {
			if f.r == nil || f.r[mode] == nil {
				continue
			}
			v, e, _ := linalg.BinaryNormalised(f.r[mode]) // finite: the cores were validated
			r[leg] = v
			alpha = alpha.Mul(scaled.Make(1, e))
		}
	}
	return r, s, alpha
}
