package aggregate

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// What observing a variable would tell about a target, from the queries in which the target is observed at each of its values.

// inform fills in the information that was asked of result r. The results from a.First on are those with the target T at t = 0, 1, …,
// whose marginals are of the candidates C in sequence, and z their values:
//
//	P(t) = Z_t / Σ Z_t,   P(t, c) = P(t) P(c | t),   I(T; C) = Σ P(t, c) ln (P(c | t) / P(c))
//
// With utilities U the gain of C is Σ_c max_a Σ_t P(t, c) U_a(t) − max_a Σ_t P(t) U_a(t). Where one of the queries has no answer there
// is a warning instead.
func inform(r *query.Result, a *btn.Assignment, results []query.Result, z []scaled.Number) {
	if r.Status != query.StatusOK || r.Zero {
		return
	}
	p := scaledShares(z)
	info := &query.Information{Target: a.Ask.Target, Exact: r.Exact}
	for t := range results {
		extra := &results[t]
		if r.Run != nil && extra.Run != nil {
			r.Run.Flops = min(r.Run.Flops+extra.Run.Flops, math.MaxFloat64)
			r.Run.Slices += extra.Run.Slices
		}
		why := ""
		switch {
		case extra.Status != query.StatusOK:
			why = extra.Error.Message
		case p == nil:
			why = "the queries with the target observed have no positive total"
		case !extra.Zero && len(extra.Marginals) != len(a.Ask.Candidates):
			why = "a query with the target observed has no marginals"
		}
		if why != "" {
			r.Warnings = append(r.Warnings, "no information: "+why)
			return
		}
		info.Exact = info.Exact && extra.Exact
	}
	info.Entropy = entropy(p)
	now := 0.0 // what the best action is worth
	if len(a.Ask.Utility) > 0 {
		action, worth := best(a.Ask.Utility, p)
		info.Action, info.ExpectedUtility, now = &action, &worth, worth
	}

	info.Candidates = make([]query.Observable, 0, len(a.Ask.Candidates))
	for i, v := range a.Ask.Candidates {
		o := query.Observable{Variable: v}
		after := 0.0
		joint := make([]float64, len(p)) // P(t, c)
		for c := range valuesOf(results, i) {
			total := 0.0
			for t := range p {
				joint[t] = 0
				if p[t] > 0 {
					joint[t] = p[t] * results[t].Marginals[i][c]
				}
				total += joint[t]
			}
			for t := range p {
				if joint[t] > 0 {
					o.MutualInfo += joint[t] * math.Log(results[t].Marginals[i][c]/total)
				}
			}
			if len(a.Ask.Utility) > 0 {
				_, worth := best(a.Ask.Utility, joint)
				after += worth
			}
		}
		o.MutualInfo = max(0, min(o.MutualInfo, info.Entropy)) // but for rounding it is
		o.ExpectedEntropy = info.Entropy - o.MutualInfo
		if len(a.Ask.Utility) > 0 {
			gain := after - now
			if gain < rounding*largest(a.Ask.Utility) {
				gain = 0
			}
			o.UtilityGain = &gain
		}
		info.Candidates = append(info.Candidates, o)
	}
	slices.SortStableFunc(info.Candidates, func(a, b query.Observable) int {
		if a.UtilityGain != nil && *a.UtilityGain != *b.UtilityGain {
			return cmp.Compare(*b.UtilityGain, *a.UtilityGain)
		}
		return cmp.Or(cmp.Compare(b.MutualInfo, a.MutualInfo), cmp.Compare(a.Variable, b.Variable))
	})
	r.Information = info
}

// valuesOf returns how many values candidate i has, from a result that is possible.
func valuesOf(results []query.Result, i int) int {
	for t := range results {
		if !results[t].Zero {
			return len(results[t].Marginals[i])
		}
	}
	return 0
}

// scaledShares returns z over its sum, nil where that is not above 0.
func scaledShares(z []scaled.Number) []float64 {
	p := make([]float64, len(z))
	if q, wrong := distribution(z, p); q == nil || wrong >= 0 {
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
