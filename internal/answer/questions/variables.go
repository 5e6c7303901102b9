package questions

// Questions about the distribution of variables: marginals and joint marginals.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// marginals are P(x_v = a | evidence) of every variable, or of some.
var marginals = kind{
	name: "marginals",
	want: func(q *query.Query, w *btn.Want) {
		w.Marginals, w.Targets = q.Marginals || len(q.Targets) > 0, q.Targets
	},
	answer: func(a *answer) {
		if a.total.Marginals == nil {
			return
		}
		a.to.MarginalUncertainty = a.total.MarginalUncertainty
		a.to.Marginals = make([]query.Posterior, len(a.total.Marginals))
		for i, p := range a.total.Marginals {
			v := i
			if targets := a.total.Want.Targets; len(targets) > 0 {
				v = targets[i]
			}
			a.to.Marginals[i] = query.Posterior{Variable: v, P: p}
		}
	},
}

// joint is P(x_v, v in a set | evidence).
var joint = kind{
	name: "joint",
	want: func(q *query.Query, w *btn.Want) { w.Joint = q.Joint },
	answer: func(a *answer) {
		if a.total.Joint != nil {
			a.to.Joint = &query.Joint{Variables: a.total.Want.Joint, Shape: a.total.Shape, P: a.total.Joint}
		}
	},
}
