package truncated

// One contraction: a plan, a bond, under evidence and one slice.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Answer is the outcome of a contraction.
type Answer struct {
	Z          scaled.Number // of either sign
	Rows       [][]float64   // P(x_v = a) of the network's variables; nil where they were not asked for, or Z is not above 0
	Flops      float64
	Truncation btn.Truncation
}

// Contract contracts the network along a plan with at most bond values kept on a leg, within memory bytes (0: query.DefaultMemory).
// Marginals are there if the network was prepared for them and they are asked for. Errors: over budget with the bytes, before anything is
// computed; the context's.
func (p *Prepared) Contract(ctx context.Context, plan *TruncatedPlan, bond int, memory int64, marginals bool) (Answer, error) {
	e := p.simple.Expression
	if e.Scale.IsZero() {
		return Answer{}, nil
	}
	if plan.Family == query.FamilyTree {
		whole, err := p.whole(ctx, plan, bond, memory)
		if err != nil {
			return Answer{}, err
		}
		if marginals || whole { // see SearchOptions.Marginals
			bond = mostBond
		}
	}
	if p.absolute > 0 {
		c, err := p.Price(ctx, plan, bond, marginals)
		if err == nil {
			err = legs.Fits(c.Bytes, legs.Memory(memory), bond)
		}
		if err != nil {
			return Answer{}, err
		}
	}
	v, err := value(ctx, p, e, plan, bond, memory, marginals)
	if err != nil {
		return Answer{}, err
	}
	a := answer(v)
	if p.signed {
		if err := cancel(p, &a, func() (legs.Value, error) { return value(ctx, p, e.Abs(), plan, bond, memory, false) }); err != nil {
			return Answer{}, err
		}
	}
	if !marginals || a.Z.Sign() <= 0 || v.Marginals == nil {
		return a, nil
	}
	a.Rows, err = p.Rows(v.Marginals)
	return a, err
}

// value contracts an expression of the network's shape. Among terms of both signs the smallest direction may be all that does not cancel:
// there only the bond drops any.
func value(
	ctx context.Context, p *Prepared, e *sumproduct.Expression, plan *TruncatedPlan, bond int, memory int64, marginals bool,
) (legs.Value, error) {
	cutoff := 0.0
	if p.signed {
		cutoff = math.SmallestNonzeroFloat64
	}
	if plan.Family == query.FamilySweep {
		return sweeps.Contract(ctx, e, sweepPlan(plan).Restrict(e.Dims),
			sweeps.Options{Bond: bond, Memory: memory, Marginals: marginals, Cutoff: cutoff})
	}
	along, err := decodeTree(plan.Tree)
	if err != nil {
		return legs.Value{}, err
	}
	return trees.Contract(ctx, e, along, trees.Options{Bond: bond, Memory: memory, Marginals: marginals, Cutoff: cutoff})
}

// cancel fills Rounding: the roundings of a term, 2^-53 of its size each, times Σ|terms|. The sum of the terms without their signs
// is the value of positive, the same contraction of absolute values.
func cancel(p *Prepared, a *Answer, positive func() (legs.Value, error)) error {
	steps, size := p.simple.Rounding+float64(2*len(p.simple.Expression.Tables))+floats.SumRoundings(max(1, a.Flops)), a.Z.Abs()
	if p.absolute > 0 {
		v, err := positive()
		if err != nil {
			return err
		}
		a.Flops += v.Flops
		a.Truncation.Bytes = max(a.Truncation.Bytes, v.PeakBytes+float64(p.absolute))
		if all := v.Z.Abs(); all.Cmp(size) > 0 {
			size = all
		}
	}
	rounding := size.Mul(scaled.FromFloat(math.Ldexp(steps, -53)))
	a.Truncation.Rounding = &rounding
	return nil
}

// answer is a value without marginals.
func answer(v legs.Value) Answer {
	return Answer{Z: v.Z, Flops: v.Flops, Truncation: btn.Truncation{
		Bond: v.Bond, Discarded: v.Discarded, Truncated: v.Truncated, Bytes: v.PeakBytes,
	}}
}

// Sampler returns the sampler of states along a sweep, within memory bytes (0: query.DefaultMemory). Errors: as sweeps.NewSampler, and
// internal for the plan of a tree.
func (p *Prepared) Sampler(ctx context.Context, plan *TruncatedPlan, bond int, memory int64) (*sweeps.Sampler, error) {
	if plan.Family != query.FamilySweep {
		return nil, fault.New(fault.Internal, "truncated: states are drawn along a sweep, the plan is a %s", plan.Family)
	}
	return sweeps.NewSampler(ctx, p.simple.Expression, sweepPlan(plan).Restrict(p.simple.Expression.Dims),
		sweeps.Options{Bond: bond, Memory: memory})
}

// untruncatedGain is the largest ratio of flops at which a contraction without any truncation, not
// even of null values, is preferred.
// A bound: none of 69 models takes more flops without truncation than with it, decision 20.
const untruncatedGain = 4

// whole reports whether a tree that loses nothing at a bond had better be contracted without any truncation: null directions are dropped
// within rounding of the largest, and may count for more than that in the end.
func (p *Prepared) whole(ctx context.Context, plan *TruncatedPlan, bond int, memory int64) (bool, error) {
	now, err := p.Price(ctx, plan, bond, false)
	if err != nil || !now.Lossless {
		return false, err
	}
	c, err := p.Price(ctx, plan, mostBond, false)
	return c.Bytes <= legs.Memory(memory) && c.Flops <= untruncatedGain*now.Flops+treeRate*1e6, err
}
