package plan

// Questions that are answered exactly alone: joint marginals, derivatives, assignments of values.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// joint assigns the form in count space where exact would, else the first proposal of methods.Heavily, as a rule a contraction
// tree with an index over the cells of the joint marginal. There is no other way to one: methods that are not exact are refused, and
// method auto does not fall back to them.
func (a *assigner) joint(d btn.Demand) (*btn.Assignment, error) {
	switch m := a.method; {
	case m != nil && !m.Exact():
		code := fault.Unsupported
		if m.Grows {
			code = fault.BadInput
		}
		return nil, fault.New(code, "plan: joint marginals are computed exactly only, not by method %s", m.Name)
	case m != nil:
		return m.Propose(a.Job, proposal.Ask{Joint: d.Joint})
	}

	if found, _ := a.first(proposal.Ask{Joint: d.Joint}); found != nil {
		return found, nil
	}
	assignment, err := proposal.First(a.Job, proposal.Ask{Marginals: d.Marginals, Joint: d.Joint}, methods.Heavily...)
	if err != nil {
		return nil, err
	}
	return assignment, nil
}

// gradients assigns an elimination with a pass back to every number of the network, or by method circuit a circuit whose leaves
// they are. There is no other way to them: methods that are not exact are unsupported, and method auto does not fall back to them.
func (a *assigner) gradients(d btn.Demand) (*btn.Assignment, error) {
	m := a.method
	if m != nil && !m.Exact() {
		return nil, fault.New(fault.Unsupported, "plan: gradients are computed exactly only, not by method %s", m.Name)
	}
	if len(d.Joint) > 0 {
		return nil, fault.New(fault.Unsupported,
			"plan: gradients and a joint marginal are two queries of a job")
	}

	if d.Cases != nil && m != nil {
		return nil, fault.New(fault.Unsupported, "plan: cases are summed up by methods auto and exact only, not by method %s", m.Name)
	}
	if d.Cases != nil {
		return gradients.ProposeCases(a.Job, d.Cases)
	}
	propose := gradients.Propose
	if m != nil {
		propose = m.Parametric
	}
	assignment, err := propose(a.Job, proposal.Ask{Marginals: d.Marginals})
	if err != nil {
		return nil, err
	}
	if d.Target != nil {
		assignment.Numbers = lower.Numbers(a.Net)
	}
	return assignment, nil
}

// descents assigns the exact way, and beside its parts those that find the assignments asked for. Samples have weights where that is
// more than the budget and by method sampled; there is no other way to the rest.
func (a *assigner) descents(d btn.Demand) (*btn.Assignment, error) {
	switch m := a.method; {
	case weighs(d) && (m != nil && m.Weighs || a.Auto() && a.Settings.NoExact):
		return a.weighted(d)
	case m != nil && !m.Exact():
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map, samples) are found exactly only (samples by method sampled, too), not by method %s", m.Name)
	case a.Settings.NoExact:
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map) are found exactly only, and the exact way is switched off")
	}

	assignment, err := a.exactDescents(d)
	if err != nil && fault.CodeOf(err) == fault.OverBudget && a.Auto() && weighs(d) && a.Ctx.Err() == nil {
		return a.weighted(d)
	}
	return assignment, err
}

// weighs reports whether what a query asks for may be answered by weighted samples: samples, and beside them Z and marginals alone.
func weighs(d btn.Demand) bool {
	return d.Samples > 0 && d.Best == 0 && len(d.Map) == 0 && len(d.Joint) == 0 && !d.IsParametric()
}

// weighted assigns weighted samples, exact ones where nothing is left to draw for.
func (a *assigner) weighted(d btn.Demand) (*btn.Assignment, error) {
	assignment, err := sampled.ProposeStates(a.Job, d)
	if assignment != nil && err == nil && proposal.Timed(a.Ctx) {
		err = regions.Witness(a.Job, assignment)
	}
	if assignment != nil || err != nil {
		return assignment, err
	}
	return a.exactDescents(d)
}

// insuredShare is the part of the budget of a job with a deadline from which the eliminations for Z and for the most probable assignment
// have a search before them, with insuranceRatio of their work and at most insuranceShare of the budget; Z alone has belief propagation.
// Chosen.
const (
	insuredShare   = 1.0 / 32
	insuranceRatio = 1.0 / 2
	insuranceShare = 1.0 / 4
)

// exactDescents is descents by exact methods.
func (a *assigner) exactDescents(d btn.Demand) (*btn.Assignment, error) {
	solution, err := a.pilot(d)
	if err != nil {
		return nil, err
	}
	if solution != nil && !solution.Found.Relaxed {
		return a.searched(d, solution, btn.ProvedWithoutZ)
	}
	var assignment *btn.Assignment
	if len(d.Joint) > 0 || d.IsParametric() || a.method != nil && a.method.Exact() {
		assignment, err = a.total(d)
	} else {
		assignment, err = a.cautioned(a.exactInTime(d))
	}
	if err != nil && fault.CodeOf(err) == fault.OverBudget && a.Auto() && d.Explains() && a.Ctx.Err() == nil {
		return a.searched(d, solution, "Z is left open, the exact way does not fit: "+err.Error())
	}
	if err != nil {
		return nil, err
	}

	plan := *assignment.Plan
	e := plan.Estimates[0]
	e.Parts = slices.Clone(e.Parts)
	var cost query.Cost
	if assignment.Cost != nil {
		cost = *assignment.Cost
	}
	heavy := cost.Flops > insuredShare*a.Settings.Budget // to be left out behind a search that has proved its assignment
	for _, ask := range d.Asks() {
		if finder, ok := assignment.Plan.Estimates[0].Parts[0].(proposal.Finder); ok && (ask != btn.AskMPE || d.Best < 2) {
			parts, err := finder.Finding(a.Job, assignment.Plan.Estimates[0].Parts, ask)
			if err != nil {
				return nil, err
			}
			if parts != nil {
				e.Parts = append(e.Parts, parts...)
				continue
			}
		}
		descent, hit, err := a.descent(ask, d, solution, cost.Flops)
		if err != nil {
			return nil, err
		}
		estimate := &descent.Estimates[0]
		heavy = heavy || estimate.Parts[0].About().IsInterim && len(estimate.Parts) > 1
		if e.Alpha == nil && estimate.Parts[0].About().IsInterim { // it is done first
			e.Parts = slices.Concat(estimate.Parts, e.Parts)
		} else {
			e.Parts = append(e.Parts, estimate.Parts...)
		}
		cost.Flops += estimate.Cost.Flops
		cost.Bytes = max(cost.Bytes, estimate.Cost.Bytes)
		e.Cost.Flops += estimate.Cost.Flops
		e.Cost.Bytes = max(e.Cost.Bytes, estimate.Cost.Bytes)
		if hit == btn.CacheMiss {
			assignment.Cache = hit
		}
	}
	if solution != nil && proposal.Timed(a.Ctx) {
		place := 0
		if e.Alpha != nil {
			place = len(e.Parts)
		}
		e.Parts = slices.Insert(e.Parts, place, solution.Part())
	}
	if assignment.Cost != nil {
		assignment.Cost = &cost
	}
	if e.Alpha != nil {
		e.Alpha = slices.Clone(e.Alpha)
		for len(e.Alpha) < len(e.Parts) {
			e.Alpha = append(e.Alpha, scaled.One)
		}
	}
	plan.Estimates = []btn.Estimate{e}
	assignment.Plan = &plan
	assignment.Alone = heavy && d.Explains() && !d.Marginals
	return assignment, nil
}

// pilotFlops is the work of an elimination for the most probable assignment above which a search comes before it: that for which a tree
// is searched for, see descentFlops. pilotRatio is what the search may take for a flop of the elimination.
// Measured on 20 dense models of 25 variables with 8 values: eliminations for it and for Z take 6 ns a flop, a step of the search takes
// a quarter of SearchFlops, so that the search takes a quarter of the time of what it may save.
const (
	pilotFlops = 1e7
	pilotRatio = 16.0
)

// pilot makes a short search for the most probable assignment, and returns what it finds. The result is nil if the job asks for anything
// else, or if an elimination along the min-fill order takes at most pilotFlops. The search may take pilotRatio times the
// work of that elimination. If there is a deadline, which the elimination may miss, it is made from insuredShare of the budget on,
// and takes its share of the budget.
func (a *assigner) pilot(d btn.Demand) (*search.Known, error) {
	if !a.Auto() || d.Best == 0 || !d.Explains() || d.Marginals {
		return nil, nil
	}
	p, err := descent.Of(a.Ctx, a.Problem(), btn.AskMPE, nil)
	if err != nil {
		return nil, a.Ctx.Err()
	}
	share, least, ratio := policy.PilotSearch, pilotFlops, pilotRatio
	if proposal.Timed(a.Ctx) {
		least, ratio = min(least, insuredShare*a.Settings.Budget), math.Inf(1)
	}
	_, cost, _, err := contractionorder.MinFillCost(a.Ctx, p.Hypergraph(), max(share*a.Settings.Budget/ratio, least), policy.MostFill)
	if err != nil || cost.Flops < least {
		return nil, a.Ctx.Err()
	}
	solution, err := search.Try(a.Job, min(share, ratio*cost.Flops/a.Settings.Budget), d.Best)
	if err != nil {
		return nil, a.Ctx.Err()
	}
	return solution, nil
}

// searched assigns a search for the most probable assignment, after the solution of a short search. If that solution is proved, no
// further search is made. Z is left open, and why is the reason.
func (a *assigner) searched(d btn.Demand, solution *search.Known, why string) (*btn.Assignment, error) {
	var plan *btn.Plan
	hit := a.CacheState()
	if solution != nil && !solution.Found.Relaxed {
		plan = proposal.Exact(query.Cost{Flops: solution.Flops})
	} else {
		var err error
		if plan, hit, err = a.searching(d.Asks()[0], d, solution)(1); err != nil {
			return nil, err
		}
	}
	if solution != nil {
		e := &plan.Estimates[0]
		e.Parts = slices.Insert(e.Parts, 0, solution.Part())
	}
	assignment := proposal.Priced(plan, hit)
	assignment.Warnings = []string{why}
	if d.Marginals {
		assignment.Warnings = append(assignment.Warnings, "so are the marginals")
	}
	return assignment, nil
}

// searching proposes a search that answers a question with a share of the budget.
func (a *assigner) searching(ask btn.Ask, d btn.Demand, solution *search.Known) func(share float64) (*btn.Plan, string, error) {
	if ask == btn.AskMap {
		return func(share float64) (*btn.Plan, string, error) { return search.ProposeMap(a.Job, share, d.Map) }
	}
	return func(share float64) (*btn.Plan, string, error) { return search.Propose(a.Job, share, solution) }
}

// descent proposes an elimination that finds assignments, beside Z in so many flops. By method auto it is insured, and looked for until
// the end of the time for planning.
func (a *assigner) descent(ask btn.Ask, d btn.Demand, solution *search.Known, flops float64) (plan *btn.Plan, hit string, err error) {
	if ask == btn.AskSamples || !a.Auto() {
		return descent.Propose(a.Job, ask, d.Map)
	}
	err = a.Within(1, "a plan of an elimination", func(j *proposal.Job) error {
		plan, hit, err = descent.Propose(j, ask, d.Map)
		return err
	})
	return a.insured(plan, hit, err, flops, a.searching(ask, d, solution))
}

// insured adds a search to a plan for a most probable assignment that may not be done by the deadline, with Z in so many flops, and takes
// one where there is no plan within the budget, or one that bounds alone.
func (a *assigner) insured(
	plan *btn.Plan, hit string, err error, flops float64, propose func(share float64) (*btn.Plan, string, error),
) (*btn.Plan, string, error) {
	switch {
	case fault.CodeOf(err) == fault.OverBudget:
		return propose(1)
	case err == nil && descent.Relaxed(plan):
		if other, state, refused := propose(1); refused == nil {
			return other, state, nil
		}
		return plan, hit, nil
	case err != nil || !proposal.Timed(a.Ctx) || flops+plan.Estimates[0].Cost.Flops <= insuredShare*a.Settings.Budget:
		return plan, hit, err
	}
	share := insuranceRatio * (flops + plan.Estimates[0].Cost.Flops) / a.Settings.Budget
	other, _, err := propose(min(share, insuranceShare))
	if err != nil {
		return plan, hit, nil
	}
	e, estimate := plan.Estimates[0], &other.Estimates[0]
	e.Parts = slices.Concat(estimate.Parts, e.Parts)
	e.Cost.Flops += estimate.Cost.Flops
	e.Cost.Bytes = max(e.Cost.Bytes, estimate.Cost.Bytes)
	combined := *plan
	combined.Estimates = []btn.Estimate{e}
	return &combined, hit, nil
}
