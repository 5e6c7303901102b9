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

// unshown is the least standard error of a mean times the number N of its components. Equal weights do not exclude others:
// weights with a share of 3/N are absent among N with probability e⁻³ (the rule of three). Two standard errors state that
// share.
const unshown = 1.5

// drawnJudge judges components that are drawn, of one estimate after the other.
type drawnJudge struct {
	judge.Defaults
	*judge.Sequence
	ln     []float64      // weights of all components so far, nats
	lnMost float64        // a bound of all weights, and so of Z, nats; +Inf if there is none
	shares []*btn.Weights // weights that have marginals
	means  []mean         // by estimate
	// The best of the bounds so far.
	lower, upper judge.Side
}

// mean is what the components up to an estimate have in common.
type mean struct {
	sampling.Mean
	of     *judge.Estimate
	shares []*btn.Weights
}

// NewJudge returns the judge of components that are drawn.
func NewJudge(s *judge.Sequence) judge.Judge {
	return &drawnJudge{
		Sequence: s, lnMost: math.Inf(-1), lower: judge.Side{Ln: math.Inf(-1)}, upper: judge.Side{Ln: math.Inf(1)},
	}
}

// TakesAny implements judge.Judge: components are independent, so that any of them have a mean.
func (*drawnJudge) TakesAny() bool { return true }

// Add implements judge.Judge: Z̃ = (1/N) Σ_i w_i over all components so far. Bounds of the estimates hold together with probability
// 1 − Delta: the k-th has a share of 2^−k of that.
func (j *drawnJudge) Add(e *judge.Estimate) error {
	m := mean{of: e}
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
	m.StandardError = max(m.StandardError, unshown/n, math.Sqrt(sample.Missed/n))
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

// bound improves the bounds by those of all weights so far, which hold together with probability 1−δ, and returns the one below. If
// nothing bounds the weights, Markov's inequality has all of δ, else half of it.
func (j *drawnJudge) bound(spread, delta float64) (lower float64) {
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

// last returns the mean of all components so far. ok is false if there is none.
func (j *drawnJudge) last() (last mean, ok bool) {
	for _, m := range j.means {
		if m.of.LogZ != nil {
			last, ok = m, true
		}
	}
	return last, ok
}

// State implements judge.Judge: the mean of all components, uncertain by two standard errors and its shift under log-normal weights
// (sampling.Mean). If few components carry all the weight, the distance from the mean down to its lower bound is the least uncertainty,
// and up to the upper bound if few are above 0.
func (j *drawnJudge) State() judge.Statement {
	m, ok := j.last()
	if !ok {
		return judge.Statement{}
	}
	isBelieved := m.isBelieved()
	statement := judge.Statement{Best: m.of, IsCredible: isBelieved, MaySettle: isBelieved, MissesWeight: !isBelieved}
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

// isBelieved reports whether the standard error is to be believed: by the tail index of the weights, and if enough of them count. If most
// weigh 0 and the rest the same, the tail is thin and shows nothing.
func (m *mean) isBelieved() bool { return m.Settled() && m.Effective >= policy.LeastEffective }

// Marginals implements judge.Judge: Σ w f / Σ w of every variable (or target) and value. The uncertainty is the largest of twice their
// standard errors √(Σ w² (f − p)²)/Σ w. If few components carry all the weight, these agree with themselves: it is at least one over the
// root of the effective number then.
func (j *drawnJudge) Marginals(e *judge.Estimate) (out judge.Marginals) {
	var m mean
	for _, known := range j.means {
		if known.of == e {
			m = known
		}
	}
	if len(m.shares) == 0 {
		return out
	}
	top := math.Inf(-1)
	for _, w := range m.shares {
		top = max(top, w.Top)
	}
	size := len(m.shares[0].Share)
	share, squares := make([]float64, size), make([]float64, size)
	for _, w := range m.shares {
		if len(w.Share) != size || len(w.Squares) != size {
			return out
		}
		scale := math.Exp(w.Top - top)
		for k := range share {
			share[k] += scale * w.Share[k]
			squares[k] += scale * scale * w.Squares[k]
		}
	}

	worst := 1 / max(m.Effective, 1) // what was never drawn may be as likely as that
	if !m.isBelieved() {
		worst = math.Sqrt(worst)
	}
	offset := 0
	var rows [][]float64
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

// Warnings implements judge.Judge: few components carry the weight, and they are the answer or leave it open.
func (j *drawnJudge) Warnings(best *judge.Estimate, _ *float64) []string {
	m, ok := j.last()
	isStart := best != nil && best.Plan.Rule == btn.LogLinear && best.Plan.Level < 0 // belief propagation alone
	if !ok || m.isBelieved() || best != m.of && !isStart {
		return nil
	}
	then := "ln Z may be above what they say by far"
	if isStart {
		then = "ln Z is the value of belief propagation, within what they leave open"
	}
	return []string{fmt.Sprintf("not settled: %s of %d sampled components carry the weight, and %s",
		strconv.FormatFloat(m.Effective, 'f', 1, 64), m.N, then)}
}
