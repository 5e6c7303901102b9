package learned

// Exact decompositions in closed form: when the cores' own ranks multiply to a small number, nothing has to be learned.

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

// ExactForm is ClosedForm as a plan of the exact way.
func ExactForm(ctx context.Context, n *btn.Network, maxTerms int) (*btn.Plan, bool, error) {
	plan, ok, err := ClosedForm(ctx, n, maxTerms)
	if ok {
		plan.Method = query.MethodExact
	}
	return plan, ok, err
}

// ClosedForm returns an exact decomposition of at most maxTerms components, or false if it finds none:
//
//   - every core has low rank (parity, clauses, noisy-or, constants): one rank-one component per choice of a
//     term in every core; cores of rank one multiply into all of them and add none;
//   - one symmetric or symmetry-CP core of any rank, low rank for the others: symmetry-rank-one components
//     with the levels of that core on its legs and level 0 on all others.
//
// Exact means up to rounding: what tensor.LowRank says that the cores are off by adds up to
// btn.ClosedFormRounding at most. B = 0 and networks without legs are as in Learn, unless a core has
// very many terms. ConditionGram is 0, for not computed, beyond one component: with α known exactly nothing is
// solved. Cost: tensor.LowRank of the cores until the count exceeds maxTerms. It returns an error for a network
// whose cores do not cover its legs, and the context's.
func ClosedForm(ctx context.Context, net *btn.Network, maxTerms int) (*btn.Plan, bool, error) {
	if maxTerms < 1 {
		return nil, false, nil
	}
	var norm2 scaled.Number
	expensive := manyTerms(net)
	if !expensive {
		var err error
		if norm2, err = NormSq(net); err != nil {
			return nil, false, err
		}
		if len(net.Dims) == 0 || norm2.IsZero() {
			plan, err := Trivial(net, norm2)
			if err != nil {
				return nil, false, err
			}
			plan.Method = query.MethodExact
			return plan, true, nil
		}
	}

	factors, symmetric, off, ok := factorise(ctx, net, maxTerms)
	if err := ctx.Err(); err != nil || !ok || off > btn.ClosedFormRounding(net) {
		return nil, false, err
	}
	if expensive {
		var err error
		if norm2, err = NormSq(net); err != nil || norm2.IsZero() {
			return nil, false, err
		}
	}
	frame := &btn.Frame{Closed: true}
	if symmetric >= 0 {
		frame.Levels = spread(net, symmetric)
	}
	parts, alpha := expand(net, factors, frame)
	plan := proposal.Exact(query.Cost{}, parts...)
	e := &plan.Estimates[0]
	e.Alpha = alpha
	e.Quality.LnNormB = norm2.LogAbs() / 2
	if len(parts) > 1 {
		e.Quality.ConditionGram = 0
	}
	return plan, true, nil
}

// manyTerms reports whether the norm of some core is expensive: a CP core takes the square of its terms times its values.
func manyTerms(net *btn.Network) bool {
	const most = 1e7 // flops
	for _, core := range net.Cores {
		if t, ok := core.T.(*tensor.CP); ok {
			values := 0.0
			for _, d := range t.Shape {
				values += float64(d)
			}
			if n := float64(len(t.Weights)); n*n*values > most {
				return true
			}
		}
	}
	return false
}

// zeroLevels puts every value of every leg at level 0.
func zeroLevels(dims []int) [][]uint8 {
	of := make([][]uint8, len(dims))
	for leg, d := range dims {
		of[leg] = make([]uint8, d)
	}
	return of
}

// spread returns the levels of one core, level 0 on the legs of all others.
func spread(net *btn.Network, core int) countspace.Levels {
	own := counts.Terms(net.Cores[core].T).Levels
	levels := countspace.Levels{D: own.D, Of: zeroLevels(net.Dims)}
	for mode, leg := range net.Cores[core].Legs {
		levels.Of[leg] = own.Of[mode]
	}
	return levels
}

// factor is one term of one core: weight, vectors by mode (nil: all ones), and S for the core that stays symmetric.
type factor struct {
	weight float64
	r      [][]float64
	s      *countspace.Poly
}

// factorise writes every core as few terms. If that takes a core that stays symmetric, it is the one that
// saves most. off is what they are off by together.
func factorise(
	ctx context.Context, net *btn.Network, maxTerms int,
) (factors [][]factor, symmetric int, off float64, ok bool) {
	factors = make([][]factor, len(net.Cores))
	symmetric = -1
	saved, product := 1.0, 1.0
	for c, core := range net.Cores {
		if ctx.Err() != nil {
			return nil, -1, 0, false
		}
		form := counts.Terms(core.T)
		cp, apart, low := tensor.LowRank(core.T, maxTerms)
		off += apart
		if !low && form == nil {
			return nil, -1, 0, false
		}

		ratio := 1.0
		switch {
		case !low:
			ratio = math.Inf(1)
		case form != nil:
			ratio = float64(len(cp.Weights)) / float64(len(form.Terms))
		}

		if low {
			factors[c] = cpFactors(cp)
		}
		if ratio > saved {
			if math.IsInf(saved, 1) {
				return nil, -1, 0, false // two cores that cannot be written as few terms
			}
			product *= saved * float64(len(form.Terms))
			saved, symmetric = ratio, c
		} else {
			if math.IsInf(ratio, 1) {
				return nil, -1, 0, false
			}
			product *= float64(len(factors[c]))
		}

		if product > float64(maxTerms) {
			return nil, -1, 0, false
		}
	}

	if product*saved <= float64(maxTerms) {
		return factors, -1, off, true // rank one throughout contracts fastest
	}
	form := counts.Terms(net.Cores[symmetric].T)
	factors[symmetric] = symmetricFactors(form)
	return factors, symmetric, off, true
}

// symmetricFactors returns the terms of a symmetric core, which stays symmetric.
func symmetricFactors(form *tensor.SymmetryCP) []factor {
	var out []factor
	for _, term := range form.Terms {
		s := countspace.Crop(countspace.Poly{Shape: form.Levels.Shape(), Coef: term.S}, form.Levels.Shape()) // normalised
		out = append(out, factor{weight: term.Alpha, r: term.R, s: &s})
	}
	return out
}

// cpFactors returns the terms of a core in CP form. A mode with the identity for vectors has unit vectors.
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

// expand returns the product of all sums as components and weights. Vectors are normalised by powers of two, exactly.
func expand(net *btn.Network, factors [][]factor, frame *btn.Frame) (parts []btn.Part, alphas []scaled.Number) {
	choice := make([]int, len(factors))
	for {
		r := make([][]float64, len(net.Dims))
		var s *countspace.Poly
		alpha := scaled.One
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

		if s == nil {
			parts = append(parts, &closed.RankOne{Frame: frame, R: r})
		} else {
			parts = append(parts, &closed.SymmetryRankOne{Frame: frame, S: *s, R: r})
		}

		alphas = append(alphas, alpha)
		if !counts.NextChoice(choice, factors) {
			return parts, alphas
		}
	}
}
