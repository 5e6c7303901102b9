package aggregate

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Conditional probabilities: ratios of the answers to two queries.

// Results answers all queries of a job, inputs[q] being query q, as Result does. Where Assignment.Over of a query names
// another one, it also fills
//
//	LnRatio = ln (Z / Z_over) in nats, ln P(event | given) if Z is of given ∧ event and Z_over of given,
//
// from the quotient and not the difference of logarithms. It is nil where either query has no answer and where either Z is
// 0; a warning says so unless the query's own error or Zero does. Cost: one Result per query.
func Results(inputs []Input) []btn.Result {
	results, z := make([]btn.Result, len(inputs)), make([]scaled.Number, len(inputs))
	for q, in := range inputs {
		results[q], z[q] = answer(in)
	}
	for q, in := range inputs {
		if in.Assignment == nil || in.Assignment.Over == 0 || results[q].Status != "ok" {
			continue
		}
		r, over := &results[q], in.Assignment.Over-1
		warn := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
		switch {
		case over < 0 || over >= len(results):
			warn("no ratio: query %d is not in this job", over)
		case results[over].Status != "ok":
			warn("no ratio: query %d, which this one is asked over, has no answer", over)
		case results[over].Zero:
			warn("no ratio: Z of query %d, which this one is asked over, is 0", over)
		case r.Zero: // the probability is 0, and its logarithm no number
		default:
			r.LnRatio = finite(z[q].Div(z[over]).LogAbs())
			if r.Exact && !results[over].Exact {
				warn("the ratio is an estimate of unknown quality: query %d, which this one is asked over, has only an estimate", over)
			}
		}
	}
	return results
}
