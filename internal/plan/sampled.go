package plan

// Sampled components alone.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/query"
)

// sampled assigns components of a random decomposition, as many as the budget holds. How long the chains are depends on a pilot of the
// first query whose evidence leaves this shape; what they weigh is unbiased for any length. Where the time for planning is over, a small
// pilot has to do.
func (a *assigner) sampled(conditioned *btn.Network, q query.Query) (btn.Assignment, error) {
	own, err := truncated.Of(a.Ctx, a.Problem(), q.Marginals)
	if err != nil {
		return btn.Assignment{}, err
	}
	if own.Decided() {
		return exact.ProposeTree(a.Job, q.Marginals, own.Expression().Scale.IsZero())
	}
	chains, err := sampled.ChainsOf(a.Ctx, a.Problem(), q.Marginals)
	if err != nil {
		return btn.Assignment{}, err
	}
	without, err := a.withoutMarginals(q)
	if err != nil {
		return btn.Assignment{}, err
	}
	plan, hit, err := a.RememberWhole(a.growthKey("sampled"+without, q.Marginals), own.Hypergraph(),
		func(ctx context.Context) (*btn.Plan, bool, error) {
			planning, cancel := proposal.Planning(ctx, 1)
			defer cancel()
			plan, whole, err := a.sampledPlan(planning, chains, q.Marginals)
			if !proposal.OutOfTime(ctx, planning, err) {
				return plan, whole, err
			}
			plan = &btn.Plan{Method: btn.MethodSampled, Accuracy: a.Settings.Accuracy}
			plan.Estimates, err = a.hastyChains(ctx, chains, q.Marginals)
			return plan, false, err
		})
	if err != nil {
		return btn.Assignment{}, err
	}
	return btn.Assignment{
		Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Hard: proposal.Forbids(own.Expression()), Unsure: proposal.BeyondRange(own.Expression()),
	}, nil
}

// sampledPlan is a plan of sampled components and bounds alone; whole is false where the time for planning ended first.
func (a *assigner) sampledPlan(ctx context.Context, c *sampled.Chains, marginals bool) (plan *btn.Plan, whole bool, err error) {
	along, whole, err := sampled.Choose(ctx, c, a.Settings)
	if err != nil {
		return nil, false, err
	}
	plan = &btn.Plan{Method: btn.MethodSampled, Accuracy: a.Settings.Accuracy}
	if plan.Estimates, err = sampled.Components(c, along, a.Settings, marginals); err != nil {
		return nil, false, err
	}
	bounds, err := a.bounds(ctx)
	if proposal.Late(err) {
		return plan, false, nil
	}
	plan.Estimates = append(bounds, plan.Estimates...)
	return plan, whole, err
}

// hastyChains are chains from a small pilot, for half of the budget.
func (a *assigner) hastyChains(ctx context.Context, c *sampled.Chains, marginals bool) ([]btn.Estimate, error) {
	along, err := a.quickPilot(ctx, c.Model)
	if err != nil {
		return nil, err
	}
	along.Shape = c.Prepared.Shape()
	half := a.Settings
	half.Budget /= 2
	return sampled.Components(c, along, half, marginals)
}

// quickPilot chooses chains by a small pilot alone, whatever the time.
func (a *assigner) quickPilot(ctx context.Context, m *annealing.Model) (*sampled.Annealing, error) {
	little := a.Settings
	little.Budget *= policy.HastyShare
	along, _, err := sampled.Pilot(ctx, m, little)
	return along, err
}

// bounds are those of the network without marginals' indices.
func (a *assigner) bounds(ctx context.Context) ([]btn.Estimate, error) {
	without, err := truncated.Of(ctx, a.Problem(), false)
	if err != nil {
		return nil, err
	}
	return bounding.Propose(ctx, without, a.Settings)
}
