// Package assignments finds assignments of values: the most probable one, of all variables or of some, and samples. It adds parts that find
// them to an exact plan for Z. A search insures an elimination that may miss the deadline, and replaces one that does not fit. Samples have
// weights if the exact way does not fit.
package assignments

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A search insures eliminations for Z and for the most probable assignment that may miss a deadline, since they take more than
// proposal.InsuredShare of the budget. It may take insuranceRatio of their work, and at most insuranceShare of the budget. A query for Z
// alone is insured by belief propagation.
// Chosen.
const (
	insuranceRatio = 1.0 / 2
	insuranceShare = 1.0 / 4
)

// pilotFlops is the work of an elimination for the most probable assignment above which a short search comes before it; from that on a
// tree is searched for. pilotRatio is the largest ratio of the flops of the search to those of the elimination. Measured on 20 dense
// models of 25 variables with 8 values: eliminations for it and for Z take 6 ns a flop, a step of the search takes a quarter of
// SearchFlops, so that the search takes a quarter of the time of what it may save.
const (
	pilotFlops = 1e7
	pilotRatio = 16.0
)

// Propose proposes a plan that finds the assignments of values that are asked for: the exact plan for Z (ask.Exact), with further parts
// that find them. Samples may also be weighted: if the exact plan is over the budget, or if the method of the request draws weighted
// samples or excludes exact answers. The most probable assignments are found only by exact methods, and it returns an error for any other
// method.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	m := j.Method
	asksForWeights := m != nil && m.DrawsWeightedSamples || j.IsAuto() && j.Settings.NoExact
	switch {
	case mayWeigh(ask) && asksForWeights:
		return proposeWeighted(ctx, j, ask)
	case m != nil && !m.IsExact():
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map, samples) are found exactly only (samples by method sampled, too), not by method %s", m.Name)
	case j.Settings.NoExact:
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map) are found exactly only, and the exact way is switched off")
	}
	assignment, err := proposeExact(ctx, j, ask)
	isOverBudget := fault.CodeOf(err) == fault.OverBudget && ctx.Err() == nil
	if isOverBudget && j.IsAuto() && mayWeigh(ask) {
		return proposeWeighted(ctx, j, ask)
	}
	return assignment, err
}

// mayWeigh reports whether weighted samples answer all that is wanted: samples and, in addition to them, at most Z and marginals.
func mayWeigh(ask proposal.Ask) bool {
	return ask.Samples > 0 && ask.Best == 0 && len(ask.Map) == 0 && len(ask.Joint) == 0 && !ask.IsParametric()
}

// proposeWeighted proposes weighted samples. If the evidence leaves nothing to draw (ProposeStates returns nil), it proposes exact samples.
// Under a deadline it also runs belief propagation: if that ends in several states, the assignment reports them, since weighted samples
// may reach only one of them.
func proposeWeighted(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	assignment, err := sampled.ProposeStates(ctx, j, ask)
	if assignment != nil && err == nil && proposal.HasDeadline(ctx) {
		err = regions.ReportPhases(ctx, j, assignment)
	}
	if assignment != nil || err != nil {
		return assignment, err
	}
	return proposeExact(ctx, j, ask)
}

// proposeExact proposes a plan that finds the assignments exactly. A short search comes first. If it proves the most probable assignment
// and nothing else is wanted, the plan is that search, without Z. Otherwise the plan is that of the exact way for Z, with further parts
// for each kind of assignment: parts along the plan for Z if its method has them (proposal.Finder), or an elimination (planElimination).
// If the exact way is over the budget, a search alone is proposed.
func proposeExact(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	// A short search.
	solution, err := pilot(ctx, j, ask)
	if err != nil {
		return nil, err
	}
	if isProved := solution != nil && !solution.Found.Relaxed; isProved { // Relaxed: there may be a better assignment
		return proposeSearch(ctx, j, ask, solution, btn.ProvedWithoutZ)
	}

	// Z by the exact way.
	assignment, err := ask.Exact(ctx, ask)
	isOverBudget := fault.CodeOf(err) == fault.OverBudget && ctx.Err() == nil
	if isOverBudget && j.IsAuto() && ask.WantsOnlyBest() {
		return proposeSearch(ctx, j, ask, solution, "Z is left open, the exact way does not fit: "+err.Error())
	}
	if err != nil {
		return nil, err
	}

	assignment = preferDrawing(ctx, j, ask, assignment)

	// Parts for each kind of assignment.
	total := &assignment.Plan.Estimates[0] // of Z
	joined := newJoinedEstimate(assignment)
	isSlow := joined.cost.Flops > proposal.InsuredShare*j.Settings.Budget // Z is not waited for if a search proves its assignment
	for _, kind := range ask.Asks() {
		isInsured, cacheState, err := joined.addKind(ctx, j, ask, kind, total, solution)
		if err != nil {
			return nil, err
		}
		isSlow = isSlow || isInsured
		if cacheState == btn.CacheMiss {
			assignment.Cache = cacheState
		}
	}

	if solution != nil && proposal.HasDeadline(ctx) {
		joined.prepend([]btn.Part{solution.Part()})
	}
	joined.finish(assignment)
	// Alone: as soon as a search has proved its assignment, that is the answer, and nothing waits for Z.
	assignment.Alone = isSlow && ask.WantsOnlyBest() && !ask.Marginals
	return assignment, nil
}

// preferDrawing returns the proposal for Z that comes with samples. That is the given one, unless it draws none and an elimination that
// draws them takes long: then a later way may do both. If none does, it returns the given proposal.
func preferDrawing(ctx context.Context, j *proposal.Job, ask proposal.Ask, assignment *btn.Assignment) *btn.Assignment {
	if ask.Samples > 0 && !drawsSamples(ctx, j, assignment) && isDrawingHeavy(ctx, j) {
		ask.Accepts = func(a *btn.Assignment) bool { return drawsSamples(ctx, j, a) } // of this copy of ask
		if drawing, _ := ask.Exact(ctx, ask); drawing != nil {                        // after an error the given proposal stands
			return drawing
		}
	}
	return assignment
}

// drawsSamples reports whether samples can be drawn along an exact plan for Z: whether its method has parts for that (proposal.Finder).
func drawsSamples(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) bool {
	parts := assignment.Plan.Estimates[0].Parts
	finder, isFinder := parts[0].(proposal.Finder)
	if !isFinder {
		return false
	}
	drawing, err := finder.FindingParts(ctx, j, parts, btn.AskSamples)
	return err == nil && drawing != nil
}

// isDrawingHeavy reports whether an elimination that draws samples takes policy.HeavyFlops or more along the min-fill order.
func isDrawingHeavy(ctx context.Context, j *proposal.Job) bool {
	p, err := descent.PreparedOf(ctx, j.Problem(), btn.AskSamples, nil)
	if err != nil {
		return false // the elimination will report the error
	}
	_, cost, _, err := contractionorder.MinFillCost(ctx, p.Hypergraph(), policy.HeavyFlops, policy.MostFill)
	return err != nil || cost.Flops >= policy.HeavyFlops // a search that ends at this limit returns it as the cost
}

// joinedEstimate is an exact estimate of Z together with parts that find assignments.
type joinedEstimate struct {
	estimate btn.Estimate
	cost     query.Cost // of all parts under the evidence; without that of Z if that is not known
}

// newJoinedEstimate returns a copy of the estimate of an assignment, without parts that find assignments.
func newJoinedEstimate(assignment *btn.Assignment) *joinedEstimate {
	j := &joinedEstimate{estimate: assignment.Plan.Estimates[0]}
	j.estimate.Parts = slices.Clone(j.estimate.Parts)
	if assignment.Cost != nil {
		j.cost = *assignment.Cost
	}
	return j
}

// append adds parts at the end, without a price.
func (j *joinedEstimate) append(parts []btn.Part) {
	j.estimate.Parts = append(j.estimate.Parts, parts...)
}

// prepend adds parts that are done first. If the estimate has weights (Alpha), which belong to its first parts by position, it adds them at
// the end.
func (j *joinedEstimate) prepend(parts []btn.Part) {
	if j.estimate.Alpha != nil {
		j.append(parts)
		return
	}
	j.estimate.Parts = slices.Concat(parts, j.estimate.Parts)
}

// add adds the parts of an estimate, and its price. Parts that are an answer by themselves (IsInterim) are done first. The price is added
// to that of the plan and to that under the evidence.
func (j *joinedEstimate) add(e *btn.Estimate) {
	if e.Parts[0].About().IsInterim {
		j.prepend(e.Parts)
	} else {
		j.append(e.Parts)
	}
	for _, cost := range []*query.Cost{&j.cost, &j.estimate.Cost} {
		cost.Flops += e.Cost.Flops
		cost.Bytes = max(cost.Bytes, e.Cost.Bytes)
	}
}

// addKind adds the parts that find assignments of a kind: parts along the plan of total, the estimate of Z, if its method has them, or
// those of an elimination. isInsured is true if a search comes before the elimination. cacheState is the state of the cache for the
// elimination, or "" if there is none. solution is what a short search has found before, nil if nothing.
func (j *joinedEstimate) addKind(
	ctx context.Context, job *proposal.Job, ask proposal.Ask, kind btn.Ask, total *btn.Estimate, solution *search.Known,
) (isInsured bool, cacheState string, err error) {
	finder, isFinder := total.Parts[0].(proposal.Finder)
	wantsSeveralBest := kind == btn.AskMPE && ask.Best >= 2 // which finders do not have
	if isFinder && !wantsSeveralBest {
		parts, err := finder.FindingParts(ctx, job, total.Parts, kind)
		if err != nil {
			return false, "", err
		}
		if parts != nil { // otherwise the method has no parts for this kind
			j.append(parts)
			return false, "", nil
		}
	}
	plan, cacheState, err := planElimination(ctx, job, ask, kind, solution, j.cost.Flops)
	if err != nil {
		return false, "", err
	}
	estimate := &plan.Estimates[0]
	j.add(estimate)
	isInsured = estimate.Parts[0].About().IsInterim && len(estimate.Parts) > 1 // the first part is a search, before the elimination
	return isInsured, cacheState, nil
}

// finish makes the joined estimate the only one of the plan of an assignment, and sets the assignment's price if it has one. Parts that
// find assignments get the weight 1 if the estimate has weights.
func (j *joinedEstimate) finish(assignment *btn.Assignment) {
	if assignment.Cost != nil {
		assignment.Cost = &j.cost
	}
	if j.estimate.Alpha != nil {
		j.estimate.Alpha = slices.Clone(j.estimate.Alpha)
		for len(j.estimate.Alpha) < len(j.estimate.Parts) {
			j.estimate.Alpha = append(j.estimate.Alpha, scaled.One)
		}
	}
	plan := *assignment.Plan
	plan.Estimates = []btn.Estimate{j.estimate}
	assignment.Plan = &plan
}

// pilot makes a short search for the most probable assignment, and returns what it finds. The result is nil if the job asks for anything
// else, or if an elimination along the min-fill order takes less than pilotFlops. The search may take pilotRatio times the flops of that
// elimination, and at most policy.PilotSearch of the budget.
//
// If there is a deadline, which the elimination may miss, the search is also made if the elimination takes less than pilotFlops but at
// least proposal.InsuredShare of the budget. It may then always take policy.PilotSearch of the budget.
func pilot(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*search.Known, error) {
	wantsOnlyMPE := ask.Best > 0 && ask.WantsOnlyBest() && !ask.Marginals
	if !j.IsAuto() || !wantsOnlyMPE {
		return nil, nil
	}
	p, err := descent.PreparedOf(ctx, j.Problem(), btn.AskMPE, nil)
	if err != nil { // no search: the exact way reports the error, unless the context has ended
		return nil, ctx.Err()
	}
	minFlops, ratio := pilotFlops, pilotRatio // of the elimination, and of the search to it
	if proposal.HasDeadline(ctx) {
		minFlops, ratio = min(minFlops, proposal.InsuredShare*j.Settings.Budget), math.Inf(1)
	}
	priceLimit := max(policy.PilotSearch*j.Settings.Budget/ratio, minFlops) // a larger price would change nothing
	_, cost, _, err := contractionorder.MinFillCost(ctx, p.Hypergraph(), priceLimit, policy.MostFill)
	if err != nil || cost.Flops < minFlops { // no search, even after an error, unless the context has ended
		return nil, ctx.Err()
	}
	share := min(policy.PilotSearch, ratio*cost.Flops/j.Settings.Budget) // of the budget
	solution, err := search.PilotSearch(ctx, j, share, ask.Best)
	if err != nil {
		return nil, ctx.Err()
	}
	return solution, nil
}

// proposeSearch proposes a search for the most probable assignment, without Z. solution is what a short search has found before, nil if
// nothing. If that is proved, no further search is made; it is not proved if it is Relaxed, which says that there may be a better
// assignment. why is a warning of the form "Z is left open …"; the warning about the marginals continues it.
func proposeSearch(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, solution *search.Known, why string,
) (*btn.Assignment, error) {
	var plan *btn.Plan
	cacheState := j.CacheState()
	if isProved := solution != nil && !solution.Found.Relaxed; isProved {
		plan = proposal.ExactPlan(query.Cost{Flops: solution.Flops}) // its only part is added below
	} else {
		var err error
		kind := ask.Asks()[0] // the only one
		if plan, cacheState, err = planSearch(ctx, j, ask, kind, solution, wholeBudget); err != nil {
			return nil, err
		}
	}
	if solution != nil {
		e := &plan.Estimates[0]
		e.Parts = slices.Insert(e.Parts, 0, solution.Part())
	}
	assignment := proposal.NewPricedAssignment(plan, cacheState)
	assignment.Warnings = []string{why}
	if ask.Marginals {
		assignment.Warnings = append(assignment.Warnings, "so are the marginals") // left open, as Z is
	}
	return assignment, nil
}

// wholeBudget is the share of the budget of a search that is not divided with anything else.
const wholeBudget = 1

// planSearch returns the plan of a search that finds assignments of a kind, and the state of the cache for it. The search may take the
// given share of the budget.
func planSearch(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, kind btn.Ask, solution *search.Known, share float64,
) (*btn.Plan, string, error) {
	if kind == btn.AskMap {
		return search.ProposeMap(ctx, j, share, ask.Map)
	}
	return search.Propose(ctx, j, share, solution)
}

// planElimination returns the plan of an elimination that finds assignments of a kind, and the state of the cache for it. zFlops is
// the work of Z, which the whole plan computes as well. solution is what a short search has found. For samples, or if the method is not
// auto, the plan is the elimination, or an error. Otherwise the time left for planning may be spent on the plan of the elimination. Then
//
//   - if the elimination is over the budget, or if it gives only a bound (IsRelaxed), the plan is a search instead
//   - if there is a deadline, and Z and the elimination together take more than proposal.InsuredShare of the budget, the parts of a search
//     come before those of the elimination. The assignment of the search is the answer if the deadline comes first.
func planElimination(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, kind btn.Ask, solution *search.Known, zFlops float64,
) (plan *btn.Plan, cacheState string, err error) {
	if kind == btn.AskSamples || !j.IsAuto() {
		return descent.Propose(ctx, j, kind, ask.Map)
	}

	// An elimination, or a search in its place.
	const allTime = 1 // that is left for planning
	err = proposal.RunInTimeShare(ctx, allTime, "a plan of an elimination", func(ctx context.Context) error {
		plan, cacheState, err = descent.Propose(ctx, j, kind, ask.Map)
		return err
	})
	switch {
	case fault.CodeOf(err) == fault.OverBudget:
		return planSearch(ctx, j, ask, kind, solution, wholeBudget)
	case err != nil:
		return plan, cacheState, err
	case descent.IsRelaxed(plan):
		if searchPlan, searchCacheState, searchErr := planSearch(ctx, j, ask, kind, solution, wholeBudget); searchErr == nil {
			return searchPlan, searchCacheState, nil
		}
		return plan, cacheState, nil // a bound is better than nothing
	}

	// A search before it, if the deadline may come first.
	flops := zFlops + plan.Estimates[0].Cost.Flops
	if !proposal.HasDeadline(ctx) || flops <= proposal.InsuredShare*j.Settings.Budget {
		return plan, cacheState, nil
	}
	searchPlan, _, err := planSearch(ctx, j, ask, kind, solution, min(insuranceRatio*flops/j.Settings.Budget, insuranceShare))
	if err != nil { // the elimination goes on without insurance
		return plan, cacheState, nil
	}
	return withSearchBefore(plan, searchPlan), cacheState, nil
}

// withSearchBefore returns a plan with the parts of a search before its own, and the price of both. It changes a copy, since plan may be
// shared by other queries.
func withSearchBefore(plan, searchPlan *btn.Plan) *btn.Plan {
	e, searching := plan.Estimates[0], &searchPlan.Estimates[0]
	e.Parts = slices.Concat(searching.Parts, e.Parts)
	e.Cost.Flops += searching.Cost.Flops
	e.Cost.Bytes = max(e.Cost.Bytes, searching.Cost.Bytes)
	insured := *plan
	insured.Estimates = []btn.Estimate{e}
	return &insured
}
