package aggregate

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Conditional probabilities: ratios of the answers to two queries.

// Results answers all queries of a job, inputs[q] being query q, as Result does. Where
// Assignment.Over of a query names another one, it also fills
//
//	LnRatio = ln (Z / Z_over) in nats, ln P(event | given) if Z is of given ∧ event and Z_over of given,
//
// from the quotient and not the difference of logarithms. It is nil where either query has no
// answer and where either Z is 0; a warning says so unless the query's own error or Zero does.
// Where the assignment says that it is a probability (Event), one above 1 within what both queries
// state is 1, with a warning; one above that is a failed estimate, for at least one of both
// statements is wrong; an exact answer over an estimate stays, without a ratio. Queries that were not asked but are for another's
// information have no result. Cost: one Result per query.
func Results(inputs []Input) []query.Result {
	results := make([]query.Result, len(inputs))
	z := make([]scaled.Number, len(inputs))
	for q, in := range inputs {
		results[q], z[q] = answer(in)
	}
	asked := len(inputs)
	for q, in := range inputs {
		a := in.Assignment
		if a != nil && a.Extra {
			asked = min(asked, q)
		}
		if a == nil || a.Ask == nil {
			continue
		}
		if end := a.First + a.Count; a.First > q && end <= len(inputs) {
			inform(&results[q], a, results[a.First:end], z[a.First:end])
		}
	}

	for q, in := range inputs[:asked] {
		if in.Assignment == nil || in.Assignment.Over == 0 || results[q].Status != query.StatusOK {
			continue
		}
		r := &results[q]
		over := in.Assignment.Over - 1
		warn := func(
			format string, args ...any,
		) {
			r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
		}

		switch {
		case over < 0 || over >= len(results):
			warn("no ratio: query %d is not in this job", over)
		case results[over].Status != query.StatusOK:
			warn("no ratio: query %d, which this one is asked over, has no answer", over)
		case results[over].Zero:
			warn("no ratio: Z of query %d, which this one is asked over, is 0", over)
		case r.Zero: // the probability is 0, and its logarithm is not finite
		default:
			r.LnRatio = finite(z[q].Div(z[over]).LogAbs())
			if in.Assignment.Event {
				improbable(r, &results[over])
			}
			if r.Status == query.StatusOK && r.Exact && !results[over].Exact {
				warn("the ratio is an estimate of unknown quality: "+
					"query %d, which this one is asked over, has only an estimate", over)
			}
		}
	}
	return results[:asked]
}

// surely is how far rounding alone may put a probability above 1, per nat of ln Z and one nat.
const surely = 1e-9

// improbable makes a probability above 1 either 1, where the uncertainties of both answers allow
// it, or none where r alone is exact, or an error; the other answer is then uncertain by what is missing in it. r is the result whose
// ratio over the result over is too large.
func improbable(r, over *query.Result) {
	if r.LnRatio == nil || *r.LnRatio <= 0 {
		return
	}

	above := *r.LnRatio
	allowed := surely*(1+math.Abs(*r.LogZ)) + stated(r) + stated(over)

	if above <= allowed {
		r.LnRatio = finite(0)
		if above > surely {
			r.Warnings = append(
				r.Warnings,
				fmt.Sprintf(
					"P(event | given) came out as exp(%.2g), within the stated uncertainties: "+
						"it is given as 1",
					above,
				),
			)
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
		r.LnRatio = nil
		r.Warnings = append(r.Warnings, fmt.Sprintf(
			"no ratio: query %d, which this one is asked over, has an estimate that is smaller by %.2g nats", over.Query, above,
		))
		return
	}
	r.Status = query.StatusError
	r.Error = failure(
		fault.FailedEstimate,
		"P(event | given) came out as exp(%.3g), above 1 by more than the estimates state (%.2g nats)",
		above, allowed,
	)
	r.Exact = false
	r.Zero = false
	r.LogZ, r.Log10Z, r.LnRatio = nil, nil, nil
	r.Uncertainty, r.Certificate, r.Bounds = nil, nil, nil
	r.Marginals, r.Targets, r.MarginalUncertainty, r.Joint = nil, nil, nil, nil
	r.Gradients, r.ScaledGradients = nil, nil
}

// stated returns the uncertainty of an answer in nats, 0 where it has none.
func stated(r *query.Result) float64 {
	if r.Uncertainty == nil {
		return 0
	}
	return *r.Uncertainty
}
