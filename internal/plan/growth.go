package plan

// Approximate answers: truncated legs, or regions where those do not fit.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// approximate assigns the families that grow, those of method auto by what they are worth: see chosen. warnings say why the exact way was
// not taken.
func (a *assigner) approximate(conditioned *btn.Network, q query.Query, warnings []string) (btn.Assignment, error) {
	var assignment btn.Assignment
	var err error
	switch a.Settings.Method {
	case btn.MethodRegions:
		assignment, err = a.regions(conditioned, q)
	case btn.MethodSampled:
		assignment, err = a.sampled(conditioned, q)
	case btn.MethodAuto:
		assignment, err = a.chosen(conditioned, q)
	default:
		assignment, err = a.truncatedLegs(conditioned, q)
	}
	legs := fault.CodeOf(err) == fault.OverBudget && a.Settings.Method != btn.MethodRegions
	if proposal.Timed(a.Ctx) && (legs || err == nil && assignment.Plan.Grows() && !hasRegions(assignment.Plan)) {
		err = a.betheFirst(&assignment, conditioned, err)
	}
	if proposal.Timed(a.Ctx) && err == nil && assignment.Plan != nil && assignment.Plan.Grows() {
		assignment.Plan = a.boundedAtOnce(assignment.Plan)
	}

	assignment.Warnings = append(warnings, assignment.Warnings...)
	if err == nil && a.Settings.NoExact && a.Settings.Method == btn.MethodAuto && assignment.Plan.Grows() {
		cheaper := ""
		err := a.Within(policy.ExactShare, "the price of the exact way", func() (err error) {
			cheaper, err = a.cheaperExactly(q, assignment.Plan)
			return err
		})
		if err != nil && fault.CodeOf(err) != fault.OverBudget {
			return btn.Assignment{}, err
		}
		if cheaper != "" {
			assignment.Warnings = append(assignment.Warnings, cheaper)
		}
	}
	return assignment, err
}

// hasRegions reports whether some estimate of a plan is by regions.
func hasRegions(p *btn.Plan) bool {
	return slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool { return e.Rule == btn.LogLinear })
}

// truncatedLegs assigns the model's own plans, under which evidence enters as masks, or plans for what the
// query's evidence leaves where those are cheaper by far. A network that simplification decides is contracted
// exactly: there is nothing to truncate.
func (a *assigner) truncatedLegs(conditioned *btn.Network, q query.Query) (btn.Assignment, error) {
	own, err := a.prepareTruncated(q.Marginals)
	if err != nil {
		return btn.Assignment{}, err
	}
	if own.Decided() {
		return exact.ProposeTree(a.Job, q.Marginals, own.Expression().Scale.IsZero())
	}

	if err := own.Expression().Fits(); err != nil {
		return btn.Assignment{}, fmt.Errorf("plan: truncated legs: %w", err)
	}
	if n := len(own.Expression().Tables); n > policy.MostTables {
		return btn.Assignment{}, fault.New(fault.OverBudget, "plan: truncated legs are for up to %d tables, %d are left",
			policy.MostTables, n)
	}

	model, err := a.modelPlans(q)
	if q.Evidence.IsEmpty() && !errors.Is(err, truncated.ErrNoMask) {
		return model, err
	}
	if ctxErr := a.Ctx.Err(); ctxErr != nil {
		return model, ctxErr
	}

	why := ""
	if err != nil {
		why = "plans of truncated legs: the model's do not serve: " + err.Error()
	} else if why = a.serves(model, own); why == "" {
		return model, a.Ctx.Err()
	}

	// Of the evidence these plans depend on no more than the shape that it leaves and the variables that its
	// indices are, for slices.
	kind := fmt.Sprint("truncated under evidence, variables ", own.Indices())
	plan, hit, err := a.RememberWhole(a.growthKey(kind, q.Marginals), own.Hypergraph(),
		func(ctx context.Context) (*btn.Plan, bool, error) {
			return truncatedPlan(ctx, own, a.Settings, false, q.Marginals)
		})
	if err != nil {
		return btn.Assignment{}, err
	}
	return btn.Assignment{
		Plan:      plan,
		Cache:     hit,
		LnLinks:   math.Inf(-1),
		Relearned: why,
		Hard:      proposal.Forbids(own.Expression()),
		Unsure:    proposal.BeyondRange(own.Expression()),
	}, nil
}

// prepareTruncated simplifies the network under a query's evidence; where regions are left to answer with,
// for half of the time.
func (a *assigner) prepareTruncated(marginals bool) (own *truncated.Prepared, err error) {
	if a.Settings.Method != btn.MethodAuto {
		return truncated.Of(a.Ctx, a.Problem(), marginals)
	}
	err = a.Within(policy.PrepareShare, "the simplification for truncated legs", func() error {
		own, err = truncated.Of(a.Ctx, a.Problem(), marginals)
		return err
	})
	return own, err
}

// modelPlans assigns the plans that depend on the model alone.
func (a *assigner) modelPlans(q query.Query) (btn.Assignment, error) {
	p, err := truncated.OfBase(a.Ctx, a.Problem())
	if err != nil {
		return btn.Assignment{}, err
	}
	if _, err := p.Mask(q.Evidence); err != nil {
		return btn.Assignment{}, err
	}
	if p.Decided() || p.Expression().Unfit != "" {
		return btn.Assignment{}, truncated.ErrNoMask
	}
	plan, hit, err := a.RememberWhole(a.growthKey("truncated", q.Marginals), p.Hypergraph(),
		func(ctx context.Context) (*btn.Plan, bool, error) {
			return truncatedPlan(ctx, p, a.Settings, true, q.Marginals)
		})
	if err != nil {
		return btn.Assignment{}, err
	}
	return btn.Assignment{
		Plan:    plan,
		Cache:   hit,
		LnLinks: math.Inf(-1),
		Hard:    proposal.Forbids(p.Expression()),
		Unsure:  proposal.BeyondRange(p.Expression()),
	}, nil
}

// serves says why the model's plans are not good enough for what a query's evidence leaves; empty where they are.
func (a *assigner) serves(model btn.Assignment, own *truncated.Prepared) string {
	last := &model.Plan.Estimates[len(model.Plan.Estimates)-1]
	bond := last.Parts[0].(*truncated.Truncated).Bond
	if last.Cost.Flops < policy.ResearchFlops {
		return ""
	}
	quick, err := own.Quick(a.Ctx, bond, a.Settings.Memory, a.Settings.Seed)
	if err != nil || last.Cost.Flops <= policy.Misfit*quick.Flops { // what cannot be planned is no better
		return ""
	}
	return fmt.Sprintf("plans of truncated legs: the model's takes %.2g flops at bond %d, one for what "+
		"the evidence leaves %.2g",
		last.Cost.Flops, bond, quick.Flops)
}

// growthKey lists what a ladder depends on beside the network's shape.
func (a *assigner) growthKey(kind string, marginals bool) string {
	s := a.Settings
	return fmt.Sprintf("%s seed=%d marginals=%t bond=%d budget=%g accuracy=%g components=%d",
		kind, s.Seed, marginals, s.Bond, s.Budget, s.Accuracy, s.Components)
}

// truncatedPlan searches plans and builds the ladder along them. whole is false where the time for planning
// ended first.
func truncatedPlan(
	ctx context.Context, p *truncated.Prepared, s btn.Settings, masked, marginals bool,
) (plan *btn.Plan, whole bool, err error) {
	bond := s.Bond
	if bond == 0 {
		bond = policy.SearchBond
	}
	plans, bond, whole, err := searchPlans(ctx, p, s, bond, marginals)
	if err != nil {
		return nil, false, err
	}

	prices := make([]price, len(plans))
	for k := range plans {
		prices[k] = func(bond int) (float64, float64, error) {
			c, err := p.Price(&plans[k], bond, marginals)
			return c.Flops, c.Bytes, err
		}
	}

	for k := range plans {
		plans[k].Number, plans[k].Masked, plans[k].Accuracy = k, masked, s.Accuracy
	}
	var rungs []rung
	if c, err := p.Price(&plans[0], bond, marginals); err == nil && c.Lossless && c.Bytes <= float64(s.Memory) &&
		(c.Flops <= s.Budget || s.Bond > 0) {
		rungs = []rung{{bond: bond, cost: btn.Cost{Flops: c.Flops, Bytes: c.Bytes}}}
	} else if rungs, err = bonds(prices, s); err != nil {
		return nil, false, err
	}

	if len(rungs) == 0 {
		return nil, false, fault.New(fault.OverBudget, "plan: no plan of truncated legs fits %d bytes", s.Memory)
	}
	if first := rungs[0]; s.Method == btn.MethodAuto && s.Bond == 0 && proposal.Timed(ctx) && first.cost.Flops > s.Budget {
		return nil, false, fault.New(fault.OverBudget,
			"plan: the first estimate of truncated legs, at bond %d, takes %.3g flops, %.3g are what the deadline is worth",
			first.bond, first.cost.Flops, s.Budget)
	}
	if r, ok := slicedRung(p, plans, rungs, s, marginals); ok {
		rungs = append(rungs, r)
	}
	plan = &btn.Plan{Method: btn.MethodTruncated, Accuracy: s.Accuracy}
	parts, domains := int64(0), p.Domains()
	for k, r := range rungs {
		parts += sliceCount(r.sliced, domains)
		if s.Components > 0 && k > 0 && parts > int64(s.Components) {
			break
		}
		plan.Estimates = append(plan.Estimates, r.estimate(plans, domains))
	}

	return plan, whole, nil
}

// searchPlans searches plans for a bond, and for smaller ones where none fits the memory. Where the time for
// planning is over it takes what is found, or greedy ones for the least bond.
func searchPlans(
	ctx context.Context, p *truncated.Prepared, s btn.Settings, bond int, marginals bool,
) (plans []truncated.TruncatedPlan, planned int, whole bool, err error) {
	planning, cancel := proposal.Planning(ctx, 1)
	defer cancel()
	o := truncated.SearchOptions{Bond: bond, Memory: s.Memory, Seed: s.Seed, Marginals: marginals, Moves: proposal.Moves(s)}
	plans, whole, err = p.Search(planning, o)
	for s.Bond == 0 && o.Bond > policy.LeastBond && fault.CodeOf(err) == fault.OverBudget {
		o.Bond /= 2
		o.Moves = max(o.Moves/2, 1)
		plans, whole, err = p.Search(planning, o)
	}

	if proposal.OutOfTime(ctx, planning, err) {
		whole = false
		if n := len(p.Expression().Tables); s.Method == btn.MethodAuto && n > policy.MostHasty {
			return nil, 0, false, fault.New(fault.OverBudget,
				"plan: truncated legs: no plan was found in the time that the deadline leaves, %d tables are left", n)
		}
		if s.Bond == 0 {
			o.Bond = policy.LeastBond
		}
		plans, err = p.Greedy(ctx, o)
	}

	return plans, o.Bond, whole, err
}

// slicedRung is the last rung of a ladder that the memory ended, not the budget: twice the bond, in slices that fit.
func slicedRung(
	p *truncated.Prepared, plans []truncated.TruncatedPlan, rungs []rung, s btn.Settings, marginals bool,
) (rung, bool) {
	left := s.Budget
	for _, r := range rungs {
		left -= r.cost.Flops
	}
	last := rungs[len(rungs)-1]
	bond := 2 * last.bond
	if s.Bond > 0 || left <= 0 {
		return rung{}, false
	}

	whole, err := p.Price(&plans[last.plan], bond, marginals)
	if err != nil || whole.Bytes <= float64(s.Memory) || whole.Lossless {
		return rung{}, false
	}
	domains := p.Domains()
	sliced, cost := lighter(p, domains, &plans[last.plan], bond, s.Memory, marginals)
	if sliced == nil {
		return rung{}, false
	}
	r := rung{plan: last.plan, bond: bond, sliced: sliced, cost: btn.Cost{Bytes: cost.Bytes}}
	r.cost.Flops = cost.Flops * float64(sliceCount(sliced, domains))
	return r, r.cost.Flops <= left
}
