package questions

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// conflict asks which observations contradict each other, if Z is 0. What the query sets is listed with them.
var conflict = kind{
	name:     "conflict",
	want:     func(q *query.Query, w *btn.Want) { w.Conflict = q.Conflict },
	isOfZero: true,
	answer: func(a *answer) {
		if a.result.Conflict = a.total.Conflict; a.result.Conflict == nil || len(a.asked.Query.Do) == 0 {
			return
		}
		c := *a.total.Conflict
		for _, set := range a.asked.Query.Do {
			c.Do = append(c.Do, query.Observed{Variable: set.Var, Value: &set.Value})
		}
		a.result.Conflict = &c
	},
}
