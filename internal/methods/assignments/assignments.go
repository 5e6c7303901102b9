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

// A search insures eliminations for Z and for the most probable assignment that take more than proposal.InsuredShare of the budget. It may
// take insuranceRatio of their work, and at most insuranceShare of the budget. Z alone has belief propagation.
// Chosen.
const (
	insuranceRatio = 1.0 / 2
	insuranceShare = 1.0 / 4
)

// pilotFlops is the work of an elimination for the most probable assignment above which a search comes before it: that from which a tree
// is searched for. pilotRatio is what the search may take for a flop of the elimination.
// Measured on 20 dense models of 25 variables with 8 values: eliminations for it and for Z take 6 ns a flop, a step of the search takes
// a quarter of SearchFlops, so that the search takes a quarter of the time of what it may save.
const (
	pilotFlops = 1e7
	pilotRatio = 16.0
)

// Propose is the proposal of the exact way (ask.Exact) and, beside its parts, of those that find the assignments asked for. Samples have
// weights if the exact way is over the budget, or by a method whose samples have. There is no other way to the rest.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	switch m := j.Method; {
	case mayWeigh(ask) && (m != nil && m.Weighs || j.IsAuto() && j.Settings.NoExact):
		return proposeWeighted(ctx, j, ask)
	case m != nil && !m.IsExact():
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map, samples) are found exactly only (samples by method sampled, too), not by method %s", m.Name)
	case j.Settings.NoExact:
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map) are found exactly only, and the exact way is switched off")
	}
	found, err := proposeExact(ctx, j, ask)
	if fault.CodeOf(err) == fault.OverBudget && j.IsAuto() && mayWeigh(ask) && ctx.Err() == nil {
		return proposeWeighted(ctx, j, ask)
	}
	return found, err
}

// mayWeigh reports whether what is wanted may be answered by weighted samples: samples, and beside them Z and marginals alone.
func mayWeigh(ask proposal.Ask) bool {
	return ask.Samples > 0 && ask.Best == 0 && len(ask.Map) == 0 && len(ask.Joint) == 0 && !ask.IsParametric()
}

// proposeWeighted is the proposal of weighted samples, of exact ones if nothing is left to draw for.
func proposeWeighted(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	found, err := sampled.ProposeStates(ctx, j, ask)
	if found != nil && err == nil && proposal.HasDeadline(ctx) {
		err = regions.Witness(ctx, j, found)
	}
	if found != nil || err != nil {
		return found, err
	}
	return proposeExact(ctx, j, ask)
}

// proposeExact is Propose by exact methods.
func proposeExact(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	solution, err := pilot(ctx, j, ask)
	if err != nil {
		return nil, err
	}
	if solution != nil && !solution.Found.Relaxed {
		return proposeSearch(ctx, j, ask, solution, btn.ProvedWithoutZ)
	}
	found, err := ask.Exact(ctx, ask)
	if fault.CodeOf(err) == fault.OverBudget && j.IsAuto() && ask.Explains() && ctx.Err() == nil {
		return proposeSearch(ctx, j, ask, solution, "Z is left open, the exact way does not fit: "+err.Error())
	}
	if err != nil {
		return nil, err
	}

	total := &found.Plan.Estimates[0]
	join := newJoin(found)
	isSlow := join.cost.Flops > proposal.InsuredShare*j.Settings.Budget // to be left out behind a search that has proved its assignment
	for _, kind := range ask.Asks() {
		if finder, ok := total.Parts[0].(proposal.Finder); ok && (kind != btn.AskMPE || ask.Best < 2) {
			parts, err := finder.Finding(ctx, j, total.Parts, kind)
			if err != nil {
				return nil, err
			}
			if parts != nil {
				join.append(parts)
				continue
			}
		}
		plan, hit, err := eliminate(ctx, j, ask, kind, solution, join.cost.Flops)
		if err != nil {
			return nil, err
		}
		estimate := &plan.Estimates[0]
		isSlow = isSlow || estimate.Parts[0].About().IsInterim && len(estimate.Parts) > 1
		join.add(estimate)
		if hit == btn.CacheMiss {
			found.Cache = hit
		}
	}
	if solution != nil && proposal.HasDeadline(ctx) {
		join.prepend([]btn.Part{solution.Part()})
	}
	join.finish(found)
	found.Alone = isSlow && ask.Explains() && !ask.Marginals
	return found, nil
}

// join puts parts that find assignments beside those of an exact estimate of Z.
type join struct {
	estimate btn.Estimate
	cost     query.Cost // under the evidence; of the estimate if that is not known
}

// newJoin returns the estimate of an assignment, without any such parts.
func newJoin(found *btn.Assignment) *join {
	j := &join{estimate: found.Plan.Estimates[0]}
	j.estimate.Parts = slices.Clone(j.estimate.Parts)
	if found.Cost != nil {
		j.cost = *found.Cost
	}
	return j
}

// append adds parts that cost nothing more.
func (j *join) append(parts []btn.Part) { j.estimate.Parts = append(j.estimate.Parts, parts...) }

// prepend adds parts that are done first. Parts with weights stay in front, because the weights are by position.
func (j *join) prepend(parts []btn.Part) {
	if j.estimate.Alpha != nil {
		j.append(parts)
		return
	}
	j.estimate.Parts = slices.Concat(parts, j.estimate.Parts)
}

// add adds the parts of an estimate, and what they cost. Parts that are an answer by themselves are done first.
func (j *join) add(e *btn.Estimate) {
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

// finish makes the joined estimate the plan of an assignment.
func (j *join) finish(found *btn.Assignment) {
	if found.Cost != nil {
		found.Cost = &j.cost
	}
	if j.estimate.Alpha != nil {
		j.estimate.Alpha = slices.Clone(j.estimate.Alpha)
		for len(j.estimate.Alpha) < len(j.estimate.Parts) {
			j.estimate.Alpha = append(j.estimate.Alpha, scaled.One)
		}
	}
	plan := *found.Plan
	plan.Estimates = []btn.Estimate{j.estimate}
	found.Plan = &plan
}

// pilot makes a short search for the most probable assignment, and returns what it finds. The result is nil if the job asks for anything
// else, or if an elimination along the min-fill order takes at most pilotFlops. The search may take pilotRatio times the
// work of that elimination. If there is a deadline, which the elimination may miss, it is made from proposal.InsuredShare of the budget on,
// and takes its share of the budget.
func pilot(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*search.Known, error) {
	if !j.IsAuto() || ask.Best == 0 || !ask.Explains() || ask.Marginals {
		return nil, nil
	}
	p, err := descent.Of(ctx, j.Problem(), btn.AskMPE, nil)
	if err != nil {
		return nil, ctx.Err()
	}
	share, least, ratio := policy.PilotSearch, pilotFlops, pilotRatio
	if proposal.HasDeadline(ctx) {
		least, ratio = min(least, proposal.InsuredShare*j.Settings.Budget), math.Inf(1)
	}
	limit := max(share*j.Settings.Budget/ratio, least)
	_, cost, _, err := contractionorder.MinFillCost(ctx, p.Hypergraph(), limit, policy.MostFill)
	if err != nil || cost.Flops < least {
		return nil, ctx.Err()
	}
	solution, err := search.Try(ctx, j, min(share, ratio*cost.Flops/j.Settings.Budget), ask.Best)
	if err != nil {
		return nil, ctx.Err()
	}
	return solution, nil
}

// proposeSearch is the proposal of a search for the most probable assignment, after the solution of a short search. If that solution is
// proved, no further search is made. Z is left open, and why is the reason.
func proposeSearch(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, solution *search.Known, why string,
) (*btn.Assignment, error) {
	var plan *btn.Plan
	hit := j.CacheState()
	if solution != nil && !solution.Found.Relaxed {
		plan = proposal.Exact(query.Cost{Flops: solution.Flops})
	} else {
		var err error
		if plan, hit, err = searchPlan(ctx, j, ask, ask.Asks()[0], solution, 1); err != nil {
			return nil, err
		}
	}
	if solution != nil {
		e := &plan.Estimates[0]
		e.Parts = slices.Insert(e.Parts, 0, solution.Part())
	}
	found := proposal.Priced(plan, hit)
	found.Warnings = []string{why}
	if ask.Marginals {
		found.Warnings = append(found.Warnings, "so are the marginals")
	}
	return found, nil
}

// searchPlan returns the plan of a search that finds assignments of a kind with a share of the budget.
func searchPlan(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, kind btn.Ask, solution *search.Known, share float64,
) (*btn.Plan, string, error) {
	if kind == btn.AskMap {
		return search.ProposeMap(ctx, j, share, ask.Map)
	}
	return search.Propose(ctx, j, share, solution)
}

// eliminate returns the plan of an elimination that finds assignments of a kind, beside Z, which takes zFlops. By method auto it is looked
// for until the end of the time for planning, and a search insures it:
//
//   - a search takes its place if it is over the budget, or only gives a bound;
//   - a search is done before it if there is a deadline, and Z and it take more than proposal.InsuredShare of the budget.
func eliminate(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, kind btn.Ask, solution *search.Known, zFlops float64,
) (plan *btn.Plan, hit string, err error) {
	if kind == btn.AskSamples || !j.IsAuto() {
		return descent.Propose(ctx, j, kind, ask.Map)
	}
	err = proposal.Within(ctx, 1, "a plan of an elimination", func(ctx context.Context) error {
		plan, hit, err = descent.Propose(ctx, j, kind, ask.Map)
		return err
	})
	switch {
	case fault.CodeOf(err) == fault.OverBudget:
		return searchPlan(ctx, j, ask, kind, solution, 1)
	case err != nil:
		return plan, hit, err
	case descent.Relaxed(plan):
		if other, state, refused := searchPlan(ctx, j, ask, kind, solution, 1); refused == nil {
			return other, state, nil
		}
		return plan, hit, nil
	}
	flops := zFlops + plan.Estimates[0].Cost.Flops
	if !proposal.HasDeadline(ctx) || flops <= proposal.InsuredShare*j.Settings.Budget {
		return plan, hit, nil
	}
	first, _, err := searchPlan(ctx, j, ask, kind, solution, min(insuranceRatio*flops/j.Settings.Budget, insuranceShare))
	if err != nil {
		return plan, hit, nil
	}
	e, before := plan.Estimates[0], &first.Estimates[0]
	e.Parts = slices.Concat(before.Parts, e.Parts)
	e.Cost.Flops += before.Cost.Flops
	e.Cost.Bytes = max(e.Cost.Bytes, before.Cost.Bytes)
	insured := *plan
	insured.Estimates = []btn.Estimate{e}
	return &insured, hit, nil
}
