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
	name: func(r *query.Result, n query.Names, named *query.Named) bool {
		if r.Marginals == nil {
			return false
		}
		named.Posteriors = make(map[string]map[string]float64, len(r.Marginals))
		for i, row := range r.Marginals {
			v := r.MarginalOf(i)
			posterior := make(map[string]float64, len(row))
			for x, p := range row {
				posterior[n.Value(v, x)] = p
			}
			named.Posteriors[n.Variable(v)] = posterior
		}
		return true
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
	name: func(r *query.Result, n query.Names, named *query.Named) bool {
		if r.Joint == nil {
			return false
		}
		named.Joint = &query.NamedJoint{Variables: []string{}, States: [][]string{}}
		for k, v := range r.Joint.Variables {
			values := make([]string, r.Joint.Shape[k])
			for x := range values {
				values[x] = n.Value(v, x)
			}
			named.Joint.Variables, named.Joint.States = append(named.Joint.Variables, n.Variable(v)), append(named.Joint.States, values)
		}
		return true
	},
}
