package plan

// The exact way of networks that are functions of few linear statistics, which nobody declared.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/structured"
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
