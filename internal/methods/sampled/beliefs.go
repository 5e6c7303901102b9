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
	// Follow is the least change of a message after which the messages that depend on it are updated; 0: none is updated.
	Follow float64 `msgpack:"follow,omitempty"`
	// Defence is the share of mini-buckets in the mixture. It is also taken as the share of values which messages may have lost.
	Defence float64 `msgpack:"defence,omitempty"`
}

// Fits implements Sampling. It returns an error if a field of the kind is out of its range.
func (s *Beliefs) Fits(n *btn.Network, end int64) error {
	if !(s.Follow >= 0 && s.Follow <= 1 && s.Defence > 0 && s.Defence < 1) {
		return btn.Misfit("beliefs that follow by %v with a defence of %v", s.Follow, s.Defence)
	}
	return s.Independent.Fits(n, end)
}

// UnseenShare implements Sampling. It returns twice s.Defence, which is also taken as the share of values that messages have lost.
func (s *Beliefs) UnseenShare() float64 { return 2 * s.Defence }

// Draw implements Sampling. It makes the independent draws from ≤ c < to and returns their weights in Value.Weights.
func (s *Beliefs) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent. It runs belief propagation and returns the distribution that draws from its messages, mixed with
// mini-buckets. The error is over budget if the messages do not fit the memory.
func (s *Beliefs) distribution(ctx context.Context, m material) (*importance.Proposal, error) {
	e := m.prepared.Expression()
	if bytes := beliefs.Bytes(e); bytes > float64(m.freeMemory) {
		return nil, fault.New(fault.OverBudget, "messages need %.3g bytes, %d are allowed", bytes, m.freeMemory)
	}
	state, err := beliefs.Propagate(ctx, e)
	if err != nil {
		return nil, err
	}
	messages, err := beliefs.New(ctx, e, state, s.Follow)
	if err != nil {
		return nil, err
	}
	return importance.NewBeliefs(e, m.bound, messages, s.Defence)
}

// tryBeliefs makes pilot draws from messages of belief propagation, which are updated more and more often while values are drawn
// (Beliefs.Follow). The limit is policy.BeliefsShare of the trial's, and the work does not count in the trial's spent. It tries nothing if
// the messages do not fit the memory or the limit, or if they contradict each other.
func tryBeliefs(ctx context.Context, c *trial) error {
	e := c.prepared.Expression()
	spentBefore := c.spent
	defer func() { c.spent = spentBefore }()
	limit := c.spent + policy.BeliefsShare*c.limit

	// Compute mini-buckets that fit next to the messages, then the messages.
	base := &Beliefs{Independent: c.initial, Defence: policy.BeliefsDefence}
	if base.Kind = ByBeliefs; proposal.HasConstraint(e) {
		base.Defence = policy.BeliefsHardDefence
	}
	plan, bound, err := c.bucketsWithin(ctx, &base.Independent, float64(c.settings.Memory)-beliefs.Bytes(e))
	if err != nil || plan == nil || c.spent+beliefs.MaxWork(e) > limit {
		return err
	}
	state, err := beliefs.Propagate(ctx, e)
	if err != nil { // they contradict one another, or leave the range of float64
		return ctx.Err()
	}
	c.spent += beliefs.WorkDone(e, state)
	base.Setup = plan.Flops + plan.Matching + beliefs.WorkDone(e, state)

	for _, base.Follow = range policy.BeliefsFollow { // sets base.Follow to one after the other
		messages, err := beliefs.New(ctx, e, state, base.Follow)
		if err != nil {
			return err
		}
		base.Each = plan.Draw + messages.Flops()
		if c.spent+2*base.Each*pilotChains > limit { // too expensive: the draws, and about as many states that are weighed
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

// bucketsWithin returns the plan and the tables of mini-buckets that take at most the given bytes. They are those of the trial if these
// fit. Otherwise it halves d.Entries, the largest number of entries of a product, until new ones fit, and counts their work as spent. The
// plan is nil if none fit. d.Entries keeps the last number tried.
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
	const fromAbove = 0 // an upper bound, whose mini-buckets are drawn from
	bound, err := minibuckets.Run(ctx, c.prepared.Expression(), plan, fromAbove)
	if err != nil {
		return nil, nil, err
	}
	c.spent += plan.Flops + plan.Matching
	return plan, bound, nil
}
