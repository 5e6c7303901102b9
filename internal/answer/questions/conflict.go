package questions

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// conflict is which observations contradict each other, if Z is 0.
var conflict = kind{
	name:     "conflict",
	want:     func(q *query.Query, w *btn.Want) { w.Conflict = q.Conflict },
	isOfZero: true,
	answer: func(a *answer) {
		if a.to.Conflict = a.total.Conflict; a.to.Conflict == nil || len(a.asked.Query.Switches) == 0 {
			return
		}
		found := query.Conflict{Smallest: a.total.Conflict.Smallest}
		for _, o := range a.total.Conflict.Observations {
			if o, isOfModel := withoutSwitch(&a.asked.Query, o); isOfModel {
				found.Observations = append(found.Observations, o)
			}
		}
		a.to.Conflict = &found
	},
}

// withoutSwitch returns an observation of a conflict; of a switch it is what the query sets, and false if it sets nothing.
func withoutSwitch(q *query.Query, o query.Observed) (query.Observed, bool) {
	for _, s := range q.Switches {
		if s.Var != o.Variable {
			continue
		}
		for _, set := range q.Do {
			if set.Var == s.Of {
				return query.Observed{Variable: set.Var, Value: &set.Value}, true
			}
		}
		return o, false
	}
	return o, true
}
