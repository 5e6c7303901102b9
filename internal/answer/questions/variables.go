package questions

// Questions about the distribution of variables: marginals and joint marginals.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// marginals are P(x_v = a | evidence) of every variable, or of some.
var marginals = kind{
	want: func(q *query.Query, w *btn.Want) {
		w.Marginals, w.Targets = q.Marginals || len(q.Targets) > 0, q.Targets
	},
	answer: func(a *answer) {
		if a.total.Marginals != nil {
			a.to.Marginals, a.to.MarginalUncertainty, a.to.Targets = a.total.Marginals, a.total.MarginalUncertainty, a.total.Want.Targets
		}
	},
}

// joint is P(x_v, v in a set | evidence).
var joint = kind{
	want: func(q *query.Query, w *btn.Want) { w.Joint = q.Joint },
	answer: func(a *answer) {
		if a.total.Joint != nil {
			a.to.Joint = &query.Joint{Variables: a.total.Want.Joint, Shape: a.total.Shape, P: a.total.Joint}
		}
	},
}
