package plan

// The exact way of networks that are functions of few linear statistics, which nobody declared.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/query"
)

// structured assigns the sum over the nodes of a model's statistics, which is found once and remembered; nil where the model has none,
// or they take more than the exact way may.
func (a *assigner) structured() (*btn.Assignment, error) {
	plan, hit, err := a.remember("structured", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		e, err := structured.Plan(ctx, a.net, a.settings.Memory)
		if err != nil {
			return nil, err
		}
		none := &btn.Plan{Method: btn.MethodExact}
		if e != nil {
			none.Estimates = []btn.Estimate{*e}
		}
		return none, nil
	})
	if err != nil || len(plan.Estimates) == 0 || plan.Estimates[0].Cost.Flops > exactLimit(a.settings) {
		return nil, err
	}
	cost := plan.Estimates[0].Cost
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}, nil
}

// near assigns chains from the model's low-rank part where that carries most of the interaction, for the whole budget, and bounds; nil
// where it does not. How long the chains are depends on the first query.
func (a *assigner) near(q query.Query) (*btn.Assignment, error) {
	if !structured.Crowded(a.net) {
		return nil, nil
	}
	plan, hit, err := a.rememberWhole(a.growthKey("near", q.Marginals), contractionorder.Hypergraph{},
		func(ctx context.Context) (*btn.Plan, bool, error) {
			planning, cancel := planningContext(ctx, policy.ExactShare)
			defer cancel()
			path, spread, each, setup, err := structured.Near(planning, a.current(), a.settings.Seed, policy.ProposalShare*a.settings.Budget)
			if outOfTime(ctx, planning, err) {
				return &btn.Plan{Method: btn.MethodSampled}, false, nil
			}
			if err != nil || path == nil {
				return &btn.Plan{Method: btn.MethodSampled}, true, err
			}
			plan := &btn.Plan{Method: btn.MethodSampled, Accuracy: a.settings.Accuracy}
			plan.Estimates, err = components(nil, &sampled.Sampling{
				Kind: sampled.ByStructure, Seed: a.settings.Seed, Spread: spread, Rungs: path.Rungs, Each: each, Setup: setup, Structure: path,
			}, a.settings, q.Marginals)
			if err != nil || len(a.net.Cores) > policy.MostHasty {
				return plan, true, err
			}
			bounds, err := a.bounds(planning)
			if late(err) {
				return plan, false, nil
			}
			plan.Estimates = append(bounds, plan.Estimates...)
			return plan, true, err
		})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1)}, nil
}
