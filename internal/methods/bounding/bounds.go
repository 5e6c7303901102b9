package bounding

// The contraction of bounds: mini-buckets and modes for any tables, determinants and Bethe's value for spins.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/engine/modes"
	"github.com/basetensor/basetensor/internal/methods/bounding/isingbounds"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/ising"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// bucketWeights are the weights with which lower bounds are tried (minibuckets.Run).
var bucketWeights = []float64{0.1, 1}

// Contract implements contraction.Contractor. The value has bounds, and neither Z nor anything that is wanted. A bound of the kinds for
// spins is empty if a mask has left other tables.
func (q *Bound) Contract(ctx context.Context, p *problem.Problem, _ btn.Want) (btn.Value, error) {
	if q.Kind == Messages {
		return boundByMessages(ctx, p, q)
	}
	prepared, err := simplify(ctx, p, q.Masked)
	if err != nil {
		return btn.Value{}, err
	}
	if prepared.Shape() != q.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the bound is for a network of another shape")
	}
	if q.Masked {
		if prepared, err = prepared.Mask(p.Evidence); err != nil {
			return btn.Value{}, err
		}
	}
	e := prepared.Expression()
	v := btn.Value{Bound: &btn.BoundValue{Lower: math.Inf(-1), Upper: math.Inf(1)}}
	if e.Scale.IsZero() {
		return v, nil
	}
	v.Bound.Least = lnLeastWeight(e)
	if q.Kind == Modes {
		v.Flops = modes.Work(e)
		v.Bound.Lower, err = modes.Below(ctx, e)
		return v, err
	}
	if q.Kind == MiniBuckets {
		v.Flops, err = boundByMiniBuckets(ctx, e, q, p.Memory, v.Bound)
		if math.IsInf(v.Bound.Upper, -1) { // Z is 0, which others find out
			v.Bound.Upper = math.Inf(1)
		}
		return v, err
	}

	return boundSpins(ctx, p, q, e, v)
}

// boundSpins sets the bound of v by a determinant or by Bethe's value, for positive tables over two spins. Evidence that enters as a mask
// has weights of 0, so that there may be no such model; then v stays as it is.
func boundSpins(ctx context.Context, p *problem.Problem, q *Bound, e *sumproduct.Expression, v btn.Value) (_ btn.Value, err error) {
	model := ising.New(e)
	if model == nil && q.Masked { // evidence has weights of 0
		return v, nil
	}
	if model == nil || e.Scale.Sign() <= 0 {
		return btn.Value{}, fault.New(fault.Unsupported, "a bound of kind %s is for positive tables over two spins", q.Kind)
	}
	constant := e.Scale.LogAbs() + model.Constant
	if q.Kind == Determinant {
		rounds := q.Rounds
		if q.Start {
			rounds = 0
		}
		flops, bytes := isingbounds.DeterminantCost(model.N, rounds, max(q.Slices, 1))
		if bytes > float64(p.Memory) {
			return btn.Value{}, fault.New(fault.OverBudget, "%w: a determinant of %d spins needs %.3g bytes, %d are allowed",
				contraction.ErrMemory, model.N, bytes, p.Memory)
		}
		v.Flops = flops
		v.Bound.Upper, err = isingbounds.Determinant(ctx, model, rounds, max(q.Slices, 1))
		v.Bound.Upper += constant
		return v, err
	}
	v.Flops = float64(q.Rounds) * 9 * 60 * float64(len(model.To))
	v.Bound.Lower, err = isingbounds.Below(ctx, model, q.Rounds)
	v.Bound.Lower += constant
	return v, err
}

// boundByMessages returns the upper bound by the messages of belief propagation, which its value has computed, in one more pass.
func boundByMessages(ctx context.Context, p *problem.Problem, q *Bound) (btn.Value, error) {
	g, err := regions.GroundOf(ctx, p, int64(q.Rounds))
	if err != nil {
		return btn.Value{}, err
	}
	v := btn.Value{Bound: &btn.BoundValue{Lower: math.Inf(-1), Upper: math.Inf(1)}}
	if g.State != nil {
		v.Bound.Upper = g.State.Above()
	}
	return v, nil
}

// lnLeastWeight returns ln of the product of the smallest positive entries of all tables, which is at most the weight of any allowed
// state. It returns nil if entries are below 0, or the product is 0 or not finite.
func lnLeastWeight(e *sumproduct.Expression) *float64 {
	if e.Signed() {
		return nil
	}
	ln := e.Scale.LogAbs()
	for _, t := range e.Tables {
		low := math.Inf(1)
		for _, x := range t.Data {
			if x > 0 {
				low = min(low, x)
			}
		}
		ln += floats.Ln(low)
	}
	if math.IsInf(ln, 0) || math.IsNaN(ln) {
		return nil
	}
	return &ln
}

// simplify returns the simplified network: without evidence if masked, else under it.
func simplify(ctx context.Context, p *problem.Problem, masked bool) (*truncated.Prepared, error) {
	if masked {
		return truncated.OfBase(ctx, p)
	}
	return truncated.Of(ctx, p, false)
}

// boundByMiniBuckets sets the bounds by mini-buckets, and returns the flops. A lower bound that is no number is left out.
func boundByMiniBuckets(ctx context.Context, e *sumproduct.Expression, q *Bound, memory int64, bound *btn.BoundValue) (float64, error) {
	plan, err := minibuckets.NewPlan(e.Hypergraph(), q.Order, q.Entries)
	if err != nil {
		return 0, err
	}
	if plan.Bytes > float64(memory) {
		return 0, fault.New(fault.OverBudget, "%w: mini-buckets need %.3g bytes, %d are allowed", contraction.ErrMemory, plan.Bytes, memory)
	}
	upper, err := minibuckets.Run(ctx, e, plan, 0)
	if err != nil {
		return 0, err
	}
	bound.Upper = upper.Ln
	for _, t := range bucketWeights {
		lower, err := minibuckets.Run(ctx, e, plan, t)
		if err != nil {
			return 0, err
		}
		if lower.Ln > bound.Lower { // not where it is no number
			bound.Lower = lower.Ln
		}
	}
	return plan.Flops*float64(1+len(bucketWeights)) + plan.Matching, nil
}
