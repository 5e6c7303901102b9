package aggregate

// Assignments: the best one of all slices, and draws from all of them.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/judge"
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
			if part.About().Finds != "" {
				n++
			}
		}
	}
	return n
}

// reportAssignments fills in the assignments that the parts found, and the draws. Z is not 0.
func (r *estimate) reportAssignments(to *Total, want *btn.Want) *query.ErrorInfo {
	found, searched := r.best()
	for _, ask := range want.Asks() {
		if ask == btn.AskSamples {
			continue
		}
		f := found[ask]
		if f == nil || ask == btn.AskMap && (len(f.Values) != len(want.Map) || f.Weight.IsZero()) {
			return missing(ask, searched[ask])
		}
		if !f.Bounded {
			continue
		}
		if f.Relaxed {
			to.Result.Ended = endedComplete
		} else if to.Result.Ended == "" {
			to.Result.Ended = endedSettled
		}
	}
	to.Found = found
	if want.Samples == 0 {
		return nil
	}

	var drawn []*btn.Drawn
	for _, d := range r.found {
		if d.value.Drawn != nil {
			drawn = append(drawn, d.value.Drawn)
		}
	}
	list, err := mixed(drawn, want.Samples, want.Seed)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if list == nil {
		return missing(btn.AskSamples, nil)
	}
	to.Samples = list
	return nil
}

// best returns the best assignments that the parts found, by kind, and what searches found of each kind. A search counts only if no
// elimination has found the best: it was there for a deadline.
func (r *estimate) best() (found map[btn.Ask]*btn.Found, searched map[btn.Ask][]*btn.Found) {
	found, searched = map[btn.Ask]*btn.Found{}, map[btn.Ask][]*btn.Found{}
	eliminated := map[btn.Ask]bool{}
	for _, d := range r.found {
		if bounded(d.value.Found) {
			searched[d.ask] = append(searched[d.ask], d.value.Found)
			continue
		}
		eliminated[d.ask] = true
		found[d.ask] = found[d.ask].Or(d.value.Found)
	}
	for ask, list := range searched {
		if !eliminated[ask] {
			found[ask] = btn.Searched(list)
		}
	}
	return found, searched
}

// missing says why there is no assignment of a kind.
func missing(ask btn.Ask, searched []*btn.Found) *query.ErrorInfo {
	bound := math.Inf(-1)
	for _, f := range searched {
		bound = max(bound, f.Bound)
	}
	if !math.IsInf(bound, -1) {
		return failure(fault.OverBudget, "%s: no possible assignment was found; none is above %.6g nats", ask, bound)
	}
	return failure(fault.Unsupported,
		"%s: Z is not 0, and no assignment of a weight above 0 was found: its terms are beyond float64", ask)
}

// possible reports whether an assignment was found, which has a weight above 0.
func (r *estimate) possible() bool {
	return slices.ContainsFunc(r.found, func(d descended) bool { return d.value.Found != nil && !d.value.Found.Weight.IsZero() })
}

// atLeast returns ln of the heaviest assignment of an answer, of all variables or of some, −Inf without one. ln Z is no less: where
// assignments are found no term is below 0. A total that is less misses terms: the bound takes its place, and what it was divided by is
// left out.
func (r *estimate) atLeast(t *Total) (lower float64) {
	to := &t.Result
	lower = math.Inf(-1)
	for _, f := range t.Found {
		if f != nil {
			lower = max(lower, f.Weight.LogAbs())
		}
	}
	if to.LogZ == nil || lower <= *to.LogZ+judge.Widening(lower) {
		return lower
	}
	to.Warnings = append(to.Warnings, fmt.Sprintf("the total is below an assignment's weight by %.2g nats, so terms are missing: "+
		"ln Z is given as that weight, without marginals and derivatives", lower-*to.LogZ))
	r.Z = scaled.FromLog(lower)
	to.LogZ, to.Log10Z, to.Exact = finite(r.Z.LogAbs()), finite(r.Z.Log10Abs()), false
	t.Marginals, t.Joint, t.Derivatives, t.TargetDerivatives = nil, nil, nil, nil
	return lower
}

// explained is the total of a demand for the most probable assignment alone, of all variables or of some, if a search has
// proved it, or has found it and values are missing at the deadline. Z is left open, whether its values are there or not: which are is
// chance.
func (in *Input) explained(to Total, parts []part, missing bool) (Total, bool) {
	a := in.Assignment
	e, proved := in.searches(parts)
	if e == nil || !proved && !(missing && in.Deadline) {
		return to, false
	}
	total := to
	if e.reportAssignments(&total, &a.Want) != nil {
		return to, false
	}
	early := &total.Result
	early.Status, early.Components, early.Error = query.StatusOK, 0, nil
	why := btn.ProvedWithoutZ
	if !proved {
		early.Ended = EndedDeadline
		why = "Z is left open: the deadline came before it"
	}
	early.Warnings = append(early.Warnings, why)
	return total, true
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
	a := in.Assignment
	asks := a.Want.Asks()
	if len(asks) != 1 || asks[0] == btn.AskSamples {
		return nil, false
	}
	e, ask := estimate{Estimate: judge.Estimate{Plan: &a.Plan.Estimates[0]}}, asks[0]
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
	return &e, a.Alone && best != nil && !best.Relaxed
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
