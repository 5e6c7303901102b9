package sampled

// Independent draws, and the pilot of what they are drawn from.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Independent has the fields of all kinds of independent draws. They draw from mini-buckets (package engine/minibuckets), or from a mixture
// with mini-buckets, so that their weights are bounded.
type Independent struct {
	Base
	Order   []int   `msgpack:"order,omitempty"`   // indices in the order they are eliminated
	Entries float64 `msgpack:"entries,omitempty"` // largest number of entries of a product of tables
	// Each is the cost of a draw, Setup the cost before the first, flops.
	Each  float64 `msgpack:"each,omitempty"`
	Setup float64 `msgpack:"setup,omitempty"`
}

// independent is a kind of independent draws.
type independent interface {
	Sampling
	// common returns the fields of all kinds of independent draws.
	common() *Independent
	// distribution returns the distribution that is drawn from.
	distribution(context.Context, material) (*importance.Proposal, error)
}

// material has what a distribution is made of.
type material struct {
	prepared   *truncated.Prepared // the simplified network
	plan       *minibuckets.Plan
	bound      *minibuckets.Bound // the mini-buckets along plan
	freeMemory int64              // bytes that the mini-buckets leave
}

// common implements independent. It returns the fields that all kinds of independent draws have.
func (d *Independent) common() *Independent { return d }

// Fits implements Sampling. It returns an error if a cost is below 0 or their sum is not finite.
func (d *Independent) Fits(*btn.Network, int64) error {
	if !(d.Entries >= 0) || !(d.Each >= 0) || !(d.Setup >= 0) || d.Each+d.Setup+d.Entries > math.MaxFloat64 {
		return btn.Misfit("%v entries, %v and %v flops", d.Entries, d.Each, d.Setup)
	}
	return nil
}

// Cost implements Sampling. It returns the flops of a draw, and those before the first.
func (d *Independent) Cost(*Chains) (componentFlops, setupFlops float64) { return d.Each, d.Setup }

// Bytes implements Sampling. It returns the memory of the weights, and of the draws' states if marginals are wanted.
func (*Independent) Bytes(c *Chains, components int64, marginals bool) float64 {
	return importance.Bytes(components, len(c.Prepared.Expression().Dims), marginals)
}

// distributionSlot is the slot of a problem for the distribution of the last kind that was drawn from.
type distributionSlot struct{ marginals bool }

// drawIndependent implements Sampling.Draw for kinds of independent draws. The value has Z, the logarithms of the weights, an upper bound
// of all possible weights if there is one, and marginals if they are wanted and some weight is above 0.
func drawIndependent(ctx context.Context, p *problem.Problem, s independent, from, to int64, want btn.Want) (btn.Value, error) {
	prepared, err := truncated.Simplify(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	// The problem keeps the distribution for the other parts with the same s.
	distribution, err := problem.Form(ctx, p, distributionSlot{want.Marginals}, s, func() (*importance.Proposal, error) {
		return buildDistribution(ctx, prepared, s, p.Memory)
	})
	if err != nil {
		return btn.Value{}, err
	}

	if bytes := importance.Bytes(to-from, len(prepared.Expression().Dims), want.Marginals); bytes > float64(p.Memory) {
		return btn.Value{}, fault.New(fault.OverBudget, "%w: draws need %.3g bytes, %d are allowed", contraction.ErrMemory, bytes, p.Memory)
	}
	w, err := distribution.Run(ctx, s.About().Seed, from, to, p.Threads, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}

	d := s.common()
	v := btn.Value{
		Z:       scaled.FromLog(sampling.LnMean(w.Ln)),
		Flops:   d.Setup + d.Each*float64(to-from),
		Weights: &btn.Weights{Ln: w.Ln},
	}
	if largest := distribution.LnLargestWeight(); !math.IsInf(largest, 0) {
		v.Weights.LnMost = &largest
	}
	if !want.Marginals || math.IsInf(w.Top, -1) {
		return v, nil
	}
	v.Weights.Top = w.Top
	return v, setShares(v.Weights, prepared, w.Share, w.Squares)
}

// buildDistribution computes mini-buckets for the simplified network and returns the distribution that a kind of draws makes of them.
// Errors: internal if the kind was chosen for a network of another shape; over budget if the tables do not fit the memory, before they
// are made; those of package minibuckets and of the kind; the context's.
func buildDistribution(ctx context.Context, prepared *truncated.Prepared, s independent, memory int64) (*importance.Proposal, error) {
	d := s.common()
	if prepared.Shape() != d.Shape {
		return nil, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	e := prepared.Expression()
	plan, err := minibuckets.NewPlan(e.Hypergraph(), d.Order, d.Entries)
	if err != nil {
		return nil, err
	}
	if plan.Bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget, "mini-buckets need %.3g bytes, %d are allowed", plan.Bytes, memory)
	}
	const fromAbove = 0 // an upper bound, whose mini-buckets are drawn from
	bound, err := minibuckets.Run(ctx, e, plan, fromAbove)
	if err != nil {
		return nil, err
	}
	return s.distribution(ctx, material{prepared, plan, bound, memory - int64(plan.Bytes)})
}

// trial chooses between kinds of independent draws. It makes some draws of each kind, none of which is a component, and keeps the kind
// whose mean will vary least.
type trial struct {
	material
	initial       Independent // the common fields that every candidate begins with
	settings      query.Settings
	limit         float64     // flops that the choice may take
	spent         float64     // flops so far
	leastVariance float64     // of the mean weight, over the square of Z, by the best kind
	best          independent // the best kind so far, nil before the first
	chainEnds     *chainEnds  // nil if all chains weigh 0
}

// newTrial returns a trial of at most limit flops, and computes its mini-buckets. It returns nil if nothing can be drawn from: entries are
// below 0, Z is 0, or no mini-buckets fit.
func newTrial(ctx context.Context, prepared *truncated.Prepared, s query.Settings, limit float64, chainEnds *chainEnds) (*trial, error) {
	e := prepared.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	const runs = 1 // of the mini-buckets, within firstSearch of the limit
	order, plan, entries, err := bounding.PlanMiniBuckets(ctx, prepared.Hypergraph(), firstSearch*limit, runs, s)
	if err != nil || plan == nil {
		return nil, err
	}
	const fromAbove = 0 // an upper bound, whose mini-buckets are drawn from
	bound, err := minibuckets.Run(ctx, e, plan, fromAbove)
	if err != nil {
		return nil, err
	}
	return &trial{
		material: material{prepared, plan, bound, s.Memory - int64(plan.Bytes)},
		settings: s, limit: limit, spent: plan.Flops + plan.Matching, leastVariance: math.Inf(1), chainEnds: chainEnds,
		initial: Independent{
			Base: Base{Shape: prepared.Shape(), Seed: s.Seed}, Order: order, Entries: entries, Each: plan.Draw, Setup: plan.Flops + plan.Matching,
		},
	}, nil
}

// chooseIndependent returns the best kind of independent draws, in a trial of at most limit flops. It returns nil if nothing can be drawn
// from. The trial also looks at the ends of chains, where draws may almost never come. If there is an error, it returns the best kind
// before it.
func chooseIndependent(
	ctx context.Context, prepared *truncated.Prepared, s query.Settings, limit float64, chainEnds *chainEnds,
) (Sampling, error) {
	c, err := newTrial(ctx, prepared, s, limit, chainEnds)
	if err != nil || c == nil {
		return nil, err
	}
	err = tryMiniBuckets(ctx, c)
	isExact := c.plan.Split == 0 // no bucket is split: mini-buckets are the model itself
	if err == nil && !isExact {
		for _, k := range kinds {
			if k.try != nil && err == nil { // nil: no independent draws, or tried elsewhere
				err = k.try(ctx, c)
			}
		}
	}
	if c.best == nil {
		return nil, err
	}
	return c.best, err
}

// tryKind makes some draws of kind s from its distribution and sets the spread of its weights. It predicts how much the mean weight would
// vary if draws of kind s took the whole budget. If that is less than for the best kind so far, s becomes the best kind and isBetter is
// true.
func (c *trial) tryKind(ctx context.Context, s independent, distribution *importance.Proposal) (isBetter bool, err error) {
	// The seed differs from that of components, so that the choice does not depend on them.
	d := s.common()
	c.spent += d.Each * pilotChains
	const marginals = false
	w, err := distribution.Run(ctx, ^c.settings.Seed, 0, pilotChains, pilotThreads, marginals)
	if err != nil {
		return false, err
	}
	d.Spread = max(relativeVariance(w.Ln), s.UnseenShare()) // UnseenShare: what draws of this kind may miss

	// The weights that draws would have at the ends of chains may spread further.
	if c.chainEnds != nil {
		c.spent += d.Each * float64(len(c.chainEnds.states))
		lnAtEnds, err := distribution.LnWeights(ctx, c.chainEnds.states)
		if err != nil {
			return false, err
		}
		d.Spread = max(d.Spread, c.chainEnds.spread(lnAtEnds, sampling.LnMean(w.Ln)))
	}

	variance := d.Spread * d.Each / max(c.settings.Budget-d.Setup, d.Each) // of the mean (predictVariance)
	if c.best == nil || variance < c.leastVariance {
		c.leastVariance, c.best, isBetter = variance, s, true
	}
	return isBetter, nil
}

// relativeVariance returns the variance of weights over the square of their mean. ln are their logarithms. To account for large weights
// that were not seen, the result is at least e^v − 1: the ratio for a log-normal distribution whose logarithms have the variance v. v is
// the mean square of the distances of ln from the median, over the half of ln that is above it.
func relativeVariance(ln []float64) float64 {
	mean := sampling.MeanOf(ln)
	if math.IsInf(mean.Ln, -1) { // all weights are 0: a very large variance, the largest that is returned for logarithms
		return math.Expm1(50)
	}
	sorted := slices.Sorted(slices.Values(ln))
	median := sorted[len(sorted)/2]
	if math.IsInf(median, -1) {
		median = mean.Ln
	}
	squares := 0.0 // of the distances above the median, by half of the weights
	for _, x := range sorted[len(sorted)/2:] {
		if x > median {
			squares += (x - median) * (x - median)
		}
	}
	logNormal := math.Expm1(min(50, 2*squares/float64(mean.N)))
	return max(mean.StandardError*mean.StandardError*float64(mean.N), logNormal)
}
