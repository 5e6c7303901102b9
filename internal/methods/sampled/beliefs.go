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
	// Follow is the change of a message from which the messages that depend on it are updated; 0: none is.
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
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent: messages, mixed with mini-buckets. The error is over budget if the messages do not fit the memory.
func (s *Beliefs) distribution(ctx context.Context, m material) (*importance.Proposal, error) {
	e := m.prepared.Expression()
	if bytes := beliefs.Bytes(e); bytes > float64(m.freeMemory) {
		return nil, fault.New(fault.OverBudget, "messages need %.3g bytes, %d are allowed", bytes, m.freeMemory)
	}
	state, err := beliefs.Messages(ctx, e)
	if err != nil {
		return nil, err
	}
	messages, err := beliefs.New(ctx, e, state, s.Follow)
	if err != nil {
		return nil, err
	}
	return importance.NewBeliefs(e, m.bound, messages, s.Defence)
}

// tryBeliefs tries draws from messages that follow the drawn values more and more closely. It has policy.BeliefsShare of the limit for
// itself: the trial's spent is as before when it returns. It tries nothing if the messages do not fit the memory or that share, or if
// they contradict each other.
func tryBeliefs(ctx context.Context, c *trial) error {
	e := c.prepared.Expression()
	before := c.spent
	defer func() { c.spent = before }()
	limit := c.spent + policy.BeliefsShare*c.limit
	base := &Beliefs{Independent: c.common, Defence: policy.BeliefsDefence}
	if base.Kind = ByBeliefs; proposal.HasConstraint(e) {
		base.Defence = policy.BeliefsHardDefence
	}
	plan, bound, err := c.bucketsWithin(ctx, &base.Independent, float64(c.settings.Memory)-beliefs.Bytes(e))
	if err != nil || plan == nil || c.spent+beliefs.Setup(e) > limit {
		return err
	}
	state, err := beliefs.Messages(ctx, e)
	if err != nil { // they contradict one another, or leave the range of float64
		return ctx.Err()
	}
	c.spent += beliefs.Took(e, state)
	base.Setup = plan.Flops + plan.Matching + beliefs.Took(e, state)
	for _, base.Follow = range policy.BeliefsFollow {
		messages, err := beliefs.New(ctx, e, state, base.Follow)
		if err != nil {
			return err
		}
		base.Each = plan.Draw + messages.Flops()
		if c.spent+2*base.Each*pilotChains > limit {
			continue
		}
		distribution, err := importance.NewBeliefs(e, bound, messages, base.Defence)
		if err != nil {
			return err
		}
		candidate := *base
		if _, err := c.tryKind(ctx, &candidate, distribution); err != nil {
			return err
		}
	}
	return nil
}

// bucketsWithin returns mini-buckets of at most so many bytes: those of the trial, or smaller ones, whose number of entries is halved in d
// until they fit. The plan is nil if none fit.
func (c *trial) bucketsWithin(ctx context.Context, d *Independent, bytes float64) (*minibuckets.Plan, *minibuckets.Bound, error) {
	plan := c.plan
	if plan.Bytes <= bytes {
		return plan, c.bound, nil
	}
	for plan.Bytes > bytes {
		if d.Entries /= 2; d.Entries < 1 {
			return nil, nil, nil
		}
		var err error
		if plan, err = minibuckets.NewPlan(c.prepared.Hypergraph(), d.Order, d.Entries); err != nil {
			return nil, nil, err
		}
	}
	bound, err := minibuckets.Run(ctx, c.prepared.Expression(), plan, 0)
	if err != nil {
		return nil, nil, err
	}
	c.spent += plan.Flops + plan.Matching
	return plan, bound, nil
}
