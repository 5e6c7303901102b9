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
	answer:   func(a *answer) { a.to.Conflict = a.total.Conflict },
}
