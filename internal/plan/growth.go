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
	"github.com/basetensor/basetensor/internal/families/truncated/ladder"
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
			return ladder.Plan(ctx, own, a.Settings, false, q.Marginals)
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
			return ladder.Plan(ctx, p, a.Settings, true, q.Marginals)
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
	bond := ladder.Bond(last)
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
