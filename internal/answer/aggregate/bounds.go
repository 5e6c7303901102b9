package aggregate

// What ln Z lies between: the best of all bounds on either side.

import (
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/pkg/query"
)

// report returns the best bounds of a sequence, nil where there are none: with the level of sampled ones where one of these is the best.
func (g *sequence) report() *query.Bounds {
	lower, upper, level := g.Bounds.Between()
	out := &query.Bounds{Lower: finite(lower.Ln), Upper: finite(upper.Ln), Level: level}
	var how []string
	if out.Upper != nil {
		how = append(how, "above by "+upper.By)
	}
	if out.Lower != nil {
		how = append(how, "below by "+lower.By)
	}
	if len(how) == 0 {
		return nil
	}
	out.How = strings.Join(how, ", ")
	return out
}

// exactRounding is the error of ln Z up to which an answer is exact.
func exactRounding(lnZ float64) float64 { return 1e-10 + math.Ldexp(math.Abs(lnZ), -50) }

// reportExact returns bounds of an exact answer: its value, widened by rounding, and by what it may be off relatively.
func reportExact(lnZ, rounds float64) *query.Bounds {
	by := max(judge.Widening(lnZ), apart(lnZ, rounds))
	return &query.Bounds{Lower: finite(lnZ - by), Upper: finite(lnZ + by), Level: 1, How: "exact, within rounding"}
}

// apart is how far ln Z may be from a value that is off by a share of it.
func apart(lnZ, rounds float64) float64 { return -math.Log1p(-rounds) + judge.Floor(lnZ) }

// reportRounding states an answer that is exact on paper and whose error is known: it is more than rounding of an exact answer.
func (r *estimate) reportRounding(t *Total) {
	to := &t.Result
	by := apart(*to.LogZ, r.Rounding)
	to.Uncertainty = finite(by)
	to.Bounds = &query.Bounds{Lower: finite(*to.LogZ - by), Upper: finite(*to.LogZ + by), Level: 1, How: "the rounding of all terms"}
	if t.Marginals != nil { // a marginal's terms are some of those of Z, and go as far again on the way back
		t.MarginalUncertainty = finite(min(1, 4*r.Rounding/(1-r.Rounding)))
	}
}

// reportCertified returns the bounds of a certificate, nil where it is nil.
func reportCertified(c *query.Certificate) *query.Bounds {
	if c == nil {
		return nil
	}
	b := &query.Bounds{Upper: finite(c.LnUpper + judge.Widening(c.LnUpper)), Level: 1, How: "Cauchy–Schwarz"}
	if c.LnLower != nil {
		b.Lower = finite(*c.LnLower - judge.Widening(*c.LnLower))
	}
	return b
}

// reportHeaviest returns the bound that the heaviest assignment is, nil without one.
func reportHeaviest(ln float64) *query.Bounds {
	if math.IsInf(ln, -1) {
		return nil
	}
	return &query.Bounds{Lower: finite(ln - judge.Widening(ln)), Level: 1, How: "below by the weight of an assignment"}
}
