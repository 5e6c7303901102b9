package questions

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// What observing a variable would tell about a target, from the demands in which the target is observed at each of its values.

// information is the value of observing each candidate C for a target T. Of the demands with T at t = 0, 1, …, which have the marginals of
// the candidates in sequence, Z_t are the values:
//
//	P(t) = Z_t / Σ Z_t,   P(t, c) = P(t) P(c | t),   I(T; C) = Σ P(t, c) ln (P(c | t) / P(c))
//
// With utilities U the gain of C is Σ_c max_a Σ_t P(t, c) U_a(t) − max_a Σ_t P(t) U_a(t). If one of the demands has no total there
// is a warning instead.
var information = kind{
	name: "information",
	demands: func(domains []int, q *query.Query) iter.Seq[btn.Demand] {
		return func(yield func(btn.Demand) bool) {
			ask := q.Information
			if ask == nil || ask.Target < 0 || ask.Target >= len(domains) {
				return
			}
			candidates := ask.Of(domains, evidenceOf(q))
			want := btn.Want{Marginals: len(candidates) > 0, Targets: candidates}
			for x := range domains[ask.Target] {
				if !yield(btn.Demand{Evidence: observe(evidenceOf(q), ask.Target, x), Want: want}) {
					return
				}
			}
		}
	},
	answer: inform,
}

// observe returns evidence with one more observation, of a variable that is not observed.
func observe(e factorgraph.Evidence, v, x int) factorgraph.Evidence {
	place, _ := slices.BinarySearchFunc(e.Hard, v, func(o factorgraph.Observation, v int) int { return o.Var - v })
	return factorgraph.Evidence{
		Hard: slices.Insert(slices.Clone(e.Hard), place, factorgraph.Observation{Var: v, Value: x}),
		Soft: e.Soft,
	}
}

// inform writes the information that a query asks for.
func inform(a *answer) {
	ask, r := a.asked.Query.Information, a.to
	if ask == nil {
		return
	}
	z := make([]scaled.Number, len(a.extra))
	for t := range a.extra {
		z[t] = a.extra[t].Z
	}
	p := shares(z)
	var candidates []int
	if len(a.extra) > 0 {
		candidates = a.extra[0].Want.Targets
	}
	info := &query.Information{Target: ask.Target, Exact: r.Exact}
	for t := range a.extra {
		extra := &a.extra[t]
		if r.Run != nil && extra.Result.Run != nil {
			r.Run.Flops = min(r.Run.Flops+extra.Result.Run.Flops, math.MaxFloat64)
			r.Run.Slices += extra.Result.Run.Slices
		}
		why := ""
		switch {
		case extra.Result.Status != query.StatusOK:
			why = extra.Result.Error.Message
		case p == nil:
			why = "the queries with the target observed have no positive total"
		case !extra.Result.Zero && len(extra.Marginals) != len(candidates):
			why = "a query with the target observed has no marginals"
		}
		if why != "" {
			a.warn("no information: " + why)
			return
		}
		info.Exact = info.Exact && extra.Result.Exact
	}
	info.Entropy = entropy(p)
	now := 0.0 // what the best action is worth
	if len(ask.Utility) > 0 {
		action, worth := best(ask.Utility, p)
		info.Action, info.ExpectedUtility, now = &action, &worth, worth
	}

	info.Candidates = make([]query.Observable, 0, len(candidates))
	for i, v := range candidates {
		o := query.Observable{Variable: v}
		after := 0.0
		joint := make([]float64, len(p)) // P(t, c)
		for c := range valuesOf(a.extra, i) {
			total := 0.0
			for t := range p {
				joint[t] = 0
				if p[t] > 0 {
					joint[t] = p[t] * a.extra[t].Marginals[i][c]
				}
				total += joint[t]
			}
			for t := range p {
				if joint[t] > 0 {
					o.MutualInfo += joint[t] * math.Log(a.extra[t].Marginals[i][c]/total)
				}
			}
			if len(ask.Utility) > 0 {
				_, worth := best(ask.Utility, joint)
				after += worth
			}
		}
		o.MutualInfo = max(0, min(o.MutualInfo, info.Entropy)) // but for rounding it is
		o.ExpectedEntropy = info.Entropy - o.MutualInfo
		if len(ask.Utility) > 0 {
			gain := after - now
			if gain < gainRounding*largest(ask.Utility) {
				gain = 0
			}
			o.UtilityGain = &gain
		}
		info.Candidates = append(info.Candidates, o)
	}
	slices.SortStableFunc(info.Candidates, func(x, y query.Observable) int {
		if x.UtilityGain != nil && *x.UtilityGain != *y.UtilityGain {
			return cmp.Compare(*y.UtilityGain, *x.UtilityGain)
		}
		return cmp.Or(cmp.Compare(y.MutualInfo, x.MutualInfo), cmp.Compare(x.Variable, y.Variable))
	})
	r.Information = info
}

// gainRounding is the relative rounding of a sum of utilities.
const gainRounding = 1e-13

// valuesOf returns how many values candidate i has, from a total that is possible.
func valuesOf(totals []aggregate.Total, i int) int {
	for t := range totals {
		if !totals[t].Result.Zero {
			return len(totals[t].Marginals[i])
		}
	}
	return 0
}

// shares returns z over its sum; nil if that is not above 0.
func shares(z []scaled.Number) []float64 {
	p := make([]float64, len(z))
	if q, wrong := additive.Distribution(z, p); q == nil || wrong >= 0 {
		return nil
	}
	return p
}

// largest is the largest absolute value of utilities.
func largest(utility [][]float64) (most float64) {
	for _, row := range utility {
		for _, u := range row {
			most = max(most, math.Abs(u))
		}
	}
	return most
}

// entropy is −Σ p ln p in nats.
func entropy(p []float64) (h float64) {
	for _, x := range p {
		if x > 0 {
			h -= x * math.Log(x)
		}
	}
	return max(0, h)
}

// best returns the first action of the largest expected utility under weights of the target's values.
func best(utility [][]float64, p []float64) (action int, worth float64) {
	worth = math.Inf(-1)
	for k, row := range utility {
		sum := 0.0
		for t, u := range row {
			sum += p[t] * u
		}
		if sum > worth {
			action, worth = k, sum
		}
	}
	return action, worth
}
