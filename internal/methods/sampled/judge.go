package sampled

// What components that are drawn say of ln Z and of marginals: one mean of all weights so far.

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// absentShare is the smallest standard error of a mean times the number N of its components. Equal weights do not exclude others:
// weights with a share of 3/N are absent among N with probability e⁻³ (the rule of three). Two standard errors state that
// share.
const absentShare = 1.5

// sampleJudge judges estimates by sampled components, one after the other. Each estimate adds to the components of those before it.
type sampleJudge struct {
	judge.Defaults
	*judge.Sequence
	ln     []float64      // weights of all components so far, nats
	lnMost float64        // bound of ln of all weights, and so of ln Z; +Inf: there is none
	shares []*btn.Weights // of parts that have marginals
	means  []mean         // by estimate
	// The best of the bounds so far.
	lower, upper judge.Side
}

// mean is the mean of all components up to an estimate.
type mean struct {
	sampling.Mean
	estimate *judge.Estimate
	shares   []*btn.Weights // of parts that have marginals
}

// NewJudge returns the judge of sampled components.
func NewJudge(s *judge.Sequence) judge.Judge {
	return &sampleJudge{
		Sequence: s, lnMost: math.Inf(-1), lower: judge.Side{Ln: math.Inf(-1)}, upper: judge.Side{Ln: math.Inf(1)},
	}
}

// TakesAny implements judge.Judge: components are independent, so that any of them have a mean.
func (*sampleJudge) TakesAny() bool { return true }

// Add implements judge.Judge: Z̃ = (1/N) Σ_i w_i over all components so far. Bounds of the estimates hold together with probability
// 1 − Delta: the k-th has a share of 2^−k of that.
func (j *sampleJudge) Add(e *judge.Estimate) error {
	m := mean{estimate: e}
	j.means = append(j.means, m)
	for i, v := range e.Parts {
		if v.Weights == nil || int64(len(v.Weights.Ln)) != e.Plan.Parts[i].About().Sample.Components {
			return fmt.Errorf("component %d does not say what was drawn", i)
		}
		j.ln = append(j.ln, v.Weights.Ln...)
		if v.Weights.LnMost == nil {
			j.lnMost = math.Inf(1)
		} else {
			j.lnMost = max(j.lnMost, *v.Weights.LnMost)
		}
		if v.Weights.Share != nil {
			j.shares = append(j.shares, v.Weights)
		}
	}
	m.Mean, m.shares = sampling.Of(j.ln), j.shares
	sample, n := e.Plan.Parts[0].About().Sample, float64(len(j.ln))
	m.StandardError = max(m.StandardError, absentShare/n, math.Sqrt(sample.Missed/n))
	j.means[len(j.means)-1] = m
	if math.IsInf(m.Ln, -1) {
		return errors.New("all components weigh 0, and an estimate cannot show that Z is 0")
	}
	e.Truncated = true
	e.Z = scaled.FromLog(m.Ln)
	e.StandardError, e.EffectiveSamples, e.TailIndex = judge.Finite(m.StandardError), judge.Finite(m.Effective), judge.Finite(m.Tail)
	e.LnLower = judge.Finite(j.bound(sample.Spread, j.Delta*math.Exp2(-float64(len(j.means)))))
	j.Bounds.Sample(j.lower, j.upper)
	return nil
}

// bound adds the bounds of ln Z that all weights so far give to the best bounds of the judge, and returns the lower one of now. They hold
// with probability 1−δ. If the weights have a bound, Bernstein's inequality and Markov's each have half of δ; otherwise Markov's has all
// of it.
func (j *sampleJudge) bound(spread, delta float64) (lower float64) {
	certain, n := math.Inf(-1), len(j.ln)
	if !math.IsInf(j.lnMost, 1) {
		delta /= 2
		var above float64
		if certain, above = sampling.Bernstein(j.ln, j.lnMost, delta); above < min(j.upper.Ln, j.lnMost) {
			j.upper = judge.Side{Ln: above, By: fmt.Sprintf("the mean of %d sampled components, by Bernstein's inequality", n)}
		}
	}
	if j.lnMost < j.upper.Ln {
		j.upper = judge.Side{Ln: j.lnMost, By: "the largest possible weight of a sampled component"}
	}
	lower = sampling.Lower(j.ln, sampling.Bundles(n, spread, delta), delta)
	how := "means of %d sampled components in bundles, by Markov's inequality"
	if certain > lower {
		lower, how = certain, "the mean of %d sampled components, by Bernstein's inequality"
	}
	if lower > j.lower.Ln {
		j.lower = judge.Side{Ln: lower, By: fmt.Sprintf(how, n)}
	}
	return lower
}

// lastMean returns the mean of the last estimate that has a Z. ok is false if there is none.
func (j *sampleJudge) lastMean() (last mean, ok bool) {
	for _, m := range j.means {
		if m.estimate.LogZ != nil {
			last, ok = m, true
		}
	}
	return last, ok
}

// State implements judge.Judge: the mean of all components, uncertain by two standard errors and its shift under log-normal weights
// (sampling.Mean). If few components carry all the weight, the distance from the mean down to its lower bound is the least uncertainty,
// and up to the upper bound if few are above 0.
func (j *sampleJudge) State() judge.Statement {
	m, ok := j.lastMean()
	if !ok {
		return judge.Statement{}
	}
	isBelieved := m.isBelieved()
	statement := judge.Statement{Best: m.estimate, IsCredible: isBelieved, MaySettle: isBelieved, MissesWeight: !isBelieved}
	u := 2 * m.StandardError
	if m.Zeros == 0 || !isBelieved { // beside zeros the positive weights are skewed to small ones: the shift is too large
		u += max(m.Shift, 0)
	}
	if !isBelieved {
		lower := j.lower.Ln
		if math.IsInf(lower, -1) { // every bundle has a zero: by Markov's inequality for the mean of all
			lower = m.Ln + math.Log(judge.BoundsDelta)
		}
		u = max(u, m.Ln-lower)
		if m.Zeros > 0 && float64(m.N-m.Zeros) < policy.LeastEffective {
			_, above, _ := j.Bounds.Between() // the spread of so few does not show how far ln Z is above
			u = max(u, above.Ln-m.Ln)
		}
	}
	if !math.IsNaN(u) && !math.IsInf(u, 0) {
		statement.Uncertainty = judge.Finite(max(u, judge.Floor(m.Ln)))
	}
	return statement
}

// isBelieved reports whether the standard error can be trusted: the tail of the weights is thin, and the effective number of components
// is at least policy.LeastEffective. The second is needed if most components weigh 0 and all others the same: the tail is thin then and
// shows nothing.
func (m *mean) isBelieved() bool { return m.Settled() && m.Effective >= policy.LeastEffective }

// Marginals implements judge.Judge: Σ w f / Σ w for every value of every variable or target, over all components up to e. The uncertainty
// is that of rows. P is nil if the components have no marginals, or contradictory ones.
func (j *sampleJudge) Marginals(e *judge.Estimate) (out judge.Marginals) {
	var m mean
	for _, known := range j.means {
		if known.estimate == e {
			m = known
		}
	}
	if len(m.shares) == 0 {
		return out
	}
	share, squares, ok := m.sums()
	if !ok {
		return out
	}
	rows, worst := m.rows(share, squares)
	out.P = rows
	if j.Targets != nil {
		out.P = nil
		for _, v := range j.Targets {
			if v >= len(rows) {
				return judge.Marginals{}
			}
			out.P = append(out.P, rows[v])
		}
	}
	out.Uncertainty = judge.Finite(min(1, worst))
	return out
}

// sums returns Σ w f and Σ w² f² over all parts, with f the indicator of a value of a variable, for all values one after the other. The
// weights are over e^top, the largest of all. ok is false if parts differ in length.
func (m *mean) sums() (share, squares []float64, ok bool) {
	top := math.Inf(-1)
	for _, w := range m.shares {
		top = max(top, w.Top)
	}
	size := len(m.shares[0].Share)
	share, squares = make([]float64, size), make([]float64, size)
	for _, w := range m.shares {
		if len(w.Share) != size || len(w.Squares) != size {
			return nil, nil, false
		}
		scale := math.Exp(w.Top - top)
		for k := range share {
			share[k] += scale * w.Share[k]
			squares[k] += scale * scale * w.Squares[k]
		}
	}
	return share, squares, true
}

// rows returns the marginals p of each variable from the sums of sums, and their uncertainty: the largest of twice the standard errors
// √(Σ w² (f − p)²)/Σ w. It is at least one over the effective number of components, or over the root of it if few components carry all the
// weight, since these agree with themselves.
func (m *mean) rows(share, squares []float64) (rows [][]float64, worst float64) {
	worst = 1 / max(m.Effective, 1) // what was never drawn may be as likely as that
	if !m.isBelieved() {
		worst = math.Sqrt(worst)
	}
	offset := 0
	for _, d := range m.shares[0].Domains {
		total, square := 0.0, 0.0
		for k := offset; k < offset+d; k++ {
			total += share[k]
			square += squares[k]
		}
		row := make([]float64, d)
		for a := range row {
			row[a] = min(1, max(0, share[offset+a]/total)) // rounding of both signs
			variance := squares[offset+a]*(1-2*row[a]) + row[a]*row[a]*square
			worst = max(worst, 2*math.Sqrt(max(0, variance))/total)
		}
		rows = append(rows, row)
		offset += d
	}
	return rows, worst
}

// Warnings implements judge.Judge: few components carry the weight, and they are the answer or leave it open.
func (j *sampleJudge) Warnings(best *judge.Estimate, _ *float64) []string {
	m, ok := j.lastMean()
	isStart := best != nil && best.Plan.Rule == btn.LogLinear && best.Plan.Level < 0 // belief propagation alone
	if !ok || m.isBelieved() || best != m.estimate && !isStart {
		return nil
	}
	then := "ln Z may be above what they say by far"
	if isStart {
		then = "ln Z is the value of belief propagation, within what they leave open"
	}
	return []string{fmt.Sprintf("not settled: %s of %d sampled components carry the weight, and %s",
		strconv.FormatFloat(m.Effective, 'f', 1, 64), m.N, then)}
}
