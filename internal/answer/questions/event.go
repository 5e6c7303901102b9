package questions

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Conditional probabilities: ratios of the answers to two queries.

// event is ln P(event | given): with Over a query names another one, and
//
//	Ratio.Ln = ln (Z / Z_over) in nats, ln P(event | given) if Z is of given ∧ event and Z_over of given,
//
// from the quotient and not the difference of logarithms. There is none if the other query has no answer or its Z is 0; a warning says so.
// If it is a probability (IsEvent), one above 1 within what both queries state is 1, with a warning; one above that is a failed estimate,
// for at least one of both statements is wrong; an exact answer over an estimate stays, without a ratio. A result with a ratio is not exact
// if the other query has an estimate.
var event = kind{name: "event", compare: func(all []answer, a *answer) {
	r := a.to
	if a.asked.Query.Over == 0 || r.Status != query.StatusOK {
		return
	}
	given := a.asked.Query.Over - 1
	switch {
	case given < 0 || given >= len(all):
		a.warn(fmt.Sprintf("no ratio: query %d is not in this job", given))
	case all[given].to.Status != query.StatusOK:
		a.warn(fmt.Sprintf("no ratio: query %d, which this one is asked over, has no answer", given))
	case all[given].to.Zero:
		a.warn(fmt.Sprintf("no ratio: Z of query %d, which this one is asked over, is 0", given))
	default:
		if len(a.asked.Query.Believe)+len(all[given].asked.Query.Believe) > 0 {
			answerUnderBeliefs(a, &all[given])
			return
		}
		r.Ratio = &query.Ratio{}
		if !r.Zero {
			r.Ratio.Ln = finite(a.total.Z.Div(all[given].total.Z).LogAbs())
		}
		if a.asked.IsEvent {
			limit(r, all[given].to)
			setProbability(r.Ratio)
		}
		if r.Ratio != nil && r.Exact && !all[given].total.Result.Exact {
			r.Exact = false
			a.warn(fmt.Sprintf("the ratio is an estimate of unknown quality: "+
				"query %d, which this one is asked over, has only an estimate", given))
		}
	}
}}

// isEvent reports whether a query's evidence is that of the query in its field Over and more of it.
func isEvent(queries []query.Query, i int) bool {
	over := queries[i].Over
	return over > 0 && over <= len(queries) && restricts(evidenceOf(&queries[i]), evidenceOf(&queries[over-1]))
}

// surely is how far rounding alone may put a probability above 1, per nat of ln Z and one nat.
const surely = 1e-9

// limit makes a probability above 1 either 1, if the uncertainties of both answers allow it, or none if r alone is exact, or an error; the
// other answer is then uncertain by what is missing in it. r is the result whose ratio over the result over may be too large.
func limit(r, over *query.Result) {
	if r.Ratio.Ln == nil || *r.Ratio.Ln <= 0 {
		return
	}

	above := *r.Ratio.Ln
	allowed := surely*(1+math.Abs(*r.LogZ)) + stated(r) + stated(over)

	if above <= allowed {
		r.Ratio.Ln = finite(0)
		if above > surely {
			r.Warnings = append(r.Warnings,
				fmt.Sprintf("P(event | given) came out as exp(%.2g), within the stated uncertainties: it is given as 1", above))
		}
		return
	}

	over.Warnings = append(over.Warnings, fmt.Sprintf(
		"query %d, which restricts this one, came out larger by %.2g nats: one of both is less certain than stated",
		r.Query, above,
	))
	if over.Uncertainty != nil {
		over.Uncertainty = finite(max(*over.Uncertainty, above-stated(r))) // Z is at least that of the event
	}
	if r.Exact && !over.Exact {
		r.Ratio = nil
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"no ratio: query %d, which this one is asked over, has an estimate that is smaller by %.2g nats", over.Query, above,
		))
		return
	}
	r.Status = query.StatusError
	r.Error = &query.ErrorInfo{Code: fault.FailedEstimate, Stage: query.StageAggregate, Message: fmt.Sprintf(
		"P(event | given) came out as exp(%.3g), above 1 by more than the estimates state (%.2g nats)", above, allowed,
	)}
	r.Exact = false
	r.Zero = false
	r.LogZ, r.Log10Z = nil, nil
	r.Uncertainty, r.MarginalUncertainty, r.Certificate, r.Bounds = nil, nil, nil, nil
	r.Answers = query.Answers{}
}

// setProbability writes the probability beside its logarithm; nil of nil.
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

// stated returns the uncertainty of an answer in nats, 0 where it has none.
func stated(r *query.Result) float64 {
	if r.Uncertainty == nil {
		return 0
	}
	return *r.Uncertainty
}
