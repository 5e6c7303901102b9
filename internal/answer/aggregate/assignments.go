package aggregate

// Assignments of values to variables: the best one of all slices, and draws from all of them.

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

// finding is the value of a part that finds assignments, with the kind of assignment that it was to find.
type finding struct {
	ask   btn.Ask
	value btn.Value
}

// countFinders returns the number of parts of a plan that find assignments. They have no share of Z.
func countFinders(p *btn.Plan) (n int) {
	for k := range p.Estimates {
		for _, part := range p.Estimates[k].Parts {
			if part.About().Finds != "" {
				n++
			}
		}
	}
	return n
}

// reportAssignments fills in the assignments and the draws that the query wants, from the findings of the estimate. It also fills in how
// searches ended: complete if one has not proved its assignment, settled if all have. It returns an error if an assignment or the draws
// are missing: it is called only if Z is not 0 or not computed, so that there should be one.
func (r *estimate) reportAssignments(total *Total, want *btn.Want) *query.ErrorInfo {
	best, searches := r.bestAssignments()
	for _, ask := range want.Asks() {
		if ask == btn.AskSamples {
			continue // see reportDraws
		}
		assignment := best[ask]
		isFound := assignment != nil && (ask != btn.AskMap || isPossibleMap(assignment, want))
		if !isFound {
			return noAssignmentError(ask, searches[ask])
		}
		isProved := !assignment.Relaxed
		switch {
		case !isFromSearch(assignment):
		case !isProved:
			total.Result.Ended = endedComplete
		case total.Result.Ended == "": // no search before has left its assignment unproved
			total.Result.Ended = endedSettled
		}
	}
	total.Found = best
	if want.Samples == 0 {
		return nil
	}
	return r.reportDraws(total, want)
}

// isPossibleMap reports whether an assignment has a value for each variable of want.Map and a weight above 0.
func isPossibleMap(assignment *btn.Found, want *btn.Want) bool {
	return len(assignment.Values) == len(want.Map) && !assignment.Weight.IsZero()
}

// reportDraws fills in the assignments that were drawn. It returns an error if no part has drawn any.
func (r *estimate) reportDraws(total *Total, want *btn.Want) *query.ErrorInfo {
	var draws []*btn.Drawn
	for _, f := range r.findings {
		if f.value.Drawn != nil {
			draws = append(draws, f.value.Drawn)
		}
	}
	samples, err := mixDraws(draws, want.Samples, want.Seed)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if samples == nil {
		return noAssignmentError(btn.AskSamples, nil)
	}
	total.Samples = samples
	return nil
}

// bestAssignments returns the best assignment of each kind that a query may ask for (btn.Ask, such as the most probable one), and the
// results of all searches by kind. Both are among the findings, the values of the parts that look for assignments. If an elimination has
// looked for a kind, the best assignment is the best one of eliminations, nil if they found none. Searches for that kind then do not count:
// they ran only for the case that the deadline comes first.
func (r *estimate) bestAssignments() (best map[btn.Ask]*btn.Found, searches map[btn.Ask][]*btn.Found) {
	best, searches = map[btn.Ask]*btn.Found{}, map[btn.Ask][]*btn.Found{}
	hasElimination := map[btn.Ask]bool{}
	for _, f := range r.findings {
		if isFromSearch(f.value.Found) {
			searches[f.ask] = append(searches[f.ask], f.value.Found)
			continue
		}
		hasElimination[f.ask] = true
		best[f.ask] = best[f.ask].Better(f.value.Found) // either may be nil, for no possible assignment
	}
	for ask, results := range searches {
		if !hasElimination[ask] {
			best[ask] = btn.BestOfSearches(results)
		}
	}
	return best, searches
}

// noAssignmentError returns the error of a query with Z ≠ 0 for which the searches for an assignment, of the kind that ask says, found
// none. If a search ended with a finite bound on ln of the weight of any assignment, the code is OverBudget. Otherwise the code is
// Unsupported: since Z is not 0, the weights were lost in float64.
func noAssignmentError(ask btn.Ask, searches []*btn.Found) *query.ErrorInfo {
	bound := math.Inf(-1)
	for _, f := range searches {
		bound = max(bound, f.Bound)
	}
	if !math.IsInf(bound, -1) {
		return failure(fault.OverBudget, "%s: no possible assignment was found; none is above %.6g nats", ask, bound)
	}
	return failure(fault.Unsupported,
		"%s: Z is not 0, and no assignment of a weight above 0 was found: its terms are beyond float64", ask)
}

// hasPossibleAssignment reports whether a part has found an assignment with a weight above 0.
func (r *estimate) hasPossibleAssignment() bool {
	return slices.ContainsFunc(r.findings, func(f finding) bool {
		return f.value.Found != nil && !f.value.Found.Weight.IsZero()
	})
}

// lnHeaviestAssignment returns ln of the largest weight among the assignments of a total, −Inf if there are none.
func lnHeaviestAssignment(total *Total) (ln float64) {
	ln = math.Inf(-1)
	for _, assignment := range total.Found {
		if assignment != nil {
			ln = max(ln, assignment.Weight.LogAbs())
		}
	}
	return ln
}

// raiseToWeight sets ln Z to lower and warns, if ln Z is below lower by more than rounding. lower is ln of the weight of an assignment, in
// nats. That weight is a term of Z or a sum of terms, and Z has no terms below 0 if assignments are found. So a smaller Z misses terms.
func (r *estimate) raiseToWeight(lower float64, total *Total) {
	result := &total.Result
	if result.LogZ == nil || lower <= *result.LogZ+judge.RoundingMargin(lower) {
		return
	}
	result.Warnings = append(result.Warnings, fmt.Sprintf("the total is below an assignment's weight by %.2g nats, so terms are missing: "+
		"ln Z is given as that weight, without marginals and derivatives", lower-*result.LogZ))
	r.Z = scaled.FromLog(lower)
	result.LogZ, result.Log10Z, result.Exact = finite(r.Z.LogAbs()), finite(r.Z.Log10Abs()), false
	// These were divided by the Z that misses terms.
	total.Marginals, total.Joint, total.Derivatives, total.TargetDerivatives = nil, nil, nil, nil
}

// answerBySearch answers a demand for one assignment by what searches have found, without Z. total has no answer yet; answer is a copy of
// it with the assignment filled in. isIncomplete states that values of parts are missing. ok is false in three cases:
//
//   - the demand wants anything else, so that there are no searches
//   - the searches found no assignment
//   - no search proved its assignment to be the best, and the query need not end yet: no value is missing, or the deadline has not come.
//
// The answer has no Z, even if values of parts for Z have arrived: it is chance which of them have.
func (in *Input) answerBySearch(total Total, parts []partValue, isIncomplete bool) (answer Total, ok bool) {
	search, isProved := in.searchResult(parts) // nil: the demand wants anything else, or no search has ended
	isLate := isIncomplete && in.IsDeadlineOver
	if search == nil || !isProved && !isLate {
		return total, false
	}
	answer = total
	if failed := search.reportAssignments(&answer, &in.Assignment.Want); failed != nil {
		return total, false
	}
	result := &answer.Result
	// Remove what total states of an estimate of Z and of the error of missing values.
	result.Status, result.Components, result.Error = query.StatusOK, 0, nil
	warning := btn.ProvedWithoutZ
	if !isProved {
		result.Ended = EndedDeadline
		warning = "Z is left open: the deadline came before it"
	}
	result.Warnings = append(result.Warnings, warning)
	return answer, true
}

// isProvedBySearch reports whether the query wants only an assignment, and a search has proved it.
func (in *Input) isProvedBySearch() bool {
	parts, broken := collect(in.Query, in.Assignment.Plan.PartCount(), sortedUnits(in.Values))
	_, isProved := in.searchResult(parts)
	return isProved && broken == nil
}

// searchResult returns an estimate whose findings are those of all searches. It returns nil if the query wants draws or several kinds of
// assignments, or if no search has ended. isProved reports whether no Z is needed: the best assignment is proved, which means that no other
// may be better (not Relaxed), and the query wants nothing else (Alone).
func (in *Input) searchResult(parts []partValue) (result *estimate, isProved bool) {
	if parts == nil {
		return nil, false
	}
	a := in.Assignment
	asks := a.Want.Asks()
	wantsOneKind := len(asks) == 1 && asks[0] != btn.AskSamples
	if !wantsOneKind {
		return nil, false
	}
	result = &estimate{Estimate: judge.Estimate{Plan: &a.Plan.Estimates[0]}}
	var assignments []*btn.Found
	for _, p := range parts {
		if p.hasArrived && p.err == nil && isFromSearch(p.value.Found) {
			result.findings = append(result.findings, finding{asks[0], p.value})
			assignments = append(assignments, p.value.Found)
		}
	}
	if assignments == nil {
		return nil, false
	}
	best := btn.BestOfSearches(assignments)
	isBestProved := best != nil && !best.Relaxed
	return result, isBestProved && a.Alone
}

// mixDraws returns n assignments. Each part of the plan has drawn n assignments, which its Values list one after the other, with a value
// for each variable. Assignment k of the result is assignment k of one of the parts, which is chosen at random with a probability
// proportional to its weight. The random number depends only on k and seed. It returns nil if parts is empty, and an error if the parts
// have drawn different numbers of assignments.
func mixDraws(parts []*btn.Drawn, n int, seed uint64) ([][]int, error) {
	if len(parts) == 0 {
		return nil, nil
	}
	var total scaled.Number
	cumulative := make([]scaled.Number, len(parts)) // cumulative[i] is the sum of the weights of parts 0 … i
	for i, d := range parts {
		isComplete := len(d.Values)%n == 0 && len(d.Values) == len(parts[0].Values)
		if !isComplete || d.Weight.Sign() <= 0 {
			return nil, fmt.Errorf("draws %d have %d values for %d assignments", i, len(d.Values), n)
		}
		total = total.Add(d.Weight)
		cumulative[i] = total
	}

	variables := len(parts[0].Values) / n
	samples := make([][]int, n)
	for k := range samples {
		chosen := 0
		if len(parts) > 1 {
			random := rand.New(rand.NewPCG(seed, math.MaxUint64-uint64(k))).Float64() // a stream of its own for each k
			u := scaled.FromFloat(random).Mul(total)
			for chosen < len(parts)-1 && cumulative[chosen].Cmp(u) <= 0 {
				chosen++
			}
		}
		samples[k] = parts[chosen].Values[k*variables:][:variables]
	}
	return samples, nil
}
