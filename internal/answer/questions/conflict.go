package questions

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// conflict is which observations contradict each other, if Z is 0.
var conflict = kind{
	want:     func(q *query.Query, w *btn.Want) { w.Conflict = q.Conflict },
	isOfZero: true,
	answer:   func(a *answer) { a.to.Conflict = a.total.Conflict },
	name: func(r *query.Result, n query.Names, named *query.Named) bool {
		if r.Conflict == nil {
			return false
		}
		named.Conflict = make(map[string]*string, len(r.Conflict.Observations))
		for _, o := range r.Conflict.Observations {
			var value *string // none of a likelihood
			if o.Value != nil {
				text := n.Value(o.Variable, *o.Value)
				value = &text
			}
			named.Conflict[n.Variable(o.Variable)] = value
		}
		return true
	},
}
