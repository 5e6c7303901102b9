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
		if a.to.Conflict = a.total.Conflict; a.to.Conflict == nil || len(a.asked.Query.Do) == 0 {
			return
		}
		told := *a.total.Conflict
		for _, set := range a.asked.Query.Do {
			told.Do = append(told.Do, query.Observed{Variable: set.Var, Value: &set.Value})
		}
		a.to.Conflict = &told
	},
}
