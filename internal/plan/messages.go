package plan

// The messages of belief propagation without evidence: learned once per network, and where it starts under evidence.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/digest"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// modelMessages are the network's messages without evidence.
type modelMessages struct {
	e          *sumproduct.Expression
	messages   []float64 // nil: there is no start
	remembered bool      // nothing was computed
}

// propagate runs belief propagation under a query's evidence from the network's own messages, and says
// whether those were remembered. Without evidence they are the answer already.
func (a *assigner) propagate(e *sumproduct.Expression, q query.Query) ([]*bp.State, bool, error) {
	m, err := a.ownMessages()
	if err != nil {
		return nil, false, err
	}
	enough, cancel := proposal.Planning(a.Ctx, policy.MessageShare)
	defer cancel()
	o := bp.PropagateOptions{Seed: a.Settings.Seed, Updates: updatesFor(e, a.Settings), Enough: enough}
	if m.messages == nil {
		states, err := bp.Propagate(a.Ctx, e, o)
		return states, m.remembered, err
	}
	if q.Evidence.IsEmpty() {
		s, err := bp.Restore(e, m.messages)
		return []*bp.State{s}, m.remembered, err
	}
	if o.Warm, err = bp.Carry(m.e, e, m.messages); err != nil {
		return nil, false, err
	}
	states, err := bp.Propagate(a.Ctx, e, o)
	return states, m.remembered, err
}

// ownMessages returns the network's messages where belief propagation comes to them from every start, learned
// at most once per job, through the memo. Whether there are any depends on the network and the settings
// alone.
func (a *assigner) ownMessages() (*modelMessages, error) {
	if a.messages != nil {
		return a.messages, nil
	}
	m := &modelMessages{remembered: true}
	shape, err := a.Facts.Shape(a.Ctx, a.Net)
	if err != nil {
		return nil, err
	}
	if len(shape.Edges) > policy.PhaseTables {
		a.messages = m
		return m, nil
	}
	if m.e, err = lower.Build(a.Ctx, a.Net); err != nil {
		return nil, err
	}
	if n := bp.Entries(m.e); m.e.Unfit == "" && n > 0 && n <= policy.MostMessages {
		if m.messages, m.remembered, err = a.learnMessages(m.e); err != nil {
			return nil, err
		}
	}

	a.messages = m
	return m, nil
}

// learnMessages runs belief propagation without evidence, through the memo; nil where it does not come to one
// fixed point soon.
func (a *assigner) learnMessages(e *sumproduct.Expression) (messages []float64, hit bool, err error) {
	updates := ownUpdates(e, a.Settings)
	compute := func(ctx context.Context) (*btn.Plan, error) {
		enough, cancel := proposal.Planning(ctx, policy.OwnShare)
		defer cancel()
		s, err := bp.Only(ctx, e, policy.PhaseStarts, bp.Options{
			Seed:    a.Settings.Seed,
			Updates: updates,
			Enough:  enough,
		})
		if err != nil {
			return nil, err
		}
		if s == nil && enough.Err() != nil && ctx.Err() == nil {
			return nil, proposal.ErrNoTime // not what depends on the network alone: it shall not be remembered
		}

		p := &btn.Plan{Method: btn.MethodRegions}
		if s != nil {
			p.Messages = s.Messages()
		}
		return p, nil
	}

	p, state, err := a.Recall(messagesKey(e, a.Settings.Seed, updates), compute)
	if err != nil {
		a.Missed()
	}
	hit = state == btn.CacheHit
	if errors.Is(err, proposal.ErrNoTime) && a.Ctx.Err() == nil {
		return nil, false, nil
	}
	if err != nil || len(p.Messages) == 0 {
		return nil, hit, err
	}
	if len(p.Messages) != bp.Entries(e) { // not what was learned
		if p, err = compute(a.Ctx); errors.Is(err, proposal.ErrNoTime) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		return p.Messages, false, nil
	}

	return p.Messages, hit, nil
}

// messagesKey identifies messages by what they depend on: algorithm version, every entry of the expression, seed, updates.
func messagesKey(e *sumproduct.Expression, seed uint64, updates int64) string {
	b := digest.New()
	b.Word(seed)
	b.Word(uint64(updates))
	b.Ints(e.Dims)
	for _, s := range e.Support {
		b.Ints(s)
	}
	b.Int(len(e.Tables))
	for _, t := range e.Tables {
		b.Ints(t.Scope)
		b.Bits(t.Data)
	}
	return fmt.Sprintf("btn:v1:messages:%s:%s", proposal.AlgorithmVersion, b.Hex())
}

// ownUpdates bounds the updates of each start that looks for a network's own messages: by policy.OnlyUpdates, and all starts together by
// half of what belief propagation may take of the budget.
func ownUpdates(e *sumproduct.Expression, s btn.Settings) int64 {
	most := max(policy.MessageShare/2*s.WithDefaults().Budget/policy.UpdateFlops, policy.LeastUpdates) / policy.PhaseStarts
	return int64(max(2*float64(bp.Entries(e)), min(policy.OnlyUpdates*float64(bp.Entries(e)), most)))
}

// updatesFor bounds the updates of all starts together by the budget; 0 is package bp's own bound. A message
// is updated twice at least, so that there is something to answer with.
func updatesFor(e *sumproduct.Expression, s btn.Settings) int64 {
	incidences := 0
	for _, t := range e.Tables {
		incidences += len(t.Scope)
	}
	most := policy.MessageShare * s.WithDefaults().Budget / policy.UpdateFlops
	if most >= policy.MessageUpdates*float64(incidences) {
		return 0
	}
	return max(int64(most), 2*int64(incidences), policy.LeastUpdates)
}
