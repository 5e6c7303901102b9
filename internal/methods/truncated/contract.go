package truncated

// One contraction along a plan at a bond, under evidence and in one slice.

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
	Rows       [][]float64   // P(x_v = a) of the network's variables; nil: they were not asked for, or Z is not above 0
	Flops      float64
	Truncation btn.Truncation
}

// Contract contracts the network along a plan with at most bond values on a leg, within memory bytes (0: query.DefaultMemory). The answer
// has marginals if they are asked for and the network was prepared for them. Along a tree nothing is truncated if marginals are asked
// for, or if that takes little more work (isBetterUntruncated). Errors: over budget with the bytes, before anything is computed; the
// context's.
func (p *Prepared) Contract(ctx context.Context, plan *TruncatedPlan, bond int, memory int64, marginals bool) (Answer, error) {
	e := p.simple.Expression
	if e.Scale.IsZero() {
		return Answer{}, nil
	}

	bond, err := p.chooseBond(ctx, plan, bond, memory, marginals)
	if err != nil {
		return Answer{}, err
	}
	v, err := contractExpression(ctx, p, e, plan, bond, memory, marginals)
	if err != nil {
		return Answer{}, err
	}
	answer := newAnswer(v)
	if p.signed { // terms may cancel, so that the rounding has to be bounded
		const noMarginals = false
		contractAbsolute := func() (legs.Value, error) {
			return contractExpression(ctx, p, e.Absolute(), plan, bond, memory, noMarginals)
		}
		if err := boundRounding(p, &answer, contractAbsolute); err != nil {
			return Answer{}, err
		}
	}

	if !marginals || answer.Z.Sign() <= 0 || v.Marginals == nil { // there are no marginals of a Z that is not above 0
		return answer, nil
	}
	answer.Rows, err = p.VariableMarginals(v.Marginals)
	return answer, err
}

// chooseBond returns the bond at which a plan is contracted: mostBond if nothing is to be truncated along a tree, else the given one. If an
// entry is below 0, it checks that the memory holds also the contraction of absolute values.
func (p *Prepared) chooseBond(ctx context.Context, plan *TruncatedPlan, bond int, memory int64, marginals bool) (int, error) {
	if plan.Family == query.FamilyTree {
		isBetter, err := p.isBetterUntruncated(ctx, plan, bond, memory)
		if err != nil {
			return 0, err
		}
		if marginals || isBetter { // marginals need a tree without truncation (SearchOptions.Marginals)
			bond = mostBond
		}
	}
	if p.absolute > 0 {
		c, err := p.Price(ctx, plan, bond, marginals)
		if err == nil {
			err = legs.CheckMemory(c.Bytes, legs.MemoryOrDefault(memory), bond)
		}
		if err != nil {
			return 0, err
		}
	}
	return bond, nil
}

// contractExpression contracts an expression that has the network's shape, along a sweep or a tree. The plan was made without evidence;
// Restrict leaves out of a sweep the indices that the evidence fixes, whose dimension is 1. Truncations also drop directions whose singular
// values are within rounding of the largest. If terms have both signs, truncations keep these directions, since the smallest direction may
// be all that does not cancel.
func contractExpression(
	ctx context.Context, p *Prepared, e *sumproduct.Expression, plan *TruncatedPlan, bond int, memory int64, marginals bool,
) (legs.Value, error) {
	cutoff := 0.0 // stands for the default of the options, near rounding
	if p.signed {
		cutoff = math.SmallestNonzeroFloat64 // drops only zeros
	}
	if plan.Family == query.FamilySweep {
		return sweeps.Contract(ctx, e, sweepPlan(plan).Restrict(e.Dims),
			sweeps.Options{Bond: bond, Memory: memory, Marginals: marginals, Cutoff: cutoff})
	}
	tree, err := decodeTree(plan.Tree)
	if err != nil {
		return legs.Value{}, err
	}
	return trees.Contract(ctx, e, tree, trees.Options{Bond: bond, Memory: memory, Marginals: marginals, Cutoff: cutoff})
}

// boundRounding sets a.Truncation.Rounding, a bound of the rounding error of Z: the number of roundings of a term, times 2^−53, times
// Σ|terms|. If an entry is below 0, contractAbsolute contracts the absolute values of all entries, which gives Σ|terms|; otherwise that is
// |Z|.
func boundRounding(p *Prepared, a *Answer, contractAbsolute func() (legs.Value, error)) error {
	// Roundings of the simplification, two for each table, and those of a sum of as many terms as there are flops.
	roundings := p.simple.Rounding + float64(2*len(p.simple.Expression.Tables)) + floats.SumRoundings(max(1, a.Flops))
	size := a.Z.Abs()
	if p.absolute > 0 {
		v, err := contractAbsolute()
		if err != nil {
			return err
		}
		a.Flops += v.Flops
		a.Truncation.Bytes = max(a.Truncation.Bytes, v.PeakBytes+float64(p.absolute))
		if absoluteSum := v.Z.Abs(); absoluteSum.Cmp(size) > 0 {
			size = absoluteSum
		}
	}
	rounding := size.Mul(scaled.FromFloat(math.Ldexp(roundings, -53)))
	a.Truncation.Rounding = &rounding
	return nil
}

// newAnswer returns the answer with the Z, the costs and the truncations of a value, without marginals.
func newAnswer(v legs.Value) Answer {
	return Answer{Z: v.Z, Flops: v.Flops, Truncation: btn.Truncation{
		Bond: v.Bond, Discarded: v.Discarded, Truncated: v.Truncated, Bytes: v.PeakBytes,
	}}
}

// Sampler returns a sampler of states along a sweep, within memory bytes (0: query.DefaultMemory). bond, at least 1, is the largest number
// of values of an index between two neighbouring tensors of the swept state; it has no default, and what exceeds it is truncated. The plan
// was made without evidence. An index that the evidence fixes has dimension 1 in the expression, and Restrict leaves it out of the plan.
// Errors: those of sweeps.NewSampler, and internal for the plan of a tree.
func (p *Prepared) Sampler(ctx context.Context, plan *TruncatedPlan, bond int, memory int64) (*sweeps.Sampler, error) {
	if plan.Family != query.FamilySweep {
		return nil, fault.New(fault.Internal, "truncated: states are drawn along a sweep, the plan is a %s", plan.Family)
	}
	return sweeps.NewSampler(ctx, p.simple.Expression, sweepPlan(plan).Restrict(p.simple.Expression.Dims),
		sweeps.Options{Bond: bond, Memory: memory})
}

// untruncatedGain is the largest ratio of flops for which a contraction without any truncation, not even of null directions, is chosen.
// A bound: none of 69 models takes more flops without truncation than with it, decision 20.
const untruncatedGain = 4

// isBetterUntruncated reports whether a tree should be contracted without any truncation: it loses nothing at the given bond, and without
// truncation it fits the memory and takes little more work. Even a truncation that loses nothing drops directions within rounding of the
// largest, which may count for more in the end.
func (p *Prepared) isBetterUntruncated(ctx context.Context, plan *TruncatedPlan, bond int, memory int64) (bool, error) {
	const noMarginals = false
	truncated, err := p.Price(ctx, plan, bond, noMarginals)
	if err != nil || !truncated.Lossless {
		return false, err
	}
	untruncated, err := p.Price(ctx, plan, mostBond, noMarginals)
	// Up to 10^6 flops more are always worth it; treeRate because prices are in flops of a sweep.
	return untruncated.Bytes <= legs.MemoryOrDefault(memory) && untruncated.Flops <= untruncatedGain*truncated.Flops+treeRate*1e6, err
}
