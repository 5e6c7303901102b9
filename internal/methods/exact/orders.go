package exact

// Proposals: elimination orders.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/query"
)

// OrderOf returns the elimination order of a plan. It returns nil for a plan without one.
func OrderOf(plan *btn.Plan) *Elimination {
	order, _ := plan.Estimates[0].Parts[0].(*Elimination)
	return order
}

// OrderUnder returns the elimination order for a query's evidence, with its price. It is base, the order of the network without evidence,
// or a new min-fill order. A new order is looked for if base takes more than policy.ReplanFlops under the evidence, and if under the
// evidence some index has fewer values. If the new order is cheaper, the plan of the assignment becomes that of the new order.
func OrderUnder(ctx context.Context, j *proposal.Job, assignment *btn.Assignment, base *Elimination) (*Order, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	if err != nil {
		return nil, err
	}

	// The shape and the price of base under the evidence.
	isUnconditioned := j.Evidence.IsEmpty() && !j.Options.Summed // Summed: variables have been summed out
	conditioned := shape
	if !isUnconditioned {
		if conditioned, err = lower.Shape(ctx, j.Conditioned); err != nil {
			return nil, err
		}
	}
	o := &Order{shape: conditioned, order: base.Order}
	isPriced := base.Flops < policy.OutOfReach // otherwise pricing was stopped there
	if isUnconditioned && isPriced {
		o.Cost = assignment.Plan.Estimates[0].Cost
		return o, nil
	}
	if o.Cost, err = contractionorder.EvaluateOrderWithin(ctx, conditioned, o.order, policy.OutOfReach); err != nil {
		return nil, err
	}

	if o.Cost.Flops > policy.ReplanFlops && !proposal.EqualDims(conditioned, shape) {
		if err := o.replan(ctx, assignment); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// replan replaces the order by a min-fill order under the evidence if that is cheaper. Then the assignment gets its plan.
func (o *Order) replan(ctx context.Context, assignment *btn.Assignment) error {
	newOrder, newCost, _, err := MinFill(ctx, o.shape)
	if err != nil {
		return err
	}
	if newCost.Flops < o.Cost.Flops {
		assignment.Relearned = fmt.Sprintf("elimination order: the model's takes %.2g flops, one for "+
			"what the evidence leaves %.2g",
			o.Cost.Flops, newCost.Flops)
		o.Cost, o.order = newCost, newOrder
		assignment.Plan = EliminationPlan(o.order, o.Cost)
	}
	return nil
}

// Order is an elimination order under a query's evidence, with the price of Z.
type Order struct {
	Cost  query.Cost
	order []int
	shape contractionorder.Hypergraph // under the evidence
}

// Propose returns the assignment of the order with its price, which is that of marginals if they are wanted. If the order does not fit the
// memory, it proposes a contraction tree over the simplified network instead.
func (o *Order) Propose(ctx context.Context, j *proposal.Job, assignment *btn.Assignment, ask proposal.Ask) (*btn.Assignment, error) {
	cost := o.Cost
	if ask.Marginals {
		var err error
		if cost, err = einsum.PlanMarginals(ctx, o.shape, o.order); err != nil {
			return nil, err
		}
	}

	if cost.Bytes > float64(j.Settings.Memory) {
		return ProposeTree(ctx, j, ask)
	}
	assignment.Cost = &cost
	return assignment, nil
}

// IsDecided reports whether all indices of a shape have one value, so that nothing is left to sum. The shape of a network whose Z is
// known to be 0 is of this kind.
func IsDecided(h contractionorder.Hypergraph) bool {
	for _, d := range h.Dims {
		if d > 1 {
			return false
		}
	}
	return true
}

// MinFill returns the min-fill elimination order of a shape, its price, and the number of moves of the search. If the price is beyond
// policy.OutOfReach, it returns some order and a price of at least policy.OutOfReach.
func MinFill(ctx context.Context, shape contractionorder.Hypergraph) (order []int, cost query.Cost, moves int64, err error) {
	return contractionorder.MinFillCost(ctx, shape, policy.OutOfReach, policy.MostFill)
}

// EliminationPlan returns the plan of an elimination order.
func EliminationPlan(order []int, cost query.Cost) *btn.Plan {
	return proposal.ExactPlan(cost, &Elimination{Order: order, Flops: cost.Flops})
}
