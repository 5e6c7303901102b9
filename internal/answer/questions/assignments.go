package questions

// Questions for assignments of values: the most probable ones, of all variables or of some, and draws.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// explanation asks for the most probable assignment of all variables, or for the best few.
var explanation = kind{
	name: "explanation",
	want: func(q *query.Query, w *btn.Want) {
		if q.MPE {
			w.Best = max(1, q.Best)
		}
	},
	answer: func(a *answer) {
		best := a.total.Found[btn.AskMPE]
		if best == nil || a.total.Want.Best == 0 {
			return
		}
		q := &a.asked.Query
		e := &query.Explanation{Assignment: withoutSwitches(q, best.Values), LnWeight: best.Weight.LogAbs(), Unique: best.Unique}
		if isFromSearch := best.Bounded; isFromSearch {
			e.LnBound, e.Gap, e.Optimal = finite(best.Bound), finite(best.Bound-best.LastWeight().LogAbs()), isProved(best)
		}
		if a.total.Want.Best > 1 {
			list := *best
			list.Shorten(a.total.Want.Best)
			e.All = list.All
			for _, other := range list.Others {
				e.Others = append(e.Others, query.Alternative{
					Assignment: withoutSwitches(q, other.Values), LnWeight: other.Weight.LogAbs(),
				})
			}
		}
		a.result.MPE = e
	},
}

// marginalMAP asks for the most probable assignment of some variables, the other variables summed out.
var marginalMAP = kind{
	name: "marginalMAP",
	want: func(q *query.Query, w *btn.Want) { w.Map = q.Map },
	answer: func(a *answer) {
		best := a.total.Found[btn.AskMap]
		if best == nil || len(a.total.Want.Map) == 0 {
			return
		}
		m := &query.MarginalMap{
			Variables: a.total.Want.Map, Assignment: best.Values, LnWeight: best.Weight.LogAbs(), Exact: !best.Relaxed,
		}
		if best.Relaxed || best.Bounded {
			m.LnBound = finite(best.Bound)
		}
		if best.Bounded {
			m.Gap, m.Optimal = finite(best.Bound-m.LnWeight), isProved(best)
		}
		if best.Upper != 0 {
			m.LnUpper = finite(best.Upper)
		}
		a.result.Map = m
	},
}

// samples asks for assignments drawn from P(x | evidence).
var samples = kind{
	name: "samples",
	want: func(q *query.Query, w *btn.Want) { w.Samples, w.Seed = q.Samples, q.Seed },
	answer: func(a *answer) {
		if a.total.Samples == nil {
			return
		}
		draws := make([][]int, len(a.total.Samples))
		for k, values := range a.total.Samples {
			draws[k] = withoutSwitches(&a.asked.Query, values)
		}
		a.result.Samples = &query.Samples{
			Assignments: draws, Weights: a.total.Weights, Effective: a.total.Effective, Seed: a.total.Want.Seed,
		}
	},
}

// isProved returns a pointer to true if a search has proved its assignment, and to false otherwise, for a field that may be nil.
func isProved(f *btn.Found) *bool {
	proved := !f.Relaxed
	return &proved
}

// finite returns a pointer to x, or nil if x is NaN or ±Inf, which JSON cannot hold.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
