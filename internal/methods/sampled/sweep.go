package sampled

// Independent draws from the states of a truncated sweep.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// BySweep is the kind of Sweep.
const BySweep Kind = "sweep"

// Sweep is independent draws from the states of a truncated sweep, mixed with mini-buckets.
type Sweep struct {
	Independent
	// Sweep is the plan of the sweep, with its maximum number of values on a leg.
	Sweep *truncated.TruncatedPlan `msgpack:"sweep,omitempty"`
	Bond  int                      `msgpack:"bond,omitempty"`
	// Defence is the share of mini-buckets in the mixture, and the share of values which a truncation may have lost.
	Defence float64 `msgpack:"defence,omitempty"`
}

// Fits implements Sampling.
func (s *Sweep) Fits(n *btn.Network, end int64) error {
	if s.Sweep == nil || s.Sweep.Family != query.FamilySweep || s.Bond < 1 || !(s.Defence > 0 && s.Defence < 1) {
		return btn.Misfit("a sweep of bond %d with a defence of %v, or none", s.Bond, s.Defence)
	}
	return s.Independent.Fits(n, end)
}

// Describe implements Sampling.
func (s *Sweep) Describe(r *query.EstimateResult) { r.Bond = s.Bond }

// Missed implements Sampling.
func (s *Sweep) Missed() float64 { return 2 * s.Defence }

// Draw implements Sampling.
func (s *Sweep) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return draw(ctx, p, s, from, to, want)
}

func (s *Sweep) proposal(ctx context.Context, b beside) (*importance.Proposal, error) {
	sweep, err := b.own.Sampler(ctx, s.Sweep, s.Bond, b.left)
	if err != nil {
		return nil, err
	}
	return importance.New(b.own.Expression(), b.bound, sweep, s.Defence)
}

// pilotBond is the first bond of a sweep. firstSearch is the share of a pilot's work that goes into each of the search for a sweep and
// the tables of mini-buckets.
// Chosen.
const (
	pilotBond   = 4
	firstSearch = 0.125
)

// trySweeps tries sweeps of growing bonds mixed with mini-buckets.
func trySweeps(ctx context.Context, c *trial) error {
	e := c.own.Expression()
	sweep, err := c.own.Sweep(ctx, truncated.SearchOptions{
		Bond: 4 * pilotBond, Memory: c.left, Seed: c.s.Seed, Moves: int64(firstSearch * c.work),
	})
	if err != nil {
		return ctx.Err()
	}
	c.spent += firstSearch * c.work
	given := &Sweep{Independent: c.given, Sweep: &sweep}
	given.Kind = BySweep
	for given.Bond = pilotBond; ; given.Bond *= 2 {
		cost, err := c.own.Price(ctx, &sweep, given.Bond, false)
		if err != nil || c.spent+cost.Flops > c.work {
			return ctx.Err()
		}
		sampler, err := c.own.Sampler(ctx, &sweep, given.Bond, c.left)
		if err != nil { // no room, or nothing is left of the state
			return ctx.Err()
		}
		c.spent += cost.Flops
		given.Setup = c.plan.Flops + c.plan.Matching + cost.Flops
		given.Each = c.plan.Draw + sampler.Flops()
		improved := false
		for _, defence := range policy.PilotDefences {
			if c.spent+given.Each*pilotChains > c.work {
				break
			}
			given.Defence = defence
			p, err := importance.New(e, c.bound, sampler, defence)
			if err != nil {
				return err
			}
			own := *given
			better, err := c.try(ctx, &own, p)
			if err != nil {
				return err
			}
			improved = improved || better
		}
		if !improved && c.best.About().Spread < targetVariance {
			return nil
		}
	}
}
