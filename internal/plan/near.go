package plan

// Chains from the part of a network that is a function of few linear statistics.

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/query"
)

// near assigns chains from the model's low-rank part where that carries most of the interaction, for the whole budget, and bounds; nil
// where it does not. How long the chains are depends on the first query.
func (a *assigner) near(q query.Query) (*btn.Assignment, error) {
	if !structured.Crowded(a.Net) {
		return nil, nil
	}
	plan, hit, err := a.RememberWhole(a.growthKey("near", q.Marginals), contractionorder.Hypergraph{},
		func(ctx context.Context) (*btn.Plan, bool, error) {
			planning, cancel := proposal.Planning(ctx, policy.ExactShare)
			defer cancel()
			path, spread, each, setup, err := structured.Near(planning, a.Problem(), a.Settings.Seed, policy.ProposalShare*a.Settings.Budget)
			if proposal.OutOfTime(ctx, planning, err) {
				return &btn.Plan{Method: btn.MethodSampled}, false, nil
			}
			if err != nil || path == nil {
				return &btn.Plan{Method: btn.MethodSampled}, true, err
			}
			plan := &btn.Plan{Method: btn.MethodSampled, Accuracy: a.Settings.Accuracy}
			plan.Estimates, err = sampled.Components(nil, &sampled.Structure{
				Base:  sampled.Base{Kind: sampled.ByStructure, Seed: a.Settings.Seed, Spread: spread},
				Rungs: path.Rungs, Each: each, Setup: setup, Path: path,
			}, a.Settings, q.Marginals)
			if err != nil || len(a.Net.Cores) > policy.MostHasty {
				return plan, true, err
			}
			bounds, err := a.bounds(planning)
			if proposal.Late(err) {
				return plan, false, nil
			}
			plan.Estimates = append(bounds, plan.Estimates...)
			return plan, true, err
		})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	return proposal.Take(plan, hit), nil
}
