package sampled

// Independent draws from messages of belief propagation.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/beliefs"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
)

// ByBeliefs is the kind of Beliefs.
const ByBeliefs Kind = "beliefs"

// Beliefs is independent draws, index by index, from messages of belief propagation (package beliefs), mixed with mini-buckets.
type Beliefs struct {
	Independent
	// Follow is the change of a message beyond which its dependants are updated; 0: none does.
	Follow float64 `msgpack:"follow,omitempty"`
	// Defence is the share of mini-buckets in the mixture, and the share of values which messages may have lost.
	Defence float64 `msgpack:"defence,omitempty"`
}

// Fits implements Sampling.
func (s *Beliefs) Fits(n *btn.Network, end int64) error {
	if !(s.Follow >= 0 && s.Follow <= 1 && s.Defence > 0 && s.Defence < 1) {
		return btn.Misfit("beliefs that follow by %v with a defence of %v", s.Follow, s.Defence)
	}
	return s.Independent.Fits(n, end)
}

// Missed implements Sampling.
func (s *Beliefs) Missed() float64 { return 2 * s.Defence }

// Draw implements Sampling.
func (s *Beliefs) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return draw(ctx, p, s, from, to, want)
}

func (s *Beliefs) proposal(ctx context.Context, b beside) (*importance.Proposal, error) {
	e := b.own.Expression()
	if bytes := beliefs.Bytes(e); bytes > float64(b.left) {
		return nil, fault.New(fault.OverBudget, "messages need %.3g bytes, %d are allowed", bytes, b.left)
	}
	state, err := beliefs.Messages(ctx, e)
	if err != nil {
		return nil, err
	}
	messages, err := beliefs.New(ctx, e, state, s.Follow)
	if err != nil {
		return nil, err
	}
	return importance.NewBeliefs(e, b.bound, messages, s.Defence)
}

// tryBeliefs tries draws from messages that follow the values more and more closely. It has policy.BeliefsShare of the work for itself, and
// leaves the rest as it is.
func tryBeliefs(ctx context.Context, c *trial) error {
	e := c.own.Expression()
	before := c.spent
	defer func() { c.spent = before }()
	within := c.spent + policy.BeliefsShare*c.work
	given, plan, bound := &Beliefs{Independent: c.given, Defence: policy.BeliefsDefence}, c.plan, c.bound
	if given.Kind = ByBeliefs; proposal.HasConstraint(e) {
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
		if c.spent+2*given.Each*pilotChains > within {
			continue
		}
		p, err := importance.NewBeliefs(e, bound, messages, given.Defence)
		if err != nil {
			return err
		}
		own := *given
		if _, err := c.try(ctx, &own, p); err != nil {
			return err
		}
	}
	return nil
}
