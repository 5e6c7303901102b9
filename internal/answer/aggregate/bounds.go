package aggregate

// What ln Z lies between: the best of all bounds on either side.

import (
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/query"
)

// bestBounds returns the best lower and upper bound on ln Z that the sequence has, as they stand in an answer. Level is below 1 if one of
// them is sampled. It returns nil if there is no bound on either side.
func (g *sequence) bestBounds() *query.Bounds {
	lower, upper, level := g.Bounds.Tightest()
	bounds := &query.Bounds{Lower: finite(lower.Ln), Upper: finite(upper.Ln), Level: level}
	var how []string
	if bounds.Upper != nil {
		how = append(how, "above by "+upper.By)
	}
	if bounds.Lower != nil {
		how = append(how, "below by "+lower.By)
	}
	if len(how) == 0 {
		return nil
	}
	bounds.How = strings.Join(how, ", ")
	return bounds
}

// exactRounding is the largest error of ln Z, in nats, of an answer that counts as exact.
func exactRounding(lnZ float64) float64 { return 1e-10 + math.Ldexp(math.Abs(lnZ), -50) }

// exactBounds returns the bounds of an exact answer: ln Z, widened by the larger of two errors, that of rounding in general and the one
// that follows from the relative error of Z.
func exactBounds(lnZ, relativeError float64) *query.Bounds {
	width := max(judge.RoundingMargin(lnZ), logError(lnZ, relativeError))
	return &query.Bounds{Lower: finite(lnZ - width), Upper: finite(lnZ + width), Level: 1, How: "exact, within rounding"}
}

// logError returns the largest error of ln Z, in nats, if Z has the relative error e: −ln(1 − e), and the rounding of the logarithm.
func logError(lnZ, e float64) float64 { return -math.Log1p(-e) + judge.LeastError(lnZ) }

// reportRounding fills in uncertainty and bounds of an answer that is exact on paper, but whose rounding error is too large for an exact
// answer. The rounding error is known.
func (r *estimate) reportRounding(total *Total) {
	result := &total.Result
	u := logError(*result.LogZ, r.Rounding)
	result.Uncertainty = finite(u)
	result.Bounds = &query.Bounds{
		Lower: finite(*result.LogZ - u), Upper: finite(*result.LogZ + u), Level: 1, How: "the rounding of all terms",
	}
	// The terms of a marginal are some of those of Z. With r = Rounding, they are rounded on the way to Z, by a factor 1 ± r, and once more
	// on the way back from it. Divided by Z, which is off by 1 ± r, a marginal is off by at most (1+r)²/(1−r) − 1 = (3r + r²)/(1−r), and
	// that is at most 4r/(1−r) for r ≤ 1.
	if total.Marginals != nil {
		total.MarginalUncertainty = finite(min(1, 4*r.Rounding/(1-r.Rounding)))
	}
}

// certificateBounds returns the interval of a certificate as bounds. It returns nil if c is nil.
func certificateBounds(c *query.Certificate) *query.Bounds {
	if c == nil {
		return nil
	}
	// Level 1: the interval holds with certainty.
	b := &query.Bounds{Upper: finite(c.LnUpper + judge.RoundingMargin(c.LnUpper)), Level: 1, How: "Cauchy–Schwarz"}
	if c.LnLower != nil {
		b.Lower = finite(*c.LnLower - judge.RoundingMargin(*c.LnLower))
	}
	return b
}

// assignmentBounds returns the lower bound on ln Z that the weight of an assignment is; ln is the logarithm of the weight. It returns nil
// if ln is −Inf.
func assignmentBounds(ln float64) *query.Bounds {
	if math.IsInf(ln, -1) {
		return nil
	}
	return &query.Bounds{Lower: finite(ln - judge.RoundingMargin(ln)), Level: 1, How: "below by the weight of an assignment"}
}
