package questions

// Questions for assignments of values: the most probable ones, of all variables or of some, and draws.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// explanation is the most probable assignment of all variables, or the best few.
var explanation = kind{
	name: "explanation",
	want: func(q *query.Query, w *btn.Want) {
		if q.MPE {
			w.Best = max(1, q.Best)
		}
	},
	answer: func(a *answer) {
		f := a.total.Found[btn.AskMPE]
		if f == nil || a.total.Want.Best == 0 {
			return
		}
		e := &query.Explanation{Assignment: withoutSwitches(&a.asked.Query, f.Values), LnWeight: f.Weight.LogAbs(), Unique: f.Unique}
		if f.Bounded {
			e.LnBound, e.Gap, e.Optimal = finite(f.Bound), finite(f.Bound-f.Last().LogAbs()), isProved(f)
		}
		if a.total.Want.Best > 1 {
			list := *f
			list.Keep(a.total.Want.Best)
			e.All = list.All
			for _, o := range list.Others {
				e.Others = append(e.Others, query.Alternative{Assignment: withoutSwitches(&a.asked.Query, o.Values), LnWeight: o.Weight.LogAbs()})
			}
		}
		a.to.MPE = e
	},
}

// marginalMAP is the most probable assignment of some variables, the others summed out.
var marginalMAP = kind{
	name: "marginalMAP",
	want: func(q *query.Query, w *btn.Want) { w.Map = q.Map },
	answer: func(a *answer) {
		f := a.total.Found[btn.AskMap]
		if f == nil || len(a.total.Want.Map) == 0 {
			return
		}
		m := &query.MarginalMap{Variables: a.total.Want.Map, Assignment: f.Values, LnWeight: f.Weight.LogAbs(), Exact: !f.Relaxed}
		if f.Relaxed || f.Bounded {
			m.LnBound = finite(f.Bound)
		}
		if f.Bounded {
			m.Gap, m.Optimal = finite(f.Bound-m.LnWeight), isProved(f)
		}
		if f.Upper != 0 {
			m.LnUpper = finite(f.Upper)
		}
		a.to.Map = m
	},
}

// samples are draws from P(x | evidence).
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
		a.to.Samples = &query.Samples{
			Assignments: draws, Weights: a.total.Weights, Effective: a.total.Effective, Seed: a.total.Want.Seed,
		}
	},
}

// isProved reports whether a search has proved its assignment.
func isProved(f *btn.Found) *bool {
	proved := !f.Relaxed
	return &proved
}

// finite returns x, or nil if it is not finite: JSON has no such numbers.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}
