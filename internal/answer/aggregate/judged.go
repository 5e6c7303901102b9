package aggregate

// What is reported of an answer whose quality is not known: statements, marginals and samples of the methods.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// doubtedSamples is the largest error of a probability from weighted samples that needs no warning: that of 100 samples.
// Chosen.
const doubtedSamples = 0.1

// reportJudged fills in what the sequence states about its best estimate, whose quality is not known: uncertainty, bounds, samples and
// marginals.
func (g *sequence) reportJudged(total *Total, a *btn.Assignment) {
	r := &total.Result
	r.Uncertainty = g.answer.Uncertainty
	r.Bounds = g.bestBounds()
	g.reportSamples(total, &a.Want)

	m := g.judgeMarginals()
	if m.Warning != "" {
		r.Warnings = append(r.Warnings, m.Warning)
	}
	if m.P == nil {
		return
	}
	total.Marginals, total.MarginalUncertainty = m.P, m.Uncertainty
	if m.Uncertainty == nil {
		why := "no other estimate has marginals: nothing is known of their quality, and they need larger bonds than Z"
		if r.Uncertainty == nil {
			why = "nothing is known of the quality of the marginals, as of ln Z"
		}
		r.Warnings = append(r.Warnings, why)
	}
}

// reportSamples fills in the weighted samples that are wanted. It does nothing if the plan of the best estimate draws none.
func (g *sequence) reportSamples(total *Total, want *btn.Want) {
	if want.Samples == 0 || !hasDraws(*g.best.Plan) {
		return
	}
	samples := g.judges.ForRule(g.best.Plan.Rule).Samples(&g.best.Estimate, want.Samples, want.Seed)
	total.Samples, total.Weights = samples.Values, samples.Weights
	if samples.Warning != "" {
		total.Result.Warnings = append(total.Result.Warnings, samples.Warning)
	}
	squares := 0.0
	for _, w := range total.Weights {
		squares += w * w
	}
	if squares > 0 {
		total.Effective = finite(1 / squares) // how many samples of one weight count as much; the weights sum to 1
	}
	if e := samplesError(total); e > doubtedSamples {
		total.Result.Warnings = append(total.Result.Warnings, fmt.Sprintf(
			"the samples count as %.0f of one weight, and some states may be missing: a probability from them may be off by %.2g",
			*total.Effective, e))
	}
}

// samplesError returns the largest error to expect of a probability that is computed from the weighted samples: the larger of
//
//   - two standard errors of a probability of 1/2 from n equal samples, 2·√(1/4n) = 1/√n, with n = Effective
//   - the share of Z that may be missing, since all of it may have one value.
//
// It returns 0 if there are no weighted samples, and 1 if the uncertainty of Z is not known.
func samplesError(t *Total) float64 {
	if len(t.Weights) == 0 || t.Effective == nil {
		return 0
	}
	statistical := 1 / math.Sqrt(*t.Effective)
	if t.Result.Uncertainty == nil {
		return 1
	}
	return min(1, max(statistical, -math.Expm1(-*t.Result.Uncertainty))) // 1 − e^−u of Z is missing if ln Z is too low by u
}
