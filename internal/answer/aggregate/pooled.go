package aggregate

// Sampled components: one mean of all weights so far, and what it says of itself.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// pool is the weights of sampled components, of one estimate after the other.
type pool struct {
	rungs     int     // estimates so far
	delta     float64 // the probability with which some of the query's sampled bounds may fail
	ln        []float64
	marginals []*btn.Weights
	// the best of the bounds so far, −Inf and +Inf for none
	lower, upper side
	most         float64 // ln of a bound of all weights, and so of Z; +Inf for none
}

// unshown is the least standard error of a mean times the number N of its components. Equal weights do not exclude others:
// weights with a share of 3/N are absent among N with probability e⁻³ (the rule of three). Two standard errors state that
// share.
const unshown = 1.5

// pooled is the rule Z̃ = (1/N) Σ_i w_i over all components so far. Bounds of the estimates hold together with probability
// 1 − delta: the k-th has a share of 2^−k of that.
func (r *estimate) pooled(p *pool) error {
	if p.rungs++; p.rungs == 1 {
		p.lower.ln, p.upper.ln, p.most = math.Inf(-1), math.Inf(1), math.Inf(-1)
	}
	for i, v := range r.parts {
		switch {
		case v.Weights != nil && int64(len(v.Weights.Ln)) == r.of.Parts[i].About().Sample.Components:
			p.ln = append(p.ln, v.Weights.Ln...)
			if v.Weights.LnMost == nil {
				p.most = math.Inf(1)
			} else {
				p.most = max(p.most, *v.Weights.LnMost)
			}
			if v.Weights.Share != nil {
				p.marginals = append(p.marginals, v.Weights)
			}
		default:
			return fmt.Errorf("component %d does not say what was drawn", i)
		}
	}
	r.mean = sampling.Of(p.ln)
	sample := r.of.Parts[0].About().Sample
	r.mean.StandardError = max(r.mean.StandardError, unshown/float64(len(p.ln)), math.Sqrt(sample.Missed/float64(len(p.ln))))
	if math.IsInf(r.mean.Ln, -1) {
		return errors.New("all components weigh 0, and an estimate cannot show that Z is 0")
	}
	r.Truncated = true
	r.shares = p.marginals
	r.z = scaled.FromLog(r.mean.Ln)
	r.StandardError, r.EffectiveSamples, r.TailIndex = finite(r.mean.StandardError), finite(r.mean.Effective), finite(r.mean.Tail)
	r.LnLower = finite(p.bound(sample.Spread, p.delta*math.Exp2(-float64(p.rungs))))
	return nil
}

// bound improves the bounds by those of all weights so far, which hold together with probability 1−δ, and returns the one below. Where
// nothing bounds the weights Markov's inequality has all of δ, else half of it.
func (p *pool) bound(spread, delta float64) (lower float64) {
	certain := math.Inf(-1)
	if !math.IsInf(p.most, 1) {
		delta /= 2
		var above float64
		if certain, above = sampling.Bernstein(p.ln, p.most, delta); above < min(p.upper.ln, p.most) {
			p.upper = side{above, fmt.Sprintf("the mean of %d sampled components, by Bernstein's inequality", len(p.ln))}
		}
	}
	if p.most < p.upper.ln {
		p.upper = side{p.most, "the largest possible weight of a sampled component"}
	}
	lower = sampling.Lower(p.ln, sampling.Bundles(len(p.ln), spread, delta), delta)
	how := "means of %d sampled components in bundles, by Markov's inequality"
	if certain > lower {
		lower, how = certain, "the mean of %d sampled components, by Bernstein's inequality"
	}
	if lower > p.lower.ln {
		p.lower = side{lower, fmt.Sprintf(how, len(p.ln))}
	}
	return lower
}

// arrived returns what there is of a pooled estimate, or of bounds, when no more will come: components are independent, so that any of
// them are a mean, and bounds hold one by one. whole is false where some are missing.
func arrived(e *btn.Estimate, parts []part, whole bool) (*btn.Estimate, []part, bool) {
	some := *e
	some.Parts = nil
	var there []part
	for i := range parts {
		if parts[i].there {
			some.Parts, there = append(some.Parts, e.Parts[i]), append(there, parts[i])
		}
	}
	if len(there) == len(parts) || len(there) == 0 {
		return e, parts, whole
	}
	return &some, there, false
}

// Sampling returns how many queries have sampled components, whose bounds hold together.
func Sampling(assignments []btn.Assignment) int {
	n := 0
	for _, a := range assignments {
		if a.Plan != nil && slices.ContainsFunc(a.Plan.Estimates, func(e btn.Estimate) bool { return e.Rule == btn.Pooled }) {
			n++
		}
	}
	return n
}

// isPooled reports whether an estimate is a mean of sampled components.
func (r *estimate) isPooled() bool { return r.of.Rule == btn.Pooled }

// sampledMarginals are Σ w f / Σ w of every variable (or target) and value, and the largest of twice their standard errors
// √(Σ w² (f − p)²)/Σ w; nil where the components have none. Where few of them carry all the weight, these agree with themselves: it is at
// least one over the root of the effective number then.
func (r *estimate) sampledMarginals(targets []int) (p [][]float64, uncertainty *float64) {
	if len(r.shares) == 0 {
		return nil, nil
	}
	top := math.Inf(-1)
	for _, w := range r.shares {
		top = max(top, w.Top)
	}
	size := len(r.shares[0].Share)
	share, squares := make([]float64, size), make([]float64, size)
	for _, w := range r.shares {
		if len(w.Share) != size || len(w.Squares) != size {
			return nil, nil
		}
		scale := math.Exp(w.Top - top)
		for k := range share {
			share[k] += scale * w.Share[k]
			squares[k] += scale * scale * w.Squares[k]
		}
	}

	worst := 1 / max(r.mean.Effective, 1) // what was never drawn may be as likely as that
	if !r.believed() {
		worst = math.Sqrt(worst)
	}
	at := 0
	var all [][]float64
	for _, d := range r.shares[0].Domains {
		total, square := 0.0, 0.0
		for k := at; k < at+d; k++ {
			total += share[k]
			square += squares[k]
		}
		row := make([]float64, d)
		for a := range row {
			row[a] = min(1, max(0, share[at+a]/total)) // rounding of both signs
			variance := squares[at+a]*(1-2*row[a]) + row[a]*row[a]*square
			worst = max(worst, 2*math.Sqrt(max(0, variance))/total)
		}
		all = append(all, row)
		at += d
	}
	if targets != nil {
		for _, v := range targets {
			if v >= len(all) {
				return nil, nil
			}
			p = append(p, all[v])
		}
		all = p
	}
	return all, finite(min(1, worst))
}
