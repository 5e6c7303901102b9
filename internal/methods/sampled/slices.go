package sampled

// Independent draws of the values of a cut-set, whose slices are contracted.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/sampled/cutset"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// BySlices is the kind of Slices.
const BySlices Kind = "slices"

// Slices is independent draws of the values of a cut-set from mini-buckets, whose slices are contracted (package cutset).
type Slices struct {
	Independent
	// Rest is the number of indices that are summed out in each slice, the first of Order. All others are drawn.
	Rest int `msgpack:"rest,omitempty"`
}

// Fits implements Sampling.
func (s *Slices) Fits(n *btn.Network, end int64) error {
	if s.Rest < 1 || s.Rest > len(s.Order) {
		return btn.Misfit("%d of %d indices are summed out", s.Rest, len(s.Order))
	}
	return s.Independent.Fits(n, end)
}

// Draw implements Sampling.
func (s *Slices) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent: mini-buckets for the cut-set, and exact contraction of the first Rest indices of the order.
func (s *Slices) distribution(ctx context.Context, m material) (*importance.Proposal, error) {
	rest, err := cutset.New(ctx, m.prepared.Expression(), m.plan.Order, s.Rest, m.freeMemory)
	if err != nil {
		return nil, err
	}
	return importance.NewSlices(m.prepared.Expression(), m.bound, rest, s.Rest)
}

// slicesShare is the work of the pilot of slices, relative to that of the pilot of all other draws. firstSlice is the number of entries
// of the largest product in the first try, and sliceGrowth its growth with each try. sliceTries is the number of tries after which slices
// are given up if none was the best.
// Chosen. Measured: on independent sets of a 3-regular graph of 120 vertices the variance of a
// slice of 64 entries is a third of a state's, at four times the work, with 512 a twelfth, at six
// times.
const (
	slicesShare = 0.4
	firstSlice  = 64
	sliceGrowth = 8
	sliceTries  = 3
)

// trySlices tries cut-sets of fewer and fewer indices, whose slices take more and more work. It has slicesShare of the limit for itself:
// the trial's spent is as before when it returns. It ends at the first cut-set that is no improvement on a smaller one, or exceeds its
// limit or the memory.
func trySlices(ctx context.Context, c *trial) error {
	h := c.prepared.Hypergraph()
	before := c.spent
	defer func() { c.spent = before }()
	limit := c.spent + slicesShare*c.limit
	last, tried := -1, 0
	for entries := float64(firstSlice); entries <= policy.MostBucketEntries; entries *= sliceGrowth {
		order, rest, ok := cutset.Choose(h, c.common.Order, entries, int(policy.FillShare*c.settings.Budget))
		if !ok || rest == len(order) {
			return ctx.Err()
		}
		if rest == last || rest == 0 {
			continue
		}
		last = rest
		candidate := &Slices{c.common, rest}
		candidate.Kind, candidate.Order = BySlices, order
		plan, err := minibuckets.NewPlan(h, order, candidate.Entries)
		if err != nil {
			return err
		}
		cost, err := cutset.Price(h, plan.Order, rest)
		if err != nil {
			return err
		}
		memory := c.settings.Memory - int64(plan.Bytes)
		candidate.Setup = plan.Flops + plan.Matching + cost.Flops
		candidate.Each = plan.DrawWork(rest) + cost.Flops
		if c.spent+candidate.Setup+candidate.Each*pilotChains > limit || cost.Bytes+cost.Each > float64(memory) {
			return ctx.Err()
		}
		c.spent += candidate.Setup
		distribution, err := buildDistribution(ctx, c.prepared, candidate, c.settings.Memory)
		if err != nil {
			return err
		}
		if c.prepared.Marginals() {
			candidate.Each += cost.Marginals
		}
		isBetter, err := c.tryKind(ctx, candidate, distribution)
		tried++
		if _, isBest := c.best.(*Slices); err != nil || !isBetter && (isBest || tried == sliceTries) {
			return err
		}
	}
	return nil
}
