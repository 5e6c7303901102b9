package sampled

// Independent draws from the states of a truncated sweep.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// BySweep is the kind of Sweep.
const BySweep Kind = "sweep"

// Sweep is independent draws from the states of a truncated sweep, mixed with mini-buckets.
type Sweep struct {
	Independent
	// Sweep is the plan of the sweep, and Bond the largest number of values that it keeps on a leg.
	Sweep *truncated.TruncatedPlan `msgpack:"sweep,omitempty"`
	Bond  int                      `msgpack:"bond,omitempty"`
	// Defence is the share of mini-buckets in the mixture. It is also taken as the share of values which a truncation may have lost.
	Defence float64 `msgpack:"defence,omitempty"`
}

// Fits implements Sampling. It returns an error if a field of the kind is out of its range.
func (s *Sweep) Fits(n *btn.Network, end int64) error {
	if s.Sweep == nil || s.Sweep.Family != query.FamilySweep || s.Bond < 1 || !(s.Defence > 0 && s.Defence < 1) {
		return btn.Misfit("a sweep of bond %d with a defence of %v, or none", s.Bond, s.Defence)
	}
	return s.Independent.Fits(n, end)
}

// Describe implements Sampling. It sets the bond.
func (s *Sweep) Describe(r *query.EstimateResult) { r.Bond = s.Bond }

// UnseenShare implements Sampling. It returns twice s.Defence, which is also taken as the share of values that the truncation has lost.
func (s *Sweep) UnseenShare() float64 { return 2 * s.Defence }

// Draw implements Sampling. It makes the independent draws from ≤ c < to and returns their weights in Value.Weights.
func (s *Sweep) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent. It runs the truncated sweep and returns the distribution that draws from it, mixed with
// mini-buckets.
func (s *Sweep) distribution(ctx context.Context, m material) (*importance.Proposal, error) {
	sweep, err := m.prepared.Sampler(ctx, s.Sweep, s.Bond, m.freeMemory)
	if err != nil {
		return nil, err
	}
	return importance.New(m.prepared.Expression(), m.bound, sweep, s.Defence)
}

// pilotBond is the first bond of a sweep that is tried. firstSearch is the share of a pilot's work for the search for a sweep, and as
// much for the tables of mini-buckets.
// Chosen.
const (
	pilotBond   = 4
	firstSearch = 0.125
)

// trySweeps makes pilot draws from truncated sweeps of bond 4, 8, 16 and so on, each mixed with several shares of mini-buckets. It ends if
// the limit or the memory is reached, or if a bond is no better than smaller ones and the weights of the best kind spread little already.
func trySweeps(ctx context.Context, c *trial) error {
	// Search for the plan of a sweep, which serves all bonds.
	sweep, err := c.prepared.SearchSweep(ctx, truncated.SearchOptions{ // a move is about as much work as a flop
		Bond: 4 * pilotBond, Memory: c.freeMemory, Seed: c.settings.Seed, Moves: int64(firstSearch * c.limit),
	})
	if err != nil { // there is no sweep to try: nil, unless the context has ended
		return ctx.Err()
	}
	c.spent += firstSearch * c.limit
	base := &Sweep{Independent: c.initial, Sweep: &sweep}
	base.Kind = BySweep

	for base.Bond = pilotBond; ; base.Bond *= 2 {
		const marginals = false
		cost, err := c.prepared.Price(ctx, &sweep, base.Bond, marginals)
		if err != nil || c.spent+cost.Flops > c.limit { // the bond is too large for the memory, or for the limit
			return ctx.Err()
		}
		sampler, err := c.prepared.Sampler(ctx, &sweep, base.Bond, c.freeMemory)
		if err != nil { // no room, or nothing is left of the state
			return ctx.Err()
		}
		c.spent += cost.Flops
		base.Setup = c.plan.Flops + c.plan.Matching + cost.Flops
		base.Each = c.plan.Draw + sampler.Flops()
		isImproved, err := c.tryDefences(ctx, *base, sampler)
		if err != nil {
			return err
		}
		if !isImproved && c.best.About().Spread < targetVariance {
			return nil
		}
	}
}

// tryDefences makes pilot draws from mixtures of a sweep and mini-buckets, as long as the limit allows. They differ in their defence, the
// share of mini-buckets. It reports whether one of the mixtures is better than all kinds of draws before.
func (c *trial) tryDefences(ctx context.Context, base Sweep, sampler *sweeps.Sampler) (isImproved bool, err error) {
	for _, defence := range policy.PilotDefences {
		if c.spent+base.Each*pilotChains > c.limit {
			break
		}
		candidate := base // the trial keeps a pointer to it
		candidate.Defence = defence
		distribution, err := importance.New(c.prepared.Expression(), c.bound, sampler, defence)
		if err != nil {
			return false, err
		}
		isBetter, err := c.tryKind(ctx, &candidate, distribution)
		if err != nil {
			return false, err
		}
		isImproved = isImproved || isBetter
	}
	return isImproved, nil
}
