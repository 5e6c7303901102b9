package plan

// The exact way of networks in between: too much work for an elimination order, too little for a
// simplification to pay.

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/pkg/fault"
)

// whole makes an assignment that of a contraction tree over the conditioned network as it is, where one
// is found that fits the memory, needs no slices and costs less than an order does. Otherwise it
// leaves the assignment alone. Trees are remembered by the shape, as those of simplified networks.
func (a *assigner) whole(assignment *btn.Assignment, order btn.Cost, marginals bool) error {
	p, err := exact.WholeOf(a.ctx, a.current(), marginals)
	if err != nil {
		return err
	}

	settings := a.treeSettings("whole", marginals)
	plan, hit, err := a.remember(settings, p.Hypergraph(), func(ctx context.Context) (*btn.Plan, error) {
		return wholePlan(ctx, p, a.settings)
	})
	if fault.CodeOf(err) == fault.OverBudget {
		return nil
	}
	if err != nil {
		return err
	}

	cost := plan.Estimates[0].Cost
	if cost.Slices > 1 || cost.Flops >= order.Flops {
		return nil
	}
	assignment.Plan, assignment.Cache, assignment.Cost = plan, hit, &cost
	if assignment.Relearned != "" {
		assignment.Relearned = "contraction tree: for what the evidence leaves"
	}
	return nil
}

// wholePlan searches the tree, as one part.
func wholePlan(ctx context.Context, p *exact.Prepared, s btn.Settings) (*btn.Plan, error) {
	tree, cost, err := p.PlanWithin(ctx, exact.PlanOptions{
		Memory: s.Memory,
		Seed:   s.Seed,
		Moves:  searchMoves(s),
	})
	if err != nil {
		return nil, err
	}
	return exactOf(cost, &exact.Slices{Tree: tree, To: tree.Count}), nil
}
