package regions

// The messages of belief propagation without evidence: learned once per network, and where it starts under evidence.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// modelMessages are the network's messages without evidence.
type modelMessages struct {
	e          *sumproduct.Expression
	messages   []float64 // nil: there is no start
	remembered bool      // nothing was computed
}

// passed runs belief propagation under a query's evidence from the network's own messages, and says
// whether those were remembered. Without evidence they are the answer already.
func passed(j *proposal.Job, e *sumproduct.Expression) (*phased, bool, error) {
	m, err := proposal.Fact(&j.Own, messagesSlot{}, func() (*modelMessages, error) { return ownMessages(j) })
	if err != nil {
		return nil, false, err
	}
	enough, cancel := proposal.Planning(j.Ctx, policy.MessageShare)
	defer cancel()
	o := bp.PropagateOptions{Seed: j.Settings.Seed, Updates: updatesFor(e, j.Settings), Enough: enough}
	if m.messages == nil {
		states, err := bp.Propagate(j.Ctx, e, o)
		if err != nil {
			return nil, false, err
		}
		all, err := further(j, e, states)
		return all, m.remembered, err
	}
	if j.Evidence.IsEmpty() {
		s, err := bp.Restore(e, m.messages)
		return &phased{states: []*bp.State{s}}, m.remembered, err
	}
	if o.Warm, err = bp.Carry(m.e, e, m.messages); err != nil {
		return nil, false, err
	}
	states, err := bp.Propagate(j.Ctx, e, o)
	return &phased{states: states}, m.remembered, err
}

// messagesSlot is the place of the network's messages in a job.
type messagesSlot struct{}

// ownMessages returns the network's messages where belief propagation comes to them from every start, those near maxima too, through the
// memo. Whether there are any depends on the network and the settings alone.
func ownMessages(j *proposal.Job) (*modelMessages, error) {
	m := &modelMessages{remembered: true}
	shape, err := j.Facts.Shape(j.Ctx, j.Net)
	if err != nil {
		return nil, err
	}
	if len(shape.Edges) > policy.PhaseTables {
		return m, nil
	}
	if m.e, err = expressionOf(j.Ctx, j.Net); err != nil {
		return nil, err
	}
	if n := bp.Entries(m.e); m.e.Unfit == "" && n > 0 && n <= policy.MostMessages {
		if m.messages, m.remembered, err = learnMessages(j, m.e); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// learnMessages runs belief propagation without evidence, through the memo; nil where it does not come to one
// fixed point soon.
func learnMessages(j *proposal.Job, e *sumproduct.Expression) (messages []float64, hit bool, err error) {
	updates := ownUpdates(e, j.Settings)
	compute := func(ctx context.Context) (*btn.Plan, error) {
		enough, cancel := proposal.Planning(ctx, policy.OwnShare)
		defer cancel()
		s, err := bp.Only(ctx, e, policy.PhaseStarts, bp.Options{
			Seed:    j.Settings.Seed,
			Updates: updates,
			Enough:  enough,
		})
		if err != nil {
			return nil, err
		}
		if s == nil && enough.Err() != nil && ctx.Err() == nil {
			return nil, proposal.ErrNoTime // not what depends on the network alone: it shall not be remembered
		}

		p := &btn.Plan{Method: query.MethodRegions}
		if s != nil {
			all, err := further(j, e, []*bp.State{s})
			if err != nil {
				return nil, err
			}
			if len(all.states) == 1 {
				p.Messages = s.Messages()
			}
		}
		return p, nil
	}

	p, state, err := j.Recall(messagesKey(e, j.Settings.Seed, updates), compute)
	if err != nil {
		j.Missed()
	}
	hit = state == btn.CacheHit
	if errors.Is(err, proposal.ErrNoTime) && j.Ctx.Err() == nil {
		return nil, false, nil
	}
	if err != nil || len(p.Messages) == 0 {
		return nil, hit, err
	}
	if len(p.Messages) != bp.Entries(e) { // not what was learned
		if p, err = compute(j.Ctx); errors.Is(err, proposal.ErrNoTime) {
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
func ownUpdates(e *sumproduct.Expression, s query.Settings) int64 {
	most := max(policy.MessageShare/2*s.WithDefaults().Budget/policy.UpdateFlops, policy.LeastUpdates) / policy.PhaseStarts
	return int64(max(2*float64(bp.Entries(e)), min(policy.OnlyUpdates*float64(bp.Entries(e)), most)))
}

// updatesFor bounds the updates of all starts together by the budget; 0 is package bp's own bound. A message
// is updated twice at least, so that there is something to answer with.
func updatesFor(e *sumproduct.Expression, s query.Settings) int64 {
	incidences := incidencesOf(e)
	most := policy.MessageShare * s.WithDefaults().Budget / policy.UpdateFlops
	if most >= policy.MessageUpdates*float64(incidences) {
		return 0
	}
	return max(int64(most), 2*int64(incidences), policy.LeastUpdates)
}

// incidencesOf is the number of pairs of a table and an index of it.
func incidencesOf(e *sumproduct.Expression) (n int) {
	for _, t := range e.Tables {
		n += len(t.Scope)
	}
	return n
}
