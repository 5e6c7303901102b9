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
	// Rest is the number of indices summed out, the first of Order; all others are drawn.
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
	return draw(ctx, p, s, from, to, want)
}

func (s *Slices) proposal(ctx context.Context, b beside) (*importance.Proposal, error) {
	rest, err := cutset.New(ctx, b.own.Expression(), b.plan.Order, s.Rest, b.left)
	if err != nil {
		return nil, err
	}
	return importance.NewSlices(b.own.Expression(), b.bound, rest, s.Rest)
}

// slicesShare is the work of slices beside the pilot of other draws, relative to its work.
// firstSlice is the number of entries of the largest product in the first trial, sliceGrowth its
// growth per trial, and sliceTries the number of trials that may be no better than mini-buckets.
// Chosen. Measured: on independent sets of a 3-regular graph of 120 vertices the variance of a
// slice of 64 entries is a third of a state's, at four times the work, with 512 a twelfth, at six
// times.
const (
	slicesShare = 0.4
	firstSlice  = 64
	sliceGrowth = 8
	sliceTries  = 3
)

// trySlices tries cut-sets of fewer and fewer indices, whose slices take more and more. It has slicesShare of the work for itself,
// and leaves the rest as it is.
func trySlices(ctx context.Context, c *trial) error {
	h := c.own.Hypergraph()
	before := c.spent
	defer func() { c.spent = before }()
	within := c.spent + slicesShare*c.work
	last, tried := -1, 0
	for entries := float64(firstSlice); entries <= policy.MostBucketEntries; entries *= sliceGrowth {
		all, rest, ok := cutset.Choose(h, c.given.Order, entries, int(policy.FillShare*c.s.Budget))
		if !ok || rest == len(all) {
			return ctx.Err()
		}
		if rest == last || rest == 0 {
			continue
		}
		last = rest
		given := &Slices{c.given, rest}
		given.Kind, given.Order = BySlices, all
		plan, err := minibuckets.NewPlan(h, all, given.Entries)
		if err != nil {
			return err
		}
		cost, err := cutset.Price(h, plan.Order, rest)
		if err != nil {
			return err
		}
		memory := c.s.Memory - int64(plan.Bytes)
		given.Setup = plan.Flops + plan.Matching + cost.Flops
		given.Each = plan.DrawWork(rest) + cost.Flops
		if c.spent+given.Setup+given.Each*pilotChains > within || cost.Bytes+cost.Each > float64(memory) {
			return ctx.Err()
		}
		c.spent += given.Setup
		p, err := propose(ctx, c.own, given, c.s.Memory)
		if err != nil {
			return err
		}
		if c.own.Marginals() {
			given.Each += cost.Marginals
		}
		better, err := c.try(ctx, given, p)
		tried++
		if _, best := c.best.(*Slices); err != nil || !better && (best || tried == sliceTries) {
			return err
		}
	}
	return nil
}
