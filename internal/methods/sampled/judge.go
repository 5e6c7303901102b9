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
	lnWeights     []float64      // ln of the weights of all components so far
	lnLargest     float64        // upper bound of ln of every possible weight, and so of ln Z; +Inf if a part states none
	marginalParts []*btn.Weights // weights of the parts that have marginals
	means         []mean         // by estimate
	// The best bounds of ln Z so far, each with the text that says where it comes from.
	bestLower, bestUpper judge.Side
}

// mean is the mean of all components up to an estimate.
type mean struct {
	sampling.Mean
	estimate      *judge.Estimate
	marginalParts []*btn.Weights // weights of the parts that have marginals
}

// NewJudge returns the judge of sampled components.
func NewJudge(s *judge.Sequence) judge.Judge {
	return &sampleJudge{
		Sequence: s, lnLargest: math.Inf(-1), bestLower: judge.Side{Ln: math.Inf(-1)}, bestUpper: judge.Side{Ln: math.Inf(1)},
	}
}

// AcceptsMissingParts implements judge.Judge. It returns true, since components are independent: the mean of any of them estimates Z.
func (*sampleJudge) AcceptsMissingParts() bool { return true }

// Add implements judge.Judge. It adds the weights of e's components to those of the estimates before it, and sets the Z of e to the mean
// weight (1/N) Σ_i w_i of all N components so far, with its standard error and bounds. The bounds of the k-th estimate fail with a
// probability of at most j.FailureProbability/2^k, so those of all estimates together with at most j.FailureProbability.
func (j *sampleJudge) Add(e *judge.Estimate) error {
	m := mean{estimate: e}
	j.means = append(j.means, m) // an incomplete one, if an error ends Add early
	if err := j.collectWeights(e); err != nil {
		return err
	}

	// The standard error of ln Z is at least what states that were not drawn may add. There are two cases. Among n equal weights
	// one with a share of 3/n may be missing (absentShare). And a share sample.Missed of all draws may weigh 0 without having been seen:
	// then the relative variance of a weight is about Missed.
	m.Mean, m.marginalParts = sampling.MeanOf(j.lnWeights), j.marginalParts
	sample, n := e.Plan.Parts[0].About().Sample, float64(len(j.lnWeights))
	m.StandardError = max(m.StandardError, absentShare/n, math.Sqrt(sample.Missed/n))
	j.means[len(j.means)-1] = m
	if math.IsInf(m.Ln, -1) {
		return errors.New("all components weigh 0, and an estimate cannot show that Z is 0")
	}

	e.Truncated = true // Z is not exact
	e.Z = scaled.FromLog(m.Ln)
	e.StandardError, e.EffectiveSamples, e.TailIndex = judge.Finite(m.StandardError), judge.Finite(m.Effective), judge.Finite(m.Tail)
	delta := j.FailureProbability * math.Exp2(-float64(len(j.means)))
	e.LnLower = judge.Finite(j.improveBounds(sample.Spread, delta))
	j.Bounds.AddSampled(j.bestLower, j.bestUpper)
	return nil
}

// collectWeights adds the weights of the parts of an estimate to those of the judge. Each part has the weights of several components.
func (j *sampleJudge) collectWeights(e *judge.Estimate) error {
	for i, v := range e.Parts {
		if v.Weights == nil || int64(len(v.Weights.Ln)) != e.Plan.Parts[i].About().Sample.Components {
			return fmt.Errorf("component %d does not say what was drawn", i)
		}
		j.lnWeights = append(j.lnWeights, v.Weights.Ln...)
		if v.Weights.LnMost == nil { // no bound of the possible weights is known
			j.lnLargest = math.Inf(1)
		} else {
			j.lnLargest = max(j.lnLargest, *v.Weights.LnMost)
		}
		if v.Weights.Share != nil {
			j.marginalParts = append(j.marginalParts, v.Weights)
		}
	}
	return nil
}

// improveBounds computes bounds of ln Z from all weights so far and keeps those that are better than bestLower and bestUpper. It returns
// the new lower bound. The new bounds fail with probability delta. If no weight can exceed a known bound, the inequalities of Bernstein
// and of Markov each have half of delta; otherwise Markov's has all of it. spread is the variance of a weight over the square of its mean.
func (j *sampleJudge) improveBounds(spread, delta float64) (lower float64) {
	n := len(j.lnWeights)

	// Upper bounds need a bound of the weights.
	bernsteinLower := math.Inf(-1)
	if !math.IsInf(j.lnLargest, 1) {
		delta /= 2
		var bernsteinUpper float64
		bernsteinLower, bernsteinUpper = sampling.Bernstein(j.lnWeights, j.lnLargest, delta)
		if bernsteinUpper < min(j.bestUpper.Ln, j.lnLargest) {
			source := fmt.Sprintf("the mean of %d sampled components, by Bernstein's inequality", n)
			j.bestUpper = judge.Side{Ln: bernsteinUpper, By: source}
		}
	}
	if j.lnLargest < j.bestUpper.Ln {
		j.bestUpper = judge.Side{Ln: j.lnLargest, By: "the largest possible weight of a sampled component"}
	}

	// The lower bound is the better one of the two inequalities.
	lower = sampling.Lower(j.lnWeights, sampling.Bundles(n, spread, delta), delta)
	source := "means of %d sampled components in bundles, by Markov's inequality"
	if bernsteinLower > lower {
		lower, source = bernsteinLower, "the mean of %d sampled components, by Bernstein's inequality"
	}
	if lower > j.bestLower.Ln {
		j.bestLower = judge.Side{Ln: lower, By: fmt.Sprintf(source, n)}
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

// MakeStatement implements judge.Judge. It states the mean of all components. Its uncertainty in ln Z is two standard errors, plus the
// shift that the mean has if weights are log-normal (sampling.Mean). If few components carry all the weight, the uncertainty is at least
// the distance down to the lower bound, and if few weights are above 0 also the distance up to the upper bound.
func (j *sampleJudge) MakeStatement() judge.Statement {
	m, ok := j.lastMean()
	if !ok {
		return judge.Statement{}
	}
	isBelieved := m.isBelieved()
	statement := judge.Statement{Best: m.estimate, IsCredible: isBelieved, MaySettle: isBelieved, MissesWeight: !isBelieved}

	uncertainty := 2 * m.StandardError
	if m.Zeros == 0 || !isBelieved { // among zeros the positive weights are skewed to small ones: the shift would be too large
		uncertainty += max(m.Shift, 0)
	}
	if !isBelieved {
		lower := j.bestLower.Ln
		if math.IsInf(lower, -1) { // more than a quarter of the bundles are zeros: Markov's inequality for the mean of all weights
			lower = m.Ln + math.Log(judge.BoundsDelta)
		}
		uncertainty = max(uncertainty, m.Ln-lower)
		hasFewPositive := m.Zeros > 0 && float64(m.N-m.Zeros) < policy.LeastEffective
		if hasFewPositive { // their spread does not show how far ln Z is above the mean
			_, upper, _ := j.Bounds.Tightest() // without the lower bound and the probability that they hold
			uncertainty = max(uncertainty, upper.Ln-m.Ln)
		}
	}
	if !math.IsNaN(uncertainty) && !math.IsInf(uncertainty, 0) {
		statement.Uncertainty = judge.Finite(max(uncertainty, judge.LeastError(m.Ln)))
	}
	return statement
}

// isBelieved reports whether the standard error can be trusted: the tail of the weights is thin (Settled), and the effective number of
// components is at least policy.LeastEffective. A thin tail alone shows nothing if most components weigh 0 and all others the same.
func (m *mean) isBelieved() bool { return m.IsReliable() && m.Effective >= policy.LeastEffective }

// Marginals implements judge.Judge. It returns Σ w f / Σ w over all components up to estimate e, where f is 1 if a component has the value
// and 0 otherwise. P has a row for every target, or for every variable if there are no targets. It is nil if the components have no
// marginals, or contradictory ones.
func (j *sampleJudge) Marginals(e *judge.Estimate) (marginals judge.Marginals) {
	var m mean // that of e
	for _, candidate := range j.means {
		if candidate.estimate == e {
			m = candidate
		}
	}
	if len(m.marginalParts) == 0 {
		return marginals
	}
	sums, squares, ok := m.addParts()
	if !ok {
		return marginals
	}
	rows, uncertainty := m.normalise(sums, squares)

	marginals.P = rows
	if j.Targets != nil {
		marginals.P = nil
		for _, v := range j.Targets {
			if v >= len(rows) { // the parts are of a network with fewer variables
				return judge.Marginals{}
			}
			marginals.P = append(marginals.P, rows[v])
		}
	}
	marginals.Uncertainty = judge.Finite(min(1, uncertainty))
	return marginals
}

// addParts returns sums over all components of all parts: sums[k] = Σ w f_k and squares[k] = Σ w² f_k². f_k is 1 if a component has
// value k and 0 otherwise; k counts the values of the first variable, then those of the second, and so on. Weights are divided by the
// largest e^Top of a part. ok is false if parts differ in length.
func (m *mean) addParts() (sums, squares []float64, ok bool) {
	top := math.Inf(-1)
	for _, part := range m.marginalParts {
		top = max(top, part.Top)
	}
	size := len(m.marginalParts[0].Share)
	sums, squares = make([]float64, size), make([]float64, size)
	for _, part := range m.marginalParts {
		if len(part.Share) != size || len(part.Squares) != size {
			return nil, nil, false
		}
		scale := math.Exp(part.Top - top)
		for k := range sums {
			sums[k] += scale * part.Share[k]
			squares[k] += scale * scale * part.Squares[k]
		}
	}
	return sums, squares, true
}

// normalise returns the marginals p = Σ w f / Σ w of each variable and their uncertainty. sums has Σ w f, and squares Σ w² f, for one value
// of a variable after the other (addParts). w is the weight of a component, and f is 1 if its state has the value and 0 otherwise.
//
// The uncertainty is twice the largest standard error √(Σ w² (f − p)²)/Σ w. It is at least 1/n with n the effective number of components,
// since a value that was never drawn may have that probability. It is at least 1/√n if few components carry all the weight.
func (m *mean) normalise(sums, squares []float64) (rows [][]float64, uncertainty float64) {
	uncertainty = 1 / max(m.Effective, 1)
	if !m.isBelieved() {
		uncertainty = math.Sqrt(uncertainty)
	}
	offset := 0 // of the variable's values in sums
	for _, domain := range m.marginalParts[0].Domains {
		total, totalSquares := 0.0, 0.0 // Σ w and Σ w²
		for k := offset; k < offset+domain; k++ {
			total += sums[k]
			totalSquares += squares[k]
		}
		row := make([]float64, domain)
		for a := range row {
			row[a] = min(1, max(0, sums[offset+a]/total)) // rounding may leave 0 to 1
			// Σ w² (f − p)² = Σ w² f² (1 − 2p) + p² Σ w², as f² = f.
			variance := squares[offset+a]*(1-2*row[a]) + row[a]*row[a]*totalSquares
			uncertainty = max(uncertainty, 2*math.Sqrt(max(0, variance))/total)
		}
		rows = append(rows, row)
		offset += domain
	}
	return rows, uncertainty
}

// Warnings implements judge.Judge. It warns if few components carry the weight, and the answer is their mean or the value of belief
// propagation. best is the estimate that the answer has.
func (j *sampleJudge) Warnings(best *judge.Estimate, _ *float64) []string {
	m, ok := j.lastMean()
	isBeliefPropagation := best != nil && best.Plan.Rule == btn.LogLinear && best.Plan.Level < 0
	isAnswer := best == m.estimate || isBeliefPropagation
	if !ok || m.isBelieved() || !isAnswer {
		return nil
	}
	consequence := "ln Z may be above what they say by far"
	if isBeliefPropagation {
		consequence = "ln Z is the value of belief propagation, within what they leave open"
	}
	return []string{fmt.Sprintf("not settled: %s of %d sampled components carry the weight, and %s",
		strconv.FormatFloat(m.Effective, 'f', 1, 64), m.N, consequence)}
}
