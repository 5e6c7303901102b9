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

// Independent is what kinds of independent draws have: mini-buckets, from which or mixed with which they draw. Weights are bounded.
type Independent struct {
	Base
	Order   []int   `msgpack:"order,omitempty"`   // indices in the order they are eliminated
	Entries float64 `msgpack:"entries,omitempty"` // of a product at most
	// Each is the cost of a draw, Setup the cost before the first, flops.
	Each  float64 `msgpack:"each,omitempty"`
	Setup float64 `msgpack:"setup,omitempty"`
}

// independent is such a kind.
type independent interface {
	Sampling
	buckets() *Independent
	// proposal makes the distribution that is drawn from.
	proposal(context.Context, beside) (*importance.Proposal, error)
}

// beside is what a distribution is made beside: the simplified network, its mini-buckets, and the memory that they leave.
type beside struct {
	own   *truncated.Prepared
	plan  *minibuckets.Plan
	bound *minibuckets.Bound
	left  int64
}

func (d *Independent) buckets() *Independent { return d }

// Fits implements Sampling.
func (d *Independent) Fits(*btn.Network, int64) error {
	if !(d.Entries >= 0) || !(d.Each >= 0) || !(d.Setup >= 0) || d.Each+d.Setup+d.Entries > math.MaxFloat64 {
		return btn.Misfit("%v entries, %v and %v flops", d.Entries, d.Each, d.Setup)
	}
	return nil
}

// Takes implements Sampling.
func (d *Independent) Takes(*Chains) (each, setup float64) { return d.Each, d.Setup }

// Bytes implements Sampling.
func (*Independent) Bytes(c *Chains, components int64, marginals bool) float64 {
	return importance.Bytes(components, len(c.Prepared.Expression().Dims), marginals)
}

// proposalSlot is the place of a proposal among the forms of a problem: that of the last description.
type proposalSlot struct{ marginals bool }

// draw is Draw of a kind of independent draws.
func draw(ctx context.Context, p *problem.Problem, s independent, from, to int64, want btn.Want) (btn.Value, error) {
	prepared, err := truncated.Of(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	proposal, err := problem.Form(ctx, p, proposalSlot{want.Marginals}, s, func() (*importance.Proposal, error) {
		return propose(ctx, prepared, s, p.Memory)
	})
	if err != nil {
		return btn.Value{}, err
	}
	if bytes := importance.Bytes(to-from, len(prepared.Expression().Dims), want.Marginals); bytes > float64(p.Memory) {
		return btn.Value{}, fault.New(fault.OverBudget, "%w: draws need %.3g bytes, %d are allowed", contraction.ErrMemory, bytes, p.Memory)
	}
	w, err := proposal.Run(ctx, s.About().Seed, from, to, p.Threads, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	d := s.buckets()
	v := btn.Value{
		Z:       scaled.FromLog(sampling.LnMean(w.Ln)),
		Flops:   d.Setup + d.Each*float64(to-from),
		Weights: &btn.Weights{Ln: w.Ln},
	}
	if most := proposal.LnMost(); !math.IsInf(most, 0) {
		v.Weights.LnMost = &most
	}
	if !want.Marginals || math.IsInf(w.Top, -1) {
		return v, nil
	}
	v.Weights.Top = w.Top
	return v, shares(v.Weights, prepared, w.Share, w.Squares)
}

// propose makes the distribution that a kind draws from. Errors: internal where the description is for a network of another shape; over
// budget where the tables of mini-buckets, or what is beside them, do not fit the memory, before they are made; those of package
// minibuckets and of the kind; the context's.
func propose(ctx context.Context, prepared *truncated.Prepared, s independent, memory int64) (*importance.Proposal, error) {
	d := s.buckets()
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
	bound, err := minibuckets.Run(ctx, e, plan, 0)
	if err != nil {
		return nil, err
	}
	return s.proposal(ctx, beside{prepared, plan, bound, memory - int64(plan.Bytes)})
}

// trial is a choice between independent draws by how far the weights of some of each kind spread, none of which is a component.
type trial struct {
	beside
	given Independent // what all kinds have
	s     query.Settings
	work  float64 // that the choice may take
	spent float64
	least float64     // variance of the mean
	best  independent // nil before the first
	ends  *ends       // nil where no chain is alive
}

// newTrial makes the mini-buckets of a trial within so much work; nil where nothing can be drawn from.
func newTrial(ctx context.Context, own *truncated.Prepared, s query.Settings, work float64, ends *ends) (*trial, error) {
	e := own.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	order, plan, entries, err := bounding.Buckets(ctx, own.Hypergraph(), firstSearch*work, 1, s)
	if err != nil || plan == nil {
		return nil, err
	}
	bound, err := minibuckets.Run(ctx, e, plan, 0)
	if err != nil {
		return nil, err
	}
	return &trial{
		beside: beside{own, plan, bound, s.Memory - int64(plan.Bytes)},
		s:      s, work: work, spent: plan.Flops + plan.Matching, least: math.Inf(1), ends: ends,
		given: Independent{
			Base: Base{Shape: own.Shape(), Seed: s.Seed}, Order: order, Entries: entries, Each: plan.Draw, Setup: plan.Flops + plan.Matching,
		},
	}, nil
}

// among chooses between the kinds of independent draws within so much work; nil where nothing can be drawn from. The weights that draws
// would have at the ends of some chains count, too: draws never see what their density leaves out. With an error comes the best one
// before it.
func among(ctx context.Context, own *truncated.Prepared, s query.Settings, work float64, ends *ends) (Sampling, error) {
	c, err := newTrial(ctx, own, s, work, ends)
	if err != nil || c == nil {
		return nil, err
	}
	if err = tryMiniBuckets(ctx, c); err == nil && c.plan.Split > 0 {
		for _, k := range kinds {
			if k.try != nil && err == nil {
				err = k.try(ctx, c)
			}
		}
	}
	if c.best == nil {
		return nil, err
	}
	return c.best, err
}

// try draws as described, and keeps what is best.
func (c *trial) try(ctx context.Context, s independent, p *importance.Proposal) (better bool, err error) {
	own := s.buckets()
	c.spent += own.Each * pilotChains
	// Pilots have seeds of their own: components never see what has chosen them.
	w, err := p.Run(ctx, ^c.s.Seed, 0, pilotChains, 1, false)
	if err != nil {
		return false, err
	}
	own.Spread = max(relativeVariance(w.Ln), s.Missed())
	if c.ends != nil {
		c.spent += own.Each * float64(len(c.ends.states))
		at, err := p.Weigh(ctx, c.ends.states)
		if err != nil {
			return false, err
		}
		own.Spread = max(own.Spread, c.ends.spread(at, sampling.LnMean(w.Ln)))
	}
	if got := own.Spread * own.Each / max(c.s.Budget-own.Setup, own.Each); c.best == nil || got < c.least {
		c.least, c.best, better = got, s, true
	}
	return better, nil
}

// relativeVariance is the variance of weights over the square of their mean, or what it would be if the logarithms above their median
// were those of a normal distribution, if that is more: large weights that were not seen.
func relativeVariance(ln []float64) float64 {
	m := sampling.Of(ln)
	if math.IsInf(m.Ln, -1) {
		return math.Expm1(50)
	}
	sorted := slices.Sorted(slices.Values(ln))
	median := sorted[len(sorted)/2]
	if math.IsInf(median, -1) {
		median = m.Ln
	}
	above := 0.0
	for _, l := range sorted[len(sorted)/2:] {
		if l > median {
			above += (l - median) * (l - median)
		}
	}
	return max(m.StandardError*m.StandardError*float64(m.N), math.Expm1(min(50, 2*above/float64(m.N))))
}
