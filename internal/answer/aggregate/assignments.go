package aggregate

// Assignments: the best one of all slices, and draws from all of them.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// descended is what a part found for a question.
type descended struct {
	ask   btn.Ask
	value btn.Value
}

// descents counts the parts of a plan that have no share of Z.
func descents(p *btn.Plan) (n int) {
	for k := range p.Estimates {
		for _, part := range p.Estimates[k].Parts {
			if btn.AskOf(part) != "" {
				n++
			}
		}
	}
	return n
}

// reportAssignments fills in what the parts found and drew. Z is not 0.
func (r *estimate) reportAssignments(to *query.Result, asked *btn.Descents) *query.ErrorInfo {
	found := map[btn.Ask]*btn.Found{}
	var drawn []*btn.Drawn
	searched := map[btn.Ask][]*btn.Found{}
	exact := map[btn.Ask]bool{}
	for _, d := range r.found {
		if bounded(d.value.Found) {
			searched[d.ask] = append(searched[d.ask], d.value.Found)
			continue
		}
		exact[d.ask] = true // a search was there for a deadline
		found[d.ask] = found[d.ask].Or(d.value.Found)
		if d.value.Drawn != nil {
			drawn = append(drawn, d.value.Drawn)
		}
	}
	for ask, list := range searched {
		if !exact[ask] {
			found[ask] = btn.Searched(list)
		}
	}
	if asked == nil {
		return nil
	}

	missing := func(what string) *query.ErrorInfo {
		bound := math.Inf(-1)
		for _, f := range searched[btn.Ask(what)] {
			bound = max(bound, f.Bound)
		}
		if !math.IsInf(bound, -1) {
			return failure(fault.OverBudget, "%s: no possible assignment was found; none is above %.6g nats", what, bound)
		}
		return failure(fault.Unsupported,
			"%s: Z is not 0, and no assignment of a weight above 0 was found: its terms are beyond float64", what)
	}
	proof := func(f *btn.Found) (optimal *bool) {
		optimal = new(bool)
		if *optimal = !f.Relaxed; f.Relaxed {
			to.Ended = endedComplete
		} else if to.Ended == "" {
			to.Ended = endedSettled
		}
		return optimal
	}
	if asked.MPE {
		f := found[btn.AskMPE]
		if f == nil {
			return missing("mpe")
		}
		to.MPE = &query.Explanation{Assignment: f.Values, LnWeight: f.Weight.LogAbs(), Unique: f.Unique}
		if f.Bounded {
			to.MPE.LnBound, to.MPE.Gap, to.MPE.Optimal = finite(f.Bound), finite(f.Bound-f.Last().LogAbs()), proof(f)
		}
		if asked.Best > 1 {
			list := *f
			list.Keep(asked.Best)
			to.MPE.All = list.All
			for _, o := range list.Others {
				to.MPE.Others = append(to.MPE.Others, query.Alternative{Assignment: o.Values, LnWeight: o.Weight.LogAbs()})
			}
		}
	}
	if len(asked.Map) > 0 {
		f := found[btn.AskMap]
		if f == nil || len(f.Values) != len(asked.Map) || f.Weight.IsZero() {
			return missing("map")
		}
		to.Map = &query.MarginalMap{
			Variables:  asked.Map,
			Assignment: f.Values,
			LnWeight:   f.Weight.LogAbs(),
			Exact:      !f.Relaxed,
		}
		if f.Relaxed || f.Bounded {
			to.Map.LnBound = finite(f.Bound)
		}
		if f.Bounded {
			to.Map.Gap, to.Map.Optimal = finite(f.Bound-to.Map.LnWeight), proof(f)
		}
		if f.Upper != 0 {
			to.Map.LnUpper = finite(f.Upper)
		}
	}
	if asked.Samples > 0 {
		list, err := mixed(drawn, asked.Samples, asked.Seed)
		if err != nil {
			return failure(fault.Internal, "%v", err)
		}
		if list == nil {
			return missing("samples")
		}
		to.Samples, to.Seed = list, &asked.Seed
	}
	return nil
}

// possible reports whether an assignment was found, which has a weight above 0.
func (r *estimate) possible() bool {
	return slices.ContainsFunc(r.found, func(d descended) bool { return d.value.Found != nil && !d.value.Found.Weight.IsZero() })
}

// atLeast returns ln of the heaviest assignment of an answer, of all variables or of some, −Inf without one. ln Z is no less: where
// assignments are found no term is below 0. A total that is less misses terms: the bound takes its place, and what it was divided by is
// left out.
func (r *estimate) atLeast(to *query.Result) (lower float64) {
	lower = math.Inf(-1)
	if to.MPE != nil {
		lower = to.MPE.LnWeight
	}
	if to.Map != nil {
		lower = max(lower, to.Map.LnWeight)
	}
	if to.LogZ == nil || lower <= *to.LogZ+wide(lower) {
		return lower
	}
	to.Warnings = append(to.Warnings, fmt.Sprintf("the total is below an assignment's weight by %.2g nats, so terms are missing: "+
		"ln Z is given as that weight, without marginals and derivatives", lower-*to.LogZ))
	r.z = scaled.FromLog(lower)
	to.LogZ, to.Log10Z, to.Exact = finite(r.z.LogAbs()), finite(r.z.Log10Abs()), false
	to.Marginals, to.Targets, to.Joint, to.Gradients, to.ScaledGradients, to.Sensitivity = nil, nil, nil, nil, nil, nil
	return lower
}

// explained is the answer of a query that asks for the most probable assignment alone, of all variables or of some, where a search has
// proved it, or has found it where values are missing at the deadline. Z is left open, whether its values are there or not: which are is
// chance.
func (in *Input) explained(to query.Result, parts []part, missing bool) (query.Result, bool) {
	a := in.Assignment
	e, proved := in.searches(parts)
	if e == nil || !proved && !(missing && in.Deadline) {
		return to, false
	}
	early := to
	if e.reportAssignments(&early, a.Descents) != nil {
		return to, false
	}
	early.Status, early.Components, early.Error = query.StatusOK, 0, nil
	why := btn.ProvedWithoutZ
	if !proved {
		early.Ended = EndedDeadline
		why = "Z is left open: the deadline came before it"
	}
	early.Warnings = append(early.Warnings, why)
	return early, true
}

// proved reports whether the searches that have ended are the answer of a query that asks for their assignment alone.
func (in *Input) proved() bool {
	parts, broken := collect(in.Query, in.Assignment.Plan.Len(), sortedUnits(in.Values))
	_, proved := in.searches(parts)
	return proved && broken == nil
}

// searches returns the assignments that searches have found for a query that asks for one alone, nil where there are none; proved says that
// the best one is the whole answer in the place of Z.
func (in *Input) searches(parts []part) (found *estimate, proved bool) {
	if parts == nil {
		return nil, false
	}
	a, d := in.Assignment, in.Assignment.Descents
	if d == nil || d.MPE == (len(d.Map) > 0) || d.Samples > 0 {
		return nil, false
	}
	e := estimate{of: &a.Plan.Estimates[0]}
	ask := btn.AskMPE
	if len(d.Map) > 0 {
		ask = btn.AskMap
	}
	var list []*btn.Found
	for _, p := range parts {
		if p.there && p.err == nil && bounded(p.value.Found) {
			e.found = append(e.found, descended{ask, p.value})
			list = append(list, p.value.Found)
		}
	}
	if list == nil {
		return nil, false
	}
	best := btn.Searched(list)
	return &e, d.Alone && best != nil && !best.Relaxed
}

// mixed takes each of n assignments from the draws of one of several parts, chosen with a stream of
// its own by their weights; nil where all are 0.
func mixed(parts []*btn.Drawn, n int, seed uint64) ([][]int, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	var total scaled.Number
	ups := make([]scaled.Number, len(parts))
	for i, d := range parts {
		if len(d.Values)%n != 0 || len(d.Values) != len(parts[0].Values) || d.Weight.Sign() <= 0 {
			return nil, fmt.Errorf("draws %d have %d values for %d assignments", i, len(d.Values), n)
		}
		total = total.Add(d.Weight)
		ups[i] = total
	}

	width := len(parts[0].Values) / n
	list := make([][]int, n)
	for k := range list {
		of := 0
		if len(parts) > 1 {
			u := scaled.FromFloat(rand.New(rand.NewPCG(seed, math.MaxUint64-uint64(k))).Float64()).Mul(total)
			for of < len(parts)-1 && ups[of].Cmp(u) <= 0 {
				of++
			}
		}
		list[k] = parts[of].Values[k*width:][:width]
	}
	return list, nil
}
