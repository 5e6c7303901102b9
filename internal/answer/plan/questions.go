package plan

// Questions that are answered exactly alone: joint marginals, derivatives, assignments of values.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/families"
	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/families/regions"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/search"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// joint assigns the form in count space where exact would, else the first proposal of families.Heavily, as a rule a contraction
// tree with an index over the cells of the joint marginal. There is no other way to one: methods that are not exact are refused, and
// method auto does not fall back to them.
func (a *assigner) joint(q query.Query) (*btn.Assignment, error) {
	domains := make([]int, len(a.Net.Variables))
	for v := range domains {
		domains[v] = a.Net.Variables[v].Domain
	}
	if err := query.CheckJoint(domains, q.Joint); err != nil {
		return nil, err
	}

	switch m := a.method; {
	case m != nil && !m.Exact():
		code := fault.Unsupported
		if m.Grows {
			code = fault.BadInput
		}
		return nil, fault.New(code, "plan: joint marginals are computed exactly only, not by method %s", m.Name)
	case m != nil:
		return m.Propose(a.Job, proposal.Ask{Joint: q.Joint})
	}

	if found, _ := a.first(proposal.Ask{Joint: q.Joint}); found != nil {
		return found, nil
	}
	assignment, err := proposal.First(a.Job, proposal.Ask{Marginals: q.Marginals, Joint: q.Joint}, families.Heavily...)
	if err != nil {
		return nil, err
	}
	assignment.Joint = q.Joint
	return assignment, nil
}

// gradients assigns an elimination with a pass back to every number of the network, or by method circuit a circuit whose leaves
// they are. There is no other way to them: methods that are not exact are unsupported, and method auto does not fall back to them.
func (a *assigner) gradients(q query.Query) (*btn.Assignment, error) {
	m := a.method
	if m != nil && !m.Exact() {
		return nil, fault.New(fault.Unsupported, "plan: gradients are computed exactly only, not by method %s", m.Name)
	}
	if len(q.Joint) > 0 {
		return nil, fault.New(fault.Unsupported,
			"plan: gradients and a joint marginal are two queries of a job")
	}

	if q.Cases != nil && m != nil {
		return nil, fault.New(fault.Unsupported, "plan: cases are summed up by methods auto and exact only, not by method %s", m.Name)
	}
	if q.Cases != nil {
		return gradients.ProposeCases(a.Job, q.Cases)
	}
	propose := gradients.Propose
	if m != nil {
		propose = m.Parametric
	}
	assignment, err := propose(a.Job, proposal.Ask{Marginals: q.Marginals})
	if err != nil {
		return nil, err
	}
	if q.Sensitivity != nil {
		assignment.Sensitivity = &btn.Sensitivity{Target: *q.Sensitivity, Alone: !q.Gradients, Cores: lower.Numbers(a.Net)}
	}
	return assignment, nil
}

// descents assigns the exact way, and beside its parts those that find the assignments asked for. Samples have weights where that is
// more than the budget and by method sampled; there is no other way to the rest.
func (a *assigner) descents(q query.Query) (*btn.Assignment, error) {
	switch m := a.method; {
	case weighs(q) && (m != nil && m.Weighs || a.Auto() && a.Settings.NoExact):
		return a.weighted(q)
	case m != nil && !m.Exact():
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map, samples) are found exactly only (samples by method sampled, too), not by method %s", m.Name)
	case a.Settings.NoExact:
		return nil, fault.New(fault.Unsupported,
			"plan: assignments (mpe, map) are found exactly only, and the exact way is switched off")
	}

	assignment, err := a.exactDescents(q)
	if err != nil && fault.CodeOf(err) == fault.OverBudget && a.Auto() && weighs(q) && a.Ctx.Err() == nil {
		return a.weighted(q)
	}
	return assignment, err
}

// weighs reports whether what a query asks for may be answered by weighted samples: samples, and beside them Z and marginals alone.
func weighs(q query.Query) bool {
	return q.Samples > 0 && !q.MPE && len(q.Map) == 0 && len(q.Joint) == 0 && !btn.Parametric(q)
}

// weighted assigns weighted samples, exact ones where nothing is left to draw for.
func (a *assigner) weighted(q query.Query) (*btn.Assignment, error) {
	assignment, err := sampled.ProposeStates(a.Job, q)
	if assignment != nil && err == nil && proposal.Timed(a.Ctx) {
		err = regions.Witness(a.Job, assignment)
	}
	if assignment != nil || err != nil {
		return assignment, err
	}
	return a.exactDescents(q)
}

// exactDescents is descents by exact methods.
func (a *assigner) exactDescents(q query.Query) (*btn.Assignment, error) {
	solution, err := a.pilot(q)
	if err != nil {
		return nil, err
	}
	if solution != nil && !solution.Found.Relaxed {
		return a.searched(q, solution, btn.ProvedWithoutZ)
	}
	var assignment *btn.Assignment
	if len(q.Joint) > 0 || btn.Parametric(q) || a.method != nil && a.method.Exact() {
		assignment, err = a.total(q)
	} else {
		assignment, err = a.cautioned(a.exactInTime(q))
	}
	if err != nil && fault.CodeOf(err) == fault.OverBudget && a.Auto() && explains(q) && a.Ctx.Err() == nil {
		return a.searched(q, solution, "Z is left open, the exact way does not fit: "+err.Error())
	}
	if err != nil {
		return nil, err
	}

	plan := *assignment.Plan
	e := plan.Estimates[0]
	e.Parts = slices.Clone(e.Parts)
	var cost btn.Cost
	if assignment.Cost != nil {
		cost = *assignment.Cost
	}
	heavy := cost.Flops > policy.InsuredShare*a.Settings.Budget // to be left out behind a search that has proved its assignment
	for _, ask := range asks(q) {
		if finder, ok := assignment.Plan.Estimates[0].Parts[0].(proposal.Finder); ok && (ask != btn.AskMPE || q.Best < 2) {
			parts, err := finder.Finding(a.Job, assignment.Plan.Estimates[0].Parts, ask)
			if err != nil {
				return nil, err
			}
			if parts != nil {
				e.Parts = append(e.Parts, parts...)
				continue
			}
		}
		descent, hit, err := a.descent(ask, q, solution, cost.Flops)
		if err != nil {
			return nil, err
		}
		estimate := &descent.Estimates[0]
		heavy = heavy || btn.IsInterim(estimate.Parts[0]) && len(estimate.Parts) > 1
		if e.Alpha == nil && btn.IsInterim(estimate.Parts[0]) { // it is done first
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
	if solution != nil && a.begins(q) {
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
	assignment.Descents = &btn.Descents{
		MPE: q.MPE, Best: q.Best, Map: q.Map, Samples: q.Samples, Seed: q.Seed, Alone: heavy && explains(q) && !q.Marginals,
	}
	return assignment, nil
}

// pilot makes a short search for the most probable assignment, and returns what it finds. The result is nil if the job asks for anything
// else, or if an elimination along the min-fill order takes at most policy.PilotFlops. The search may take policy.PilotRatio times the work
// of that elimination. If there is a deadline, which the elimination may miss, or the search is divided into cubes, it is made from
// policy.InsuredShare of the budget on, and takes its share of the budget.
func (a *assigner) pilot(q query.Query) (*search.Known, error) {
	if !a.Auto() || !q.MPE || !explains(q) || q.Marginals {
		return nil, nil
	}
	p, err := descent.Of(a.Ctx, a.Problem(), btn.AskMPE, nil)
	if err != nil {
		return nil, a.Ctx.Err()
	}
	share, least, ratio := policy.PilotSearch, policy.PilotFlops, policy.PilotRatio
	if a.cubes(q) > 1 {
		share = policy.CubesPilot
	}
	if a.begins(q) {
		least, ratio = min(least, policy.InsuredShare*a.Settings.Budget), math.Inf(1)
	}
	_, cost, _, err := contractionorder.MinFillCost(a.Ctx, p.Hypergraph(), max(share*a.Settings.Budget/ratio, least), policy.MostFill)
	if err != nil || cost.Flops < least {
		return nil, a.Ctx.Err()
	}
	solution, err := search.Try(a.Job, min(share, ratio*cost.Flops/a.Settings.Budget), q.Best)
	if err != nil {
		return nil, a.Ctx.Err()
	}
	return solution, nil
}

// begins reports whether other parts begin with what a short search has found, proved or not.
func (a *assigner) begins(q query.Query) bool { return proposal.Timed(a.Ctx) || a.cubes(q) > 1 }

// cubes is the number of cubes that a search for the most probable assignment is to be divided into.
func (a *assigner) cubes(q query.Query) int {
	if q.Best > 1 {
		return 0
	}
	return a.Settings.Components
}

// explains reports whether a query asks for the most probable assignment, of all variables or of some, and for nothing else that a search
// leaves open.
func explains(q query.Query) bool {
	return q.MPE != (len(q.Map) > 0) && q.Samples == 0 && len(q.Joint) == 0 && !btn.Parametric(q)
}

// searched assigns a search for the most probable assignment, after the solution of a short search. If that solution is proved, no
// further search is made. Z is left open, and why is the reason.
func (a *assigner) searched(q query.Query, solution *search.Known, why string) (*btn.Assignment, error) {
	var plan *btn.Plan
	hit := a.CacheState()
	if solution != nil && !solution.Found.Relaxed {
		plan = proposal.Exact(btn.Cost{Flops: solution.Flops})
	} else {
		var err error
		if plan, hit, err = a.searching(asks(q)[0], q, solution)(1); err != nil {
			return nil, err
		}
	}
	if solution != nil {
		e := &plan.Estimates[0]
		e.Parts = slices.Insert(e.Parts, 0, solution.Part())
	}
	assignment := proposal.Priced(plan, hit)
	assignment.Descents = &btn.Descents{MPE: q.MPE, Best: q.Best, Map: q.Map}
	assignment.Warnings = []string{why}
	if q.Marginals {
		assignment.Warnings = append(assignment.Warnings, "so are the marginals")
	}
	return assignment, nil
}

// searching proposes a search that answers a question with a share of the budget; in cubes where it is all there is.
func (a *assigner) searching(ask btn.Ask, q query.Query, solution *search.Known) func(share float64) (*btn.Plan, string, error) {
	if ask == btn.AskMap {
		return func(share float64) (*btn.Plan, string, error) { return search.ProposeMap(a.Job, share, q.Map) }
	}
	return func(share float64) (*btn.Plan, string, error) {
		cubes := 0
		if share == 1 {
			cubes = a.cubes(q)
		}
		return search.Propose(a.Job, share, cubes, solution)
	}
}

// descent proposes an elimination that finds assignments, beside Z in so many flops. By method auto it is insured, and looked for until the
// end of the time for planning.
func (a *assigner) descent(ask btn.Ask, q query.Query, solution *search.Known, flops float64) (plan *btn.Plan, hit string, err error) {
	if ask == btn.AskSamples || !a.Auto() {
		return descent.Propose(a.Job, ask, q.Map)
	}
	err = a.Within(1, "a plan of an elimination", func() error {
		plan, hit, err = descent.Propose(a.Job, ask, q.Map)
		return err
	})
	return a.insured(plan, hit, err, flops, a.searching(ask, q, solution))
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
	case err != nil || !proposal.Timed(a.Ctx) || flops+plan.Estimates[0].Cost.Flops <= policy.InsuredShare*a.Settings.Budget:
		return plan, hit, err
	}
	share := policy.InsuranceRatio * (flops + plan.Estimates[0].Cost.Flops) / a.Settings.Budget
	other, _, err := propose(min(share, policy.InsuranceShare))
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

// asks lists the questions for assignments of a query.
func asks(q query.Query) (list []btn.Ask) {
	if q.MPE {
		list = append(list, btn.AskMPE)
	}
	if len(q.Map) > 0 {
		list = append(list, btn.AskMap)
	}
	if q.Samples > 0 {
		list = append(list, btn.AskSamples)
	}
	return list
}
