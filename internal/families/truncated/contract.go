package truncated

// One contraction: a plan, a bond, under evidence and one slice.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/legs"
	"github.com/basetensor/basetensor/internal/engine/sweeps"
	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Answer is the outcome of a contraction.
type Answer struct {
	Z          scaled.Number // of either sign
	Rows       [][]float64   // P(x_v = a) of the network's variables; nil where they were not asked for, or Z is not above 0
	Flops      float64
	Truncation btn.Truncation
}

// Contract contracts the network along a plan with at most bond values kept on a leg, within memory bytes (0: btn.DefaultMemory).
// Marginals are there if the network was prepared for them and they are asked for. Errors: over budget with the bytes, before anything is
// computed; the context's.
func (p *Prepared) Contract(ctx context.Context, plan *TruncatedPlan, bond int, memory int64, marginals bool) (Answer, error) {
	e := p.simple.Expression
	if e.Scale.IsZero() {
		return Answer{}, nil
	}
	var v legs.Value
	if plan.Family == btn.FamilySweep {
		var err error
		if v, err = sweeps.Contract(ctx, e, sweepPlan(plan).Restrict(e.Dims),
			sweeps.Options{Bond: bond, Memory: memory, Marginals: marginals}); err != nil {
			return Answer{}, err
		}
	} else {
		along, err := decodeTree(plan.Tree)
		if err != nil {
			return Answer{}, err
		}
		if marginals || p.whole(along, bond, memory) { // see SearchOptions.Marginals
			bond = mostBond
		}
		w, err := trees.Contract(ctx, e, along, trees.Options{Bond: bond, Memory: memory, Marginals: marginals})
		if err != nil {
			return Answer{}, err
		}
		v = w.Value
	}
	a := answer(v)
	if !marginals || a.Z.Sign() <= 0 || v.Marginals == nil {
		return a, nil
	}
	var err error
	a.Rows, err = p.Rows(v.Marginals)
	return a, err
}

// answer is a value without marginals.
func answer(v legs.Value) Answer {
	return Answer{Z: v.Z, Flops: v.Flops, Truncation: btn.Truncation{
		Bond: v.Bond, Discarded: v.Discarded, Truncated: v.Truncated, Bytes: v.PeakBytes,
	}}
}

// Sampler returns the sampler of states along a sweep, within memory bytes (0: btn.DefaultMemory). Errors: as sweeps.NewSampler, and
// internal for the plan of a tree.
func (p *Prepared) Sampler(ctx context.Context, plan *TruncatedPlan, bond int, memory int64) (*sweeps.Sampler, error) {
	if plan.Family != btn.FamilySweep {
		return nil, fault.New(fault.Internal, "truncated: states are drawn along a sweep, the plan is a %s", plan.Family)
	}
	return sweeps.NewSampler(ctx, p.simple.Expression, sweepPlan(plan).Restrict(p.simple.Expression.Dims),
		sweeps.Options{Bond: bond, Memory: memory})
}

// whole reports whether a tree that loses nothing at a bond had better be contracted without any truncation: null directions are dropped
// within rounding of the largest, and may count for more than that in the end.
func (p *Prepared) whole(along trees.Plan, bond int, memory int64) bool {
	h := p.Hypergraph()
	now, err := trees.Evaluate(h, along, bond)
	if err != nil || now.Loss > 0 {
		return false
	}
	c, err := trees.Evaluate(h, along, mostBond)
	return err == nil && c.Bytes <= legs.Memory(memory) && c.Flops <= policy.UntruncatedGain*now.Flops+1e6
}
