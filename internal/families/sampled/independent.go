package sampled

// Independent components: the pilot of what they are drawn from.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/beliefs"
	"github.com/basetensor/basetensor/internal/engine/cutset"
	"github.com/basetensor/basetensor/internal/engine/importance"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/internal/sampling"
)

// proposals is a choice between independent draws by how far the weights of some of each kind spread, none of which is a component.
type proposals struct {
	own   *truncated.Prepared
	s     btn.Settings
	work  float64 // that the choice may take
	spent float64
	least float64   // variance of the mean
	best  *Sampling // nil before the first
	ends  *ends     // nil where no chain is alive
}

// independent chooses between mini-buckets, slices of growing widths and sweeps of growing bonds within so much work; nil where nothing
// can be drawn from. The weights that draws would have at the ends of some chains count, too: draws never see what their density
// leaves out. With an error comes the best one before it.
func independent(ctx context.Context, own *truncated.Prepared, s btn.Settings, work float64, ends *ends) (*Sampling, error) {
	e := own.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	order, plan, entries, err := bounding.Buckets(ctx, own.Hypergraph(), policy.FirstSearch*work, 1, s)
	if err != nil || plan == nil {
		return nil, err
	}
	bound, err := minibuckets.Run(ctx, e, plan, 0)
	if err != nil {
		return nil, err
	}
	given := Sampling{
		Kind: ByMiniBuckets, Shape: own.Shape(), Seed: s.Seed, Order: order, Entries: entries,
		Each: plan.Draw, Setup: plan.Flops + plan.Matching,
	}
	c := &proposals{own: own, s: s, work: work, spent: plan.Flops + plan.Matching, least: math.Inf(1), ends: ends}
	p, err := importance.New(e, bound, nil, 1)
	if err == nil {
		_, err = c.try(ctx, given, p)
	}
	if err != nil || plan.Split == 0 {
		return c.best, err
	}
	if err = c.slices(ctx, given); err == nil {
		err = c.beliefs(ctx, given, plan, bound)
	}
	if err == nil {
		err = c.sweeps(ctx, given, plan, bound)
	}
	return c.best, err
}

// try draws as described, and keeps what is best.
func (c *proposals) try(ctx context.Context, along Sampling, p *importance.Proposal) (better bool, err error) {
	c.spent += along.Each * policy.PilotChains
	// Pilots have seeds of their own: components never see what has chosen them.
	w, err := p.Run(ctx, ^c.s.Seed, 0, policy.PilotChains, 1, false)
	if err != nil {
		return false, err
	}
	along.Spread = max(relativeVariance(w.Ln), 2*along.Defence)
	if c.ends != nil {
		c.spent += along.Each * float64(len(c.ends.states))
		at, err := p.Weigh(ctx, c.ends.states)
		if err != nil {
			return false, err
		}
		along.Spread = max(along.Spread, c.ends.spread(at, sampling.LnMean(w.Ln)))
	}
	if got := along.Spread * along.Each / max(c.s.Budget-along.Setup, along.Each); c.best == nil || got < c.least {
		c.least, c.best, better = got, &along, true
	}
	return better, nil
}

// slices tries cut-sets of fewer and fewer indices, whose slices take more and more. It has policy.SlicesShare of the work for itself, and
// leaves the rest as it is.
func (c *proposals) slices(ctx context.Context, given Sampling) error {
	h := c.own.Hypergraph()
	before := c.spent
	defer func() { c.spent = before }()
	within := c.spent + policy.SlicesShare*c.work
	order, last, tried := given.Order, -1, 0
	given.Kind = BySlices
	for entries := float64(policy.FirstSlice); entries <= policy.MostBucketEntries; entries *= policy.SliceGrowth {
		all, rest, ok := cutset.Choose(h, order, entries, int(policy.FillShare*c.s.Budget))
		if !ok || rest == len(all) {
			return ctx.Err()
		}
		if rest == last || rest == 0 {
			continue
		}
		last = rest
		given.Order, given.Rest = all, rest
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
		if c.spent+given.Setup+given.Each*policy.PilotChains > within || cost.Bytes+cost.Each > float64(memory) {
			return ctx.Err()
		}
		c.spent += given.Setup
		p, err := Propose(ctx, c.own, &given, c.s.Memory)
		if err != nil {
			return err
		}
		if c.own.Marginals() {
			given.Each += cost.Marginals
		}
		better, err := c.try(ctx, given, p)
		tried++
		if err != nil || !better && (c.best.Kind == BySlices || tried == policy.SliceTries) {
			return err
		}
	}
	return nil
}

// beliefs tries draws from messages that follow the values more and more closely. It has policy.BeliefsShare of the work for itself, and
// leaves the rest as it is.
func (c *proposals) beliefs(ctx context.Context, given Sampling, plan *minibuckets.Plan, bound *minibuckets.Bound) error {
	e := c.own.Expression()
	before := c.spent
	defer func() { c.spent = before }()
	within := c.spent + policy.BeliefsShare*c.work
	given.Kind, given.Defence = ByBeliefs, policy.BeliefsDefence
	if proposal.Forbids(e) {
		given.Defence = policy.BeliefsHardDefence
	}
	room := float64(c.s.Memory) - beliefs.Bytes(e)
	if plan.Bytes > room { // smaller mini-buckets
		for err := error(nil); plan.Bytes > room; {
			if given.Entries /= 2; given.Entries < 1 {
				return nil
			}
			if plan, err = minibuckets.NewPlan(c.own.Hypergraph(), given.Order, given.Entries); err != nil {
				return err
			}
		}
		var err error
		if bound, err = minibuckets.Run(ctx, e, plan, 0); err != nil {
			return err
		}
		c.spent += plan.Flops + plan.Matching
	}
	if c.spent+beliefs.Setup(e) > within {
		return nil
	}
	state, err := beliefs.Messages(ctx, e)
	if err != nil { // they contradict one another, or leave the range of float64
		return ctx.Err()
	}
	c.spent += beliefs.Took(e, state)
	given.Setup = plan.Flops + plan.Matching + beliefs.Took(e, state)
	for _, given.Follow = range policy.BeliefsFollow {
		messages, err := beliefs.New(ctx, e, state, given.Follow)
		if err != nil {
			return err
		}
		given.Each = plan.Draw + messages.Flops()
		if c.spent+2*given.Each*policy.PilotChains > within {
			continue
		}
		p, err := importance.NewBeliefs(e, bound, messages, given.Defence)
		if err != nil {
			return err
		}
		if _, err := c.try(ctx, given, p); err != nil {
			return err
		}
	}
	return nil
}

// sweeps tries sweeps of growing bonds mixed with mini-buckets.
func (c *proposals) sweeps(ctx context.Context, given Sampling, plan *minibuckets.Plan, bound *minibuckets.Bound) error {
	e := c.own.Expression()
	memory := c.s.Memory - int64(plan.Bytes)
	sweep, err := c.own.Sweep(ctx, truncated.SearchOptions{
		Bond: 4 * policy.PilotBond, Memory: memory, Seed: c.s.Seed, Moves: int64(policy.FirstSearch * c.work),
	})
	if err != nil {
		return ctx.Err()
	}
	c.spent += policy.FirstSearch * c.work
	given.Kind, given.Sweep = BySweep, &sweep
	for given.Bond = policy.PilotBond; ; given.Bond *= 2 {
		cost, err := c.own.Price(&sweep, given.Bond, false)
		if err != nil || c.spent+cost.Flops > c.work {
			return ctx.Err()
		}
		sampler, err := c.own.Sampler(ctx, &sweep, given.Bond, memory)
		if err != nil { // no room, or nothing is left of the state
			return ctx.Err()
		}
		c.spent += cost.Flops
		given.Setup = plan.Flops + plan.Matching + cost.Flops
		given.Each = plan.Draw + sampler.Flops()
		improved := false
		for _, defence := range policy.PilotDefences {
			if c.spent+given.Each*policy.PilotChains > c.work {
				break
			}
			given.Defence = defence
			p, err := importance.New(e, bound, sampler, defence)
			if err != nil {
				return err
			}
			better, err := c.try(ctx, given, p)
			if err != nil {
				return err
			}
			improved = improved || better
		}
		if !improved && c.best.Spread < policy.WeightVariance {
			return nil
		}
	}
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
