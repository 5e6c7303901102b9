package exact

// Proposals: elimination orders, programs of small networks, and trees over networks as they are.

import (
	"context"
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// OrderOf returns the elimination order of a plan, nil for one without.
func OrderOf(plan *btn.Plan) *Elimination {
	order, _ := plan.Estimates[0].Parts[0].(*Elimination)
	return order
}

// OrderUnder returns the order for a query's evidence and its price: the network's own, or where evidence takes values from
// indices and leaves much work a new one, if that is cheaper, which it makes the assignment's. It says why Z is 0 where zeros alone
// show that.
func OrderUnder(j *proposal.Job, to *btn.Assignment, base *Elimination) (*Order, error) {
	shape, err := j.Facts.Shape(j.Ctx, j.Net)
	if err != nil {
		return nil, err
	}
	under, err := lower.Shape(j.Ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	if Decided(under) {
		if to.Warnings, err = WhyZero(j); err != nil {
			return nil, err
		}
	}

	o := &Order{under: under, order: base.Order}
	if o.Cost, err = contractionorder.EvaluateOrderWithin(j.Ctx, under, o.order, policy.OutOfReach); err != nil {
		return nil, err
	}
	if o.Cost.Flops > policy.ReplanFlops && !proposal.SameDims(under, shape) {
		own, c, err := MinFill(j.Ctx, under)
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
	Cost  btn.Cost
	order []int
	under contractionorder.Hypergraph
}

// Propose fills an assignment of the order with its price: that of a contraction tree over the network as it is where it is cheaper, or
// over the simplified network where the order does not fit the memory.
func (o *Order) Propose(j *proposal.Job, to *btn.Assignment, ask proposal.Ask) (*btn.Assignment, error) {
	cost := o.Cost
	if ask.Marginals {
		var err error
		if cost, err = einsum.PlanMarginals(j.Ctx, o.under, o.order); err != nil {
			return nil, err
		}
	}

	if cost.Flops > policy.WholeFlops {
		if err := whole(j, to, cost, ask.Marginals); err != nil {
			return nil, err
		}
		if to.Cost != nil {
			return to, nil
		}
	}

	if cost.Bytes > float64(j.Settings.Memory) {
		return ProposeTree(j, ask, false)
	}
	to.Cost = &cost
	return to, nil
}

// Compiled fills the assignment of a query that the network's program answers along the order, and
// says why Z is 0 where the program finds that. It is false where there is no such program, or where it is
// seen not to serve the query: the contraction then sees the same.
func (q *Elimination) Compiled(j *proposal.Job, to *btn.Assignment, marginals bool) (bool, error) {
	if q.Flops > policy.ProgramFlops {
		return false, nil
	}
	p, ok := programs(j).Of(j.Net, q.Order)
	if !ok {
		return false, nil
	}

	cost := p.Plan(marginals)
	if cost.Bytes > float64(j.Settings.Memory) {
		return false, nil
	}
	if !p.Above(j.Conditioned) {
		z, ok := p.Z(j.Conditioned)
		if !ok {
			return false, nil
		}
		if z.IsZero() {
			var err error
			if to.Warnings, err = WhyZero(j); err != nil {
				return false, err
			}
		}
	}

	to.Cost = &cost
	return true, nil
}

// programsSlot is that of the process's programs.
type programsSlot struct{}

// programs are those of all networks that the process plans for.
func programs(j *proposal.Job) *einsum.Programs {
	p, _ := proposal.Fact(j.Facts.Common, programsSlot{}, func() (*einsum.Programs, error) { return new(einsum.Programs), nil })
	return p
}

// whole makes an assignment that of a contraction tree over the conditioned network as it is, where one
// is found that fits the memory, needs no slices and costs less than an order does. Otherwise it
// leaves the assignment alone. Trees are remembered by the shape, as those of simplified networks.
func whole(j *proposal.Job, assignment *btn.Assignment, order btn.Cost, marginals bool) error {
	p, err := WholeOf(j.Ctx, j.Problem(), marginals)
	if err != nil {
		return err
	}

	settings := treeSettings(j, "whole", marginals)
	plan, hit, err := j.Remember(settings, p.Hypergraph(), func(ctx context.Context) (*btn.Plan, error) {
		return wholePlan(ctx, p, j.Settings)
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
func wholePlan(ctx context.Context, p *Prepared, s btn.Settings) (*btn.Plan, error) {
	tree, cost, err := p.PlanWithin(ctx, PlanOptions{
		Memory: s.Memory,
		Seed:   s.Seed,
		Moves:  proposal.Moves(s),
	})
	if err != nil {
		return nil, err
	}
	return proposal.Exact(cost, &Slices{Tree: tree, To: tree.Count}), nil
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

// WhyZero says in words why a network is 0, if its zeros alone show that it is.
func WhyZero(j *proposal.Job) ([]string, error) {
	why, err := Why(j.Ctx, j.Conditioned)
	if err != nil || why == "" {
		return nil, err
	}
	return []string{"Z is 0: " + strings.TrimSuffix(why, ".")}, nil
}

// MinFill returns the min-fill order of a shape and its price; beyond policy.OutOfReach some order, and no less than that.
func MinFill(ctx context.Context, shape contractionorder.Hypergraph) ([]int, btn.Cost, error) {
	return contractionorder.MinFillCost(ctx, shape, policy.OutOfReach, policy.MostFill)
}

// EliminationPlan is B along an elimination order.
func EliminationPlan(order []int, cost btn.Cost) *btn.Plan {
	return proposal.Exact(cost, &Elimination{Order: order, Flops: cost.Flops})
}
