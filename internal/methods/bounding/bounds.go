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

// Contract implements contraction.Contractor: it computes the bounds of the part's kind. The value has bounds of ln Z, but neither Z nor
// anything that is wanted. A lower bound of −Inf or an upper bound of +Inf says nothing. q.Shape has to be the shape of the simplified
// network. If q.Masked is set, the network is simplified without the evidence, so that the shape is the same for all evidence. Afterwards
// the evidence sets entries of tables to 0.
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
	if e.Scale.IsZero() { // Z is 0, which other parts report
		return v, nil
	}
	v.Bound.Least = lnLeastWeight(e) // bounds ln Z from below if Z is not 0
	switch q.Kind {
	case Modes:
		v.Flops = modes.Work(e)
		v.Bound.Lower, err = modes.LowerBound(ctx, e)
	case MiniBuckets:
		v.Flops, err = boundByMiniBuckets(ctx, e, q, p.Memory, v.Bound)
		if math.IsInf(v.Bound.Upper, -1) { // Z is 0, which other parts report
			v.Bound.Upper = math.Inf(1)
		}
	default:
		return boundSpins(ctx, p, q, e, v)
	}
	return v, err
}

// boundSpins sets the bound of v for a network of spins: an upper bound by a determinant or a lower bound by Bethe's value, as the kind of
// q says. e has to be a network of positive tables over two spins. If q.Masked is set, evidence has set entries of e to 0. If e is
// therefore no such network, v is returned as it is.
func boundSpins(ctx context.Context, p *problem.Problem, q *Bound, e *sumproduct.Expression, v btn.Value) (_ btn.Value, err error) {
	model := ising.New(e) // nil if e is no such network
	if model == nil && q.Masked {
		return v, nil
	}
	if model == nil || e.Scale.Sign() <= 0 {
		return btn.Value{}, fault.New(fault.Unsupported, "a bound of kind %s is for positive tables over two spins", q.Kind)
	}
	constant := e.Scale.LogAbs() + model.Constant

	if q.Kind != Determinant { // Bethe
		v.Flops = float64(q.Rounds) * betheRoundFlops * float64(len(model.To)) // To has two entries for each coupling
		v.Bound.Lower, err = isingbounds.LowerBound(ctx, model, q.Rounds)
		v.Bound.Lower += constant
		return v, err
	}

	// A determinant.
	rounds := q.Rounds
	if q.Start { // only the bound of the start, before any round
		rounds = 0
	}
	flops, bytes := isingbounds.DeterminantCost(model.N, rounds, max(q.Slices, 1))
	if bytes > float64(p.Memory) {
		return btn.Value{}, fault.New(fault.OverBudget, "%w: a determinant of %d spins needs %.3g bytes, %d are allowed",
			contraction.ErrMemory, model.N, bytes, p.Memory)
	}
	v.Flops = flops
	v.Bound.Upper, err = isingbounds.UpperBound(ctx, model, rounds, max(q.Slices, 1))
	v.Bound.Upper += constant
	return v, err
}

// betheRoundFlops is the flops of a round of isingbounds.LowerBound for each directed coupling: nine runs of 60 flops.
const betheRoundFlops = 9 * 60

// boundByMessages returns the upper bound of ln Z that follows from the messages of belief propagation after at most q.Rounds updates. The
// problem keeps the messages (ProblemGround), and another part of the plan needs them for the value of belief propagation. So this part
// only adds a pass over the messages. If Z is 0 there are no messages (State is nil), and the bound is +Inf.
func boundByMessages(ctx context.Context, p *problem.Problem, q *Bound) (btn.Value, error) {
	g, err := regions.ProblemGround(ctx, p, int64(q.Rounds))
	if err != nil {
		return btn.Value{}, err
	}
	v := btn.Value{Bound: &btn.BoundValue{Lower: math.Inf(-1), Upper: math.Inf(1)}}
	if g.State != nil {
		v.Bound.Upper = g.State.UpperBound()
	}
	return v, nil
}

// lnLeastWeight returns ln of the product of the smallest positive entries of all tables. That is a lower bound of the weight of any state
// with a weight above 0, and so of Z if Z is not 0. It returns nil if entries are below 0, or if the product is 0 or not finite.
func lnLeastWeight(e *sumproduct.Expression) *float64 {
	if e.Signed() {
		return nil
	}
	ln := e.Scale.LogAbs()
	for _, t := range e.Tables {
		smallest := math.Inf(1) // stays if the table has no entry above 0: then the result is nil
		for _, x := range t.Data {
			if x > 0 {
				smallest = min(smallest, x)
			}
		}
		ln += floats.Ln(smallest)
	}
	if math.IsInf(ln, 0) || math.IsNaN(ln) {
		return nil
	}
	return &ln
}

// simplify returns the simplified network of a problem: without its evidence if masked, otherwise under its evidence.
func simplify(ctx context.Context, p *problem.Problem, masked bool) (*truncated.Prepared, error) {
	if masked {
		return truncated.SimplifyBase(ctx, p)
	}
	return truncated.Simplify(ctx, p, withoutMarginals)
}

// withoutMarginals tells truncated.Simplify that the marginals of the simplified network are not needed.
const withoutMarginals = false

// boundByMiniBuckets sets the upper and the lower bound of ln Z by mini-buckets along q.Order: eliminations whose tables are split so that
// they have at most q.Entries entries. One run gives the upper bound. Each of bucketWeights gives a lower bound, and the largest counts. A
// lower bound that is NaN is left out. It returns the flops. The error is over budget if mini-buckets need more than memory bytes.
func boundByMiniBuckets(ctx context.Context, e *sumproduct.Expression, q *Bound, memory int64, bound *btn.BoundValue) (float64, error) {
	plan, err := minibuckets.NewPlan(e.Hypergraph(), q.Order, q.Entries)
	if err != nil {
		return 0, err
	}
	if plan.Bytes > float64(memory) {
		return 0, fault.New(fault.OverBudget, "%w: mini-buckets need %.3g bytes, %d are allowed", contraction.ErrMemory, plan.Bytes, memory)
	}
	const forUpperBound = 0 // in place of a weight
	upper, err := minibuckets.Run(ctx, e, plan, forUpperBound)
	if err != nil {
		return 0, err
	}
	bound.Upper = upper.Ln
	for _, weight := range bucketWeights {
		lower, err := minibuckets.Run(ctx, e, plan, weight)
		if err != nil {
			return 0, err
		}
		if lower.Ln > bound.Lower { // false for NaN
			bound.Lower = lower.Ln
		}
	}
	return plan.Flops*float64(1+len(bucketWeights)) + plan.Matching, nil // the runs; matching is for the upper bound only
}
