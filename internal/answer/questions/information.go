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

// information asks what observing each candidate variable C would tell about a target T. A further demand observes T at each of its values
// t = 0, 1, …, and wants the marginals of the candidates. Let Z_t be the value of demand t. Then
//
//	P(t) = Z_t / Σ Z_t,   P(t, c) = P(t) P(c | t),   I(T; C) = Σ P(t, c) ln (P(c | t) / P(c))
//
// With utilities U_a(t) of actions a the gain of C is Σ_c max_a Σ_t P(t, c) U_a(t) − max_a Σ_t P(t) U_a(t). If one of the demands has no
// total, there is a warning instead of an answer.
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
	answer: answerInformation,
}

// observe returns a copy of the evidence e with one more observation, v = x. Observations stay sorted by variable. v is not observed in e.
func observe(e factorgraph.Evidence, v, x int) factorgraph.Evidence {
	position, _ := slices.BinarySearchFunc(e.Hard, v, func(o factorgraph.Observation, v int) int { return o.Var - v })
	return factorgraph.Evidence{
		Hard: slices.Insert(slices.Clone(e.Hard), position, factorgraph.Observation{Var: v, Value: x}),
		Soft: e.Soft,
	}
}

// answerInformation writes the information that a query asks for: how much the observation of each candidate would tell about a target. The
// candidates are sorted by descending usefulness (compareUsefulness). It writes a warning if a further demand has no total. It does nothing
// if the query does not ask for information. a.kindTotals[t] is the total with the target observed at its value t.
func answerInformation(a *answer) {
	ask := a.asked.Query.Information
	if ask == nil {
		return
	}
	z := make([]scaled.Number, len(a.kindTotals))
	for t := range a.kindTotals {
		z[t] = a.kindTotals[t].Z
	}
	p := distribution(z) // P(t), or nil
	var candidates []int
	if len(a.kindTotals) > 0 {
		candidates = a.kindTotals[0].Want.Targets // their marginals are what these demands want
	}
	isExact, why := a.addTargetTotals(p != nil, len(candidates))
	if why != "" {
		a.warn("no information: " + why)
		return
	}

	// What is known without an observation.
	info := &query.Information{Target: ask.Target, Exact: isExact, Entropy: entropy(p)}
	utilityNow := 0.0 // the expected utility of the best action without an observation
	if len(ask.Utility) > 0 {
		action, expected := bestAction(ask.Utility, p)
		info.Action, info.ExpectedUtility, utilityNow = &action, &expected, expected
	}

	// What the observation of each candidate adds.
	info.Candidates = make([]query.Observable, 0, len(candidates))
	for i, v := range candidates {
		mutual, utilityAfter := valueOfCandidate(a.kindTotals, p, i, ask.Utility)
		o := query.Observable{Variable: v}
		o.MutualInfo = max(0, min(mutual, info.Entropy)) // only rounding can put it outside of these limits
		o.ExpectedEntropy = info.Entropy - o.MutualInfo
		if len(ask.Utility) > 0 {
			gain := utilityAfter - utilityNow
			if gain < gainRounding*largestUtility(ask.Utility) { // a gain within rounding is none, also one below 0
				gain = 0
			}
			o.UtilityGain = &gain
		}
		info.Candidates = append(info.Candidates, o)
	}
	slices.SortStableFunc(info.Candidates, compareUsefulness)
	a.result.Information = info
}

// compareUsefulness orders candidates by descending gain of utility, if there are utilities, then by descending mutual information, then by
// variable.
func compareUsefulness(x, y query.Observable) int {
	if x.UtilityGain != nil && *x.UtilityGain != *y.UtilityGain {
		return cmp.Compare(*y.UtilityGain, *x.UtilityGain)
	}
	return cmp.Or(cmp.Compare(y.MutualInfo, x.MutualInfo), cmp.Compare(x.Variable, y.Variable))
}

// addTargetTotals adds the work of the demands with the target observed, whose totals are a.kindTotals, to that of the result, and checks
// these totals. hasDistribution states whether their sum is above 0, and candidates is the number of marginals that each must have.
// isExact reports whether the result and all totals are exact. If a total cannot be used, it stops there and why is the reason in words;
// otherwise why is "".
func (a *answer) addTargetTotals(hasDistribution bool, candidates int) (isExact bool, why string) {
	r := a.result
	isExact = r.Exact
	for t := range a.kindTotals {
		total := &a.kindTotals[t]
		if r.Run != nil && total.Result.Run != nil {
			r.Run.Flops = min(r.Run.Flops+total.Result.Run.Flops, math.MaxFloat64)
			r.Run.Slices += total.Result.Run.Slices
		}
		// Why the totals give no answer. If Z is 0 with the target value, the total has no marginals and needs none.
		switch {
		case total.Result.Status != query.StatusOK:
			return false, total.Result.Error.Message
		case !hasDistribution:
			return false, "the queries with the target observed have no positive total"
		case !total.Result.Zero && len(total.Marginals) != candidates:
			return false, "a query with the target observed has no marginals"
		}
		isExact = isExact && total.Result.Exact
	}
	return isExact, ""
}

// valueOfCandidate returns the mutual information of the target and candidate i in nats, and the expected utility of the best action after
// the candidate is observed (0 if there are no utilities). totals[t] is the total with the target at t, p[t] = P(t).
func valueOfCandidate(totals []aggregate.Total, p []float64, i int, utility [][]float64) (mutual, utilityAfter float64) {
	joint := make([]float64, len(p)) // P(t, c) of one value c of the candidate; not divided by P(c), so utilities just add up over c
	for c := range valuesOf(totals, i) {
		sum := 0.0 // P(c)
		for t := range p {
			joint[t] = 0
			if p[t] > 0 {
				joint[t] = p[t] * totals[t].Marginals[i][c]
			}
			sum += joint[t]
		}
		for t := range p {
			if joint[t] > 0 { // P(t, c) ln(P(c | t)/P(c))
				mutual += joint[t] * math.Log(totals[t].Marginals[i][c]/sum)
			}
		}
		if len(utility) > 0 {
			_, expected := bestAction(utility, joint)
			utilityAfter += expected
		}
	}
	return mutual, utilityAfter
}

// gainRounding is the relative rounding of a sum of utilities.
const gainRounding = 1e-13

// valuesOf returns the number of values of candidate i, from the first total that is not 0. It returns 0 if all are 0.
func valuesOf(totals []aggregate.Total, i int) int {
	for t := range totals {
		if !totals[t].Result.Zero {
			return len(totals[t].Marginals[i])
		}
	}
	return 0
}

// distribution returns z divided by its sum. It returns nil if the sum is not above 0, or if a quotient is no probability.
func distribution(z []scaled.Number) []float64 {
	p := make([]float64, len(z))
	if q, wrong := additive.Normalise(z, p); q == nil || wrong >= 0 {
		return nil
	}
	return p
}

// largestUtility returns the largest absolute value of a utility.
func largestUtility(utility [][]float64) (largest float64) {
	for _, row := range utility {
		for _, u := range row {
			largest = max(largest, math.Abs(u))
		}
	}
	return largest
}

// entropy returns −Σ p ln p in nats.
func entropy(p []float64) (h float64) {
	for _, x := range p {
		if x > 0 {
			h -= x * math.Log(x)
		}
	}
	return max(0, h)
}

// bestAction returns the action with the largest Σ_t p[t] utility[action][t], the first one of equals, and that sum. p are weights of the
// values of the target.
func bestAction(utility [][]float64, p []float64) (action int, expected float64) {
	expected = math.Inf(-1)
	for k, row := range utility {
		sum := 0.0
		for t, u := range row {
			sum += p[t] * u
		}
		if sum > expected {
			action, expected = k, sum
		}
	}
	return action, expected
}
