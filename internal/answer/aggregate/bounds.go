package aggregate

// What ln Z lies between: the best of all bounds on either side.

import (
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// bounds are those that follow from the model alone.
type bounds struct {
	lower, upper side
	least        float64 // a lower bound on ln Z unless Z is 0
	found        bool
}

// side is the best bound on one side and what it is.
type side struct {
	ln  float64
	how string
}

// add takes in the bounds of parts.
func (b *bounds) add(parts []btn.Value, kinds []btn.Part) *query.ErrorInfo {
	for i, v := range parts {
		if v.Bound == nil {
			return failure(fault.Internal, "component %d says no bound", i)
		}
		how := kinds[i].About().Result.Kind
		if !b.found {
			b.lower.ln, b.upper.ln, b.least = math.Inf(-1), math.Inf(1), math.Inf(-1)
			b.found = true
		}
		if v.Bound.Least != nil {
			b.least = max(b.least, *v.Bound.Least)
		}
		if v.Bound.Lower > b.lower.ln {
			b.lower = side{v.Bound.Lower, how}
		}
		if v.Bound.Upper < b.upper.ln {
			b.upper = side{v.Bound.Upper, how}
		}
	}
	return nil
}

// boundsDelta is the probability that some of the sampled bounds of a job does not hold: of all estimates of all its queries.
// Chosen: the design's.
const boundsDelta = 1e-3

// between returns what ln Z is known to lie between, widened by rounding, and the probability with which it does: −Inf and +Inf where
// nothing bounds it. Sampled bounds that contradict others are those that fail. Bounds and sampled components are computed in logarithms,
// which have no range to leave.
func (g *sequence) between() (lower, upper side, level float64) {
	lower, upper, level = side{ln: math.Inf(-1)}, side{ln: math.Inf(1)}, 1
	if b := &g.bounds; b.found {
		lower = side{b.lower.ln - wide(b.lower.ln), b.lower.how}
		upper = side{b.upper.ln + wide(b.upper.ln), b.upper.how}
	}
	if p := &g.pool; p.rungs > 0 && max(p.lower.ln, lower.ln) <= min(p.upper.ln, upper.ln) {
		if p.lower.ln > lower.ln {
			lower, level = p.lower, 1-boundsDelta
		}
		if p.upper.ln < upper.ln {
			upper, level = p.upper, 1-boundsDelta
		}
	}
	return lower, upper, level
}

// reach returns the largest distance from ln Z of a value between the bounds, +Inf without an upper or a lower bound. The least weight of
// a state is the lower bound where there is no other: it holds unless Z is 0, which no estimate shows.
func (g *sequence) reach(ln float64) float64 {
	lower, upper, _ := g.between()
	if math.IsInf(lower.ln, -1) && g.bounds.found {
		lower.ln = g.bounds.least
	}
	ln = min(max(ln, lower.ln), upper.ln)
	return max(upper.ln-ln, ln-lower.ln)
}

// wide is how far rounding may move a bound or an exact ln Z: ten digits of Z are left (trustedDigits), and rounding of its
// logarithm. It is 0 where there is none.
func wide(ln float64) float64 {
	if !isFinite(ln) {
		return 0
	}
	return 1e-10 + floor(ln)
}

// report returns the best bounds of a sequence, nil where there are none: with the level of sampled ones where one of these is the best.
func (g *sequence) report() *query.Bounds {
	lower, upper, level := g.between()
	out := &query.Bounds{Lower: finite(lower.ln), Upper: finite(upper.ln), Level: level}
	var how []string
	if out.Upper != nil {
		how = append(how, "above by "+upper.how)
	}
	if out.Lower != nil {
		how = append(how, "below by "+lower.how)
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
	by := max(wide(lnZ), apart(lnZ, rounds))
	return &query.Bounds{Lower: finite(lnZ - by), Upper: finite(lnZ + by), Level: 1, How: "exact, within rounding"}
}

// apart is how far ln Z may be from a value that is off by a share of it.
func apart(lnZ, rounds float64) float64 { return -math.Log1p(-rounds) + floor(lnZ) }

// reportRounding states an answer that is exact on paper and whose error is known: it is more than rounding of an exact answer.
func (r *estimate) reportRounding(t *Total) {
	to := &t.Result
	by := apart(*to.LogZ, r.rounds)
	to.Uncertainty = finite(by)
	to.Bounds = &query.Bounds{Lower: finite(*to.LogZ - by), Upper: finite(*to.LogZ + by), Level: 1, How: "the rounding of all terms"}
	if t.Marginals != nil { // a marginal's terms are some of those of Z, and go as far again on the way back
		t.MarginalUncertainty = finite(min(1, 4*r.rounds/(1-r.rounds)))
	}
}

// reportCertified returns the bounds of a certificate, nil where it is nil.
func reportCertified(c *query.Certificate) *query.Bounds {
	if c == nil {
		return nil
	}
	b := &query.Bounds{Upper: finite(c.LnUpper + wide(c.LnUpper)), Level: 1, How: "Cauchy–Schwarz"}
	if c.LnLower != nil {
		b.Lower = finite(*c.LnLower - wide(*c.LnLower))
	}
	return b
}

// reportHeaviest returns the bound that the heaviest assignment is, nil without one.
func reportHeaviest(ln float64) *query.Bounds {
	if math.IsInf(ln, -1) {
		return nil
	}
	return &query.Bounds{Lower: finite(ln - wide(ln)), Level: 1, How: "below by the weight of an assignment"}
}
