package einsum

// Marginals: the value of an expression and its share by value of every index, from one pass forth and one back.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Result is a value with the marginals of its indices, not normalised.
type Result struct {
	Z scaled.Number // the bits of Contract's
	// Marginals[i][x] is the part of Z in which index i has the x-th of its values, Σ_x Marginals[i][x] = Z up to
	// rounding. It has Dims[i] entries; Support says which values of the network they are.
	Marginals [][]scaled.Number
}

// Marginals returns the value of e and, for every index i and value x,
//
//	M_i(x) = Scale · Σ_{y: y_i=x} Π_t Tables[t][y]
//
// all from one forward pass along order, as Contract, that keeps its tables, and one backward pass over the same steps.
// The derivative of Z by an input of a step is the derivative by its output times the other inputs, summed over the
// indices outside the input:
//
//	∂Z/∂in_k = Σ ∂Z/∂out · Π_{m≠k} in_m,   M_i(x) = Σ_{y: y_i=x} t[y] ∂Z/∂t[y]   for any table t that has i.
//
// Nothing is divided by, so zeros and entries of either sign are as good as others: Z = 0 may have marginals that are not.
// Derivatives carry an exponent of 2 per table; within one table, entries 2^−1000 below the largest may become 0. The result has the
// same bits for any number of threads.
//
// Errors: as Contract; ErrOverBudget compares PlanMarginals' figure. Cost: PlanMarginals, about three times the flops of
// Contract, and the memory of all its tables together. Source: A. Darwiche, A differential approach to inference in
// Bayesian networks, J. ACM 50 (2003).
func Marginals(ctx context.Context, e *sumproduct.Expression, order []int, o Options) (Result, Stats, error) {
	r, stats, err := both(ctx, e, order, nil, true, o)
	return Result{Z: r.Z, Marginals: r.Marginals}, stats, err
}

// both runs the passes forth and back for marginals, the derivatives by some tables (nil: none), or both.
func both(
	ctx context.Context, e *sumproduct.Expression, order []int, wanted []bool, marginals bool, o Options,
) (Derivatives, Stats, error) {
	none := Derivatives{}
	if err := errors.Join(e.Validate(), e.ValidateOrder(order)); err != nil {
		return none, Stats{}, err
	}
	if err := ctx.Err(); err != nil {
		return none, Stats{}, err
	}
	h := e.Hypergraph()
	plan, err := contractionorder.EvaluateOrder(ctx, h, order)
	if err != nil {
		return none, Stats{}, err
	}
	if err := o.check(plan); err != nil { // the forward pass alone is too much
		return none, Stats{}, err
	}
	t, err := newTape(ctx, h, order, e.Scale)
	if err != nil {
		return none, Stats{}, err
	}
	if wanted != nil {
		t.want(wanted, marginals)
	}
	plan = t.plan()
	if err := o.checkMarginals(plan); err != nil {
		return none, Stats{}, err
	}
	c := contraction{ctx: ctx, dims: e.Dims, threads: sumproduct.Threads(o.Threads), scale: e.Scale, tape: t}
	c.arena.Limit = int(plan.Bytes / 8)
	for _, t := range e.Tables {
		c.arena.Held += len(t.Data)
	}
	stats := Stats{Flops: plan.Flops, PeakBytes: int64(plan.Bytes)}
	if err := c.run(e, h, order); err != nil {
		return none, stats, err
	}
	m, err := c.backward()
	stats.Lost = c.lost
	if err != nil {
		return none, stats, err
	}
	if !marginals {
		m = nil
	}
	return Derivatives{Z: c.scale, By: c.by, Exp: c.byExp, Marginals: m}, stats, nil
}

// PlanMarginals prices Marginals as contractionorder.EvaluateOrder prices Contract: the flops of both passes, and the peak of the
// tables and derivatives that live together, 8 bytes an entry. The only error is the context's.
func PlanMarginals(ctx context.Context, h contractionorder.Hypergraph, order []int) (btn.Cost, error) {
	plan, err := contractionorder.EvaluateOrder(ctx, h, order)
	if err != nil || plan.Log2Table >= hopeless {
		return plan, err // nobody will compute this; the steps need not be listed
	}
	t, err := newTape(ctx, h, order, scaled.One)
	if err != nil {
		return btn.Cost{}, err
	}
	return t.plan(), nil
}

// hopeless is log2 of a table beyond which the steps of an order are not listed.
const hopeless = 1000

// checkMarginals compares a plan of both passes with the budget.
func (o Options) checkMarginals(plan btn.Cost) error {
	memory := o.Memory
	if memory <= 0 {
		memory = btn.DefaultMemory
	}
	if plan.Bytes > float64(memory) {
		return fault.New(fault.OverBudget, "%w: all marginals at once need %.0f bytes of tables and derivatives "+
			"(width %d, largest table 2^%.1f entries, %.3g flops), the budget is %d bytes",
			sumproduct.ErrOverBudget, plan.Bytes, plan.Width, plan.Log2Table, plan.Flops, memory)
	}
	return nil
}
