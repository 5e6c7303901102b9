package questions

// Questions about the distribution of variables: marginals and joint marginals.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// marginals asks for P(x_v = a | evidence) of every variable v, or of some.
var marginals = kind{
	name: "marginals",
	want: func(q *query.Query, w *btn.Want) {
		if len(q.Believe) > 0 {
			return // the kind belief asks for them in its further demands
		}
		w.Marginals, w.Targets = q.Marginals || len(q.Targets) > 0, q.Targets
	},
	answer: func(a *answer) {
		if a.total.Marginals == nil {
			return
		}
		a.result.MarginalUncertainty = a.total.MarginalUncertainty
		a.result.Marginals = posteriorsOf(a.total.Marginals, a.total.Want.Targets)
	},
}

// posteriorsOf returns the probabilities of each row with the variable that they belong to: rows[i] belongs to targets[i], or to variable i
// if there are no targets. It returns nil if there are no rows.
func posteriorsOf(rows [][]float64, targets []int) []query.Posterior {
	if rows == nil {
		return nil
	}
	posteriors := make([]query.Posterior, len(rows))
	for i, p := range rows {
		v := i
		if len(targets) > 0 {
			v = targets[i]
		}
		posteriors[i] = query.Posterior{Variable: v, P: p}
	}
	return posteriors
}

// joint asks for P(x_v, v in a set | evidence).
var joint = kind{
	name: "joint",
	want: func(q *query.Query, w *btn.Want) {
		if len(q.Believe) == 0 {
			w.Joint = q.Joint
		}
	},
	answer: func(a *answer) {
		if a.total.Joint != nil {
			a.result.Joint = &query.Joint{Variables: a.total.Want.Joint, Shape: a.total.Shape, P: a.total.Joint}
		}
	},
}
