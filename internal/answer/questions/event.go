package questions

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Conditional probabilities: ratios of the answers to two queries.

// event asks for the conditional probability P(event | given). The evidence of the query is given ∧ event, and its field Over names the
// query whose evidence is given. The answer is
//
//	Ratio.Ln = ln (Z / Z_over) in nats
//
// from the quotient and not from the difference of logarithms.
//
//   - There is no ratio, and a warning, if the other query has no answer or its Z is 0.
//   - If the ratio is a probability (IsEvent), it may not be above 1 (limitRatio).
//   - A result with a ratio is not exact if the other query has an estimate.
//   - If one of the queries has beliefs, answerUnderBeliefs has the answer.
var event = kind{name: "event", compare: func(all []answer, a *answer) {
	if a.asked.Query.Over == 0 || a.result.Status != query.StatusOK {
		return
	}
	over := a.asked.Query.Over - 1
	switch {
	case over < 0 || over >= len(all):
		a.warn(fmt.Sprintf("no ratio: query %d is not in this job", over))
	case all[over].result.Status != query.StatusOK:
		a.warn(fmt.Sprintf("no ratio: query %d, which this one is asked over, has no answer", over))
	case all[over].result.Zero:
		a.warn(fmt.Sprintf("no ratio: Z of query %d, which this one is asked over, is 0", over))
	case len(a.asked.Query.Believe)+len(all[over].asked.Query.Believe) > 0:
		answerUnderBeliefs(a, &all[over])
	default:
		a.divideBy(&all[over], over)
	}
}}

// divideBy writes the ratio Z / Z_over into the result. The argument over is the answer to the query in the denominator, and index is that
// query's number in the job, for the warning. Z_over is not 0.
func (a *answer) divideBy(over *answer, index int) {
	r := a.result
	r.Ratio = &query.Ratio{}
	if !r.Zero {
		r.Ratio.Ln = finite(a.total.Z.Div(over.total.Z).LogAbs())
	}
	if a.asked.IsEvent {
		limitRatio(r, over.result) // to at most 1; r.Ratio may become nil
		setProbability(r.Ratio)
	}
	if r.Ratio != nil && r.Exact && !over.total.Result.Exact {
		r.Exact = false
		a.warn(fmt.Sprintf("the ratio is an estimate of unknown quality: "+
			"query %d, which this one is asked over, has only an estimate", index))
	}
}

// isEvent reports whether the evidence of query i restricts that of the query in its field Over, so that their ratio is a probability.
func isEvent(queries []query.Query, i int) bool {
	over := queries[i].Over // counts from 1; 0: the query is over no other one
	isOverAnother := over > 0 && over <= len(queries)
	return isOverAnother && restricts(evidenceOf(&queries[i]), evidenceOf(&queries[over-1]))
}

// ratioRounding is the largest logarithm of a probability above 1 that rounding alone may cause, per nat of ln Z and one nat.
const ratioRounding = 1e-9

// limitRatio corrects a ratio Z/Z_over above 1, which should be a probability. r is the result with the ratio, and over is the result of
// the query in the denominator. The excess is ln of the ratio.
//
//   - If the uncertainties of both answers allow the excess, the ratio becomes 1, with a warning unless it is only rounding.
//   - Otherwise Z of over is too small: over gets a warning, and its uncertainty becomes at least the excess minus that of r.
//   - If in that case r is exact and over is not, r loses its ratio, with a warning, since Z of r is right.
//   - Otherwise r becomes an error, since at least one of the two statements is wrong.
func limitRatio(r, over *query.Result) {
	if r.Ratio.Ln == nil || *r.Ratio.Ln <= 0 { // nil: the ratio is 0
		return
	}
	excess := *r.Ratio.Ln
	allowed := ratioRounding*(1+math.Abs(*r.LogZ)) + uncertaintyOf(r) + uncertaintyOf(over) // ln Z is rounded relative to its size
	if excess <= allowed {
		r.Ratio.Ln = finite(0)
		if excess > ratioRounding {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("P(event | given) came out as exp(%.2g), within the stated uncertainties: it is given as 1", excess))
		}
		return
	}

	over.Warnings = append(over.Warnings, fmt.Sprintf(
		"query %d, which restricts this one, came out larger by %.2g nats: one of both is less certain than stated",
		r.Query, excess,
	))
	if over.Uncertainty != nil {
		over.Uncertainty = finite(max(*over.Uncertainty, excess-uncertaintyOf(r))) // its Z is at least that of r
	}
	if r.Exact && !over.Exact {
		r.Ratio = nil
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"no ratio: query %d, which this one is asked over, has an estimate that is smaller by %.2g nats", over.Query, excess,
		))
		return
	}
	refuseAnswer(r, fmt.Sprintf(
		"P(event | given) came out as exp(%.3g), above 1 by more than the estimates state (%.2g nats)", excess, allowed,
	))
}

// refuseAnswer makes an answer an error, without everything that the answer stated.
func refuseAnswer(r *query.Result, message string) {
	r.Status = query.StatusError
	r.Error = &query.ErrorInfo{Code: fault.FailedEstimate, Stage: query.StageAggregate, Message: message}
	r.Exact = false
	r.Zero = false
	r.LogZ, r.Log10Z = nil, nil
	r.Uncertainty, r.MarginalUncertainty, r.Certificate, r.Bounds = nil, nil, nil, nil
	r.Answers = query.Answers{}
}

// setProbability fills in P of a ratio from its logarithm: 0 if the logarithm is nil. It does nothing if there is no ratio.
func setProbability(ratio *query.Ratio) {
	if ratio == nil {
		return
	}
	p := 0.0
	if ratio.Ln != nil {
		p = math.Exp(*ratio.Ln)
	}
	ratio.P = &p
}

// uncertaintyOf returns the uncertainty of a result in nats, 0 if it has none.
func uncertaintyOf(r *query.Result) float64 {
	if r.Uncertainty == nil {
		return 0
	}
	return *r.Uncertainty
}
