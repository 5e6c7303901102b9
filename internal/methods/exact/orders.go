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

// OrderOf returns the elimination order of a plan, nil for one without.
func OrderOf(plan *btn.Plan) *Elimination {
	order, _ := plan.Estimates[0].Parts[0].(*Elimination)
	return order
}

// OrderUnder returns the order for a query's evidence and its price: the network's own, or where evidence takes values from
// indices and leaves much work a new one, if that is cheaper, which it makes the assignment's.
func OrderUnder(ctx context.Context, j *proposal.Job, to *btn.Assignment, base *Elimination) (*Order, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	if err != nil {
		return nil, err
	}
	without := j.Evidence.IsEmpty() && !j.Options.Summed
	under := shape
	if !without {
		if under, err = lower.Shape(ctx, j.Conditioned); err != nil {
			return nil, err
		}
	}
	o := &Order{under: under, order: base.Order}
	if without && base.Flops < policy.OutOfReach { // it was priced to its end
		o.Cost = to.Plan.Estimates[0].Cost
		return o, nil
	}
	if o.Cost, err = contractionorder.EvaluateOrderWithin(ctx, under, o.order, policy.OutOfReach); err != nil {
		return nil, err
	}
	if o.Cost.Flops > policy.ReplanFlops && !proposal.EqualDims(under, shape) {
		own, c, _, err := MinFill(ctx, under)
		if err != nil {
			return nil, err
		}
		if c.Flops < o.Cost.Flops {
			to.Relearned = fmt.Sprintf("elimination order: the model's takes %.2g flops, one for "+
				"what the evidence leaves %.2g",
				o.Cost.Flops, c.Flops)
			o.Cost, o.order = c, own
			to.Plan = EliminationPlan(o.order, o.Cost)
		}
	}
	return o, nil
}

// Order is an elimination order under a query's evidence and its price, for Z alone.
type Order struct {
	Cost  query.Cost
	order []int
	under contractionorder.Hypergraph
}

// Propose fills an assignment of the order with its price, or with a contraction tree over the simplified network where the order does not
// fit the memory.
func (o *Order) Propose(ctx context.Context, j *proposal.Job, to *btn.Assignment, ask proposal.Ask) (*btn.Assignment, error) {
	cost := o.Cost
	if ask.Marginals {
		var err error
		if cost, err = einsum.PlanMarginals(ctx, o.under, o.order); err != nil {
			return nil, err
		}
	}

	if cost.Bytes > float64(j.Settings.Memory) {
		return ProposeTree(ctx, j, ask)
	}
	to.Cost = &cost
	return to, nil
}

// Decided reports whether a shape has nothing to sum: all indices have one value. Networks known to be 0 look
// like that.
func Decided(h contractionorder.Hypergraph) bool {
	for _, d := range h.Dims {
		if d > 1 {
			return false
		}
	}
	return true
}

// MinFill returns the min-fill order of a shape, its price and the moves of the search; beyond policy.OutOfReach some order, and no less
// than that.
func MinFill(ctx context.Context, shape contractionorder.Hypergraph) (order []int, cost query.Cost, moves int64, err error) {
	return contractionorder.MinFillCost(ctx, shape, policy.OutOfReach, policy.MostFill)
}

// EliminationPlan is B along an elimination order.
func EliminationPlan(order []int, cost query.Cost) *btn.Plan {
	return proposal.Exact(cost, &Elimination{Order: order, Flops: cost.Flops})
}
