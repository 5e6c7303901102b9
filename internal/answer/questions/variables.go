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
		if len(q.Believe) > 0 {
			return // belief has demands of its own
		}
		w.Marginals, w.Targets = q.Marginals || len(q.Targets) > 0, q.Targets
	},
	answer: func(a *answer) {
		if a.total.Marginals == nil {
			return
		}
		a.to.MarginalUncertainty = a.total.MarginalUncertainty
		a.to.Marginals = posteriorsOf(a.total.Marginals, a.total.Want.Targets)
	},
}

// posteriorsOf returns probabilities with the variables that they are of: those of targets, and of all variables without any.
func posteriorsOf(rows [][]float64, targets []int) []query.Posterior {
	if rows == nil {
		return nil
	}
	all := make([]query.Posterior, len(rows))
	for i, p := range rows {
		v := i
		if len(targets) > 0 {
			v = targets[i]
		}
		all[i] = query.Posterior{Variable: v, P: p}
	}
	return all
}

// joint is P(x_v, v in a set | evidence).
var joint = kind{
	name: "joint",
	want: func(q *query.Query, w *btn.Want) {
		if len(q.Believe) == 0 {
			w.Joint = q.Joint
		}
	},
	answer: func(a *answer) {
		if a.total.Joint != nil {
			a.to.Joint = &query.Joint{Variables: a.total.Want.Joint, Shape: a.total.Shape, P: a.total.Joint}
		}
	},
}
