package regions

// Phases: fixed points of belief propagation that begins near maxima of the product of all tables.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/modes"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// phased is the states that belief propagation ends in, the one to use first, and the kinds of maxima that it began near.
type phased struct {
	states []*bp.State
	kinds  []kind
}

// kind is equal maxima: the state reached from the first, nil for none, and how many others have reached one, too.
type kind struct {
	modes.Phase
	reached *bp.State
	begun   int
}

// orderedStarts is the number of starts near maxima of the product of all tables, for orderedShare of a budget and orderedTime of
// the time for planning: each takes some orderedUpdates per incidence of factor and variable, and five times as many at most.
// Chosen.
const (
	orderedStarts  = 8
	orderedShare   = 1.0 / 8
	orderedTime    = 1.0 / 8
	orderedUpdates = 20
)

// further adds to states those that belief propagation comes to from near maxima, for orderedShare of the budget and
// orderedTime of the time for planning.
func further(ctx context.Context, j *proposal.Job, e *sumproduct.Expression, states []*bp.State) (*phased, error) {
	p := &phased{states: states}
	budget := orderedShare * j.Settings.WithDefaults().Budget
	each := orderedUpdates * float64(incidencesOf(e)) * policy.UpdateFlops
	search := modes.PhasesWork(e)
	most := int(min((budget-search)/each, orderedStarts))
	if states[0].Signed || states[0].Contradiction >= 0 || len(e.Tables) > policy.PhaseTables || most < 1 {
		return p, nil
	}
	enough, cancel := proposal.PlanningContext(ctx, orderedTime)
	defer cancel()
	kinds, err := modes.Phases(enough, e, most)
	if err != nil {
		return p, ended(ctx, enough, err)
	}
	var starts [][][]float64
	for _, k := range kinds {
		starts = append(starts, k.Given)
	}
	for _, k := range kinds {
		begun := min(len(k.Others), most-len(starts))
		for _, m := range k.Others[:begun] {
			starts = append(starts, m.Given)
		}
		p.kinds = append(p.kinds, kind{Phase: k, begun: begun})
	}
	all, reached, err := bp.Further(ctx, e, states, starts, bp.Options{
		Updates: 5 * orderedUpdates * int64(incidencesOf(e)), Enough: enough,
	})
	if err != nil {
		return p, err
	}
	p.states = all
	others := reached[len(kinds):]
	for k := range p.kinds {
		of := &p.kinds[k]
		of.reached = reached[k]
		own := others[:of.begun]
		others = others[of.begun:]
		of.begun = 0
		for _, s := range own {
			if s != nil {
				of.begun++
			}
		}
	}
	return p, nil
}

// ended is the error of a search that ended before its time did, nil where the time was over.
func ended(ctx, enough context.Context, err error) error {
	if ctx.Err() == nil && enough.Err() != nil {
		return nil
	}
	return err
}

// phaseOverlap is the squared cosine between the components of two fixed points below which both count.
// Chosen.
const phaseOverlap = 0.1

// together returns ln of the sum of the Bethe values of phases that hardly overlap, nats, and their number. A phase that was reached from
// near one of several equal maxima counts as often as there are such that are not in it, too, and have reached none.
func (p *phased) together() (ln float64, terms int) {
	phases := bp.Phases(p.states, phaseOverlap)
	if len(phases) == 0 {
		return p.states[0].LnZ(), 0
	}
	top, sum := phases[0].LnZ(), 0.0
	for _, s := range phases {
		count := 1
		for k := range p.kinds {
			if of := &p.kinds[k]; of.reached == s {
				count = max(count, 1+of.images()-of.begun)
			}
		}
		sum += float64(count) * math.Exp(s.LnZ()-top)
	}
	return top + math.Log(sum), len(phases)
}

// leastBelief is what a belief counts for at least where states are compared by their beliefs.
// Chosen.
const leastBelief = 1e-9

// images returns the number of the other maxima of a kind but for those that its state favours nearly as much as the first.
func (k *kind) images() (count int) {
	beliefs := make([][]float64, len(k.State))
	for i := range beliefs {
		beliefs[i] = k.reached.Belief(i)
	}
	ln := func(x []int) (sum float64) {
		for i, a := range x {
			sum += math.Log(max(beliefs[i][a], leastBelief))
		}
		return sum
	}
	own := ln(k.State)
	for _, m := range k.Others {
		if own-ln(m.State) > -math.Log(phaseOverlap) {
			count++
		}
	}
	return count
}

// mostMessages is the number of message entries up to which a plan has those of several fixed points: 4 MiB, encoded.
// Chosen.
const mostMessages = (4<<20 - 4096) / 9

// messages are those of the phases that hardly overlap, the state to use first.
func (p *phased) messages() []float64 {
	messages := p.states[0].Messages()
	phases := bp.Phases(p.states, phaseOverlap)
	if len(phases) < 2 || phases[0] != p.states[0] || len(phases)*len(messages) > mostMessages {
		return messages
	}
	for _, s := range phases[1:] {
		messages = append(messages, s.Messages()...)
	}
	return messages
}
