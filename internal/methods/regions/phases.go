package regions

// Phases: fixed points of belief propagation, found from starts near maxima of the product of all tables.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/modes"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// phaseSet is the states in which belief propagation ends, with the one to use first, and the kinds of maxima that it started near.
type phaseSet struct {
	states []*bp.State
	kinds  []kind
}

// kind is a set of equal maxima.
type kind struct {
	modes.Phase
	reached *bp.State // from the first maximum; nil: none
	begun   int       // number of all other maxima from which a state was reached
}

// orderedStarts is the number of starts near maxima of the product of all tables. They have orderedShare of the budget and orderedTime of
// the time for planning. Each takes about orderedUpdates for each pair of a table and an index, and at most five times as many.
// Chosen.
const (
	orderedStarts  = 8
	orderedShare   = 1.0 / 8
	orderedTime    = 1.0 / 8
	orderedUpdates = 20
)

// findPhases returns states with those that belief propagation reaches from near maxima. That takes at most orderedShare of the budget
// and orderedTime of the time for planning. If the network is too large or the states are no basis, it returns only states.
func findPhases(ctx context.Context, j *proposal.Job, e *sumproduct.Expression, states []*bp.State) (*phaseSet, error) {
	set := &phaseSet{states: states}
	budget := orderedShare * j.Settings.WithDefaults().Budget
	each := orderedUpdates * float64(countIncidences(e)) * policy.UpdateFlops
	search := modes.PhasesWork(e)
	limit := int(min((budget-search)/each, orderedStarts))
	if states[0].Signed || states[0].Contradiction >= 0 || len(e.Tables) > policy.PhaseTables || limit < 1 {
		return set, nil
	}
	enough, cancel := proposal.PlanningContext(ctx, orderedTime)
	defer cancel()
	kinds, err := modes.Phases(enough, e, limit)
	if err != nil {
		return set, earlyError(ctx, enough, err)
	}
	var starts [][][]float64
	for _, k := range kinds {
		starts = append(starts, k.Given)
	}
	for _, k := range kinds {
		begun := min(len(k.Others), limit-len(starts))
		for _, m := range k.Others[:begun] {
			starts = append(starts, m.Given)
		}
		set.kinds = append(set.kinds, kind{Phase: k, begun: begun})
	}
	all, reached, err := bp.Further(ctx, e, states, starts, bp.Options{
		Updates: 5 * orderedUpdates * int64(countIncidences(e)), Enough: enough,
	})
	if err != nil {
		return set, err
	}
	set.states = all
	others := reached[len(kinds):]
	for k := range set.kinds {
		kind := &set.kinds[k]
		kind.reached = reached[k]
		reachedByKind := others[:kind.begun]
		others = others[kind.begun:]
		kind.begun = 0
		for _, s := range reachedByKind {
			if s != nil {
				kind.begun++
			}
		}
	}
	return set, nil
}

// earlyError returns the error of a search whose context is enough. It returns nil if only the time of enough is over.
func earlyError(ctx, enough context.Context, err error) error {
	if ctx.Err() == nil && enough.Err() != nil {
		return nil
	}
	return err
}

// phaseOverlap is the squared cosine between the components of two fixed points below which both count.
// Chosen.
const phaseOverlap = 0.1

// sumOfPhases returns ln of the sum of the Bethe values of the phases that hardly overlap, in nats, and the number of these phases. A
// phase reached from near one of several equal maxima counts several times: for each of those maxima that is not in it, too, and from
// which no phase was reached.
func (p *phaseSet) sumOfPhases() (ln float64, terms int) {
	phases := bp.Phases(p.states, phaseOverlap)
	if len(phases) == 0 {
		return p.states[0].LnZ(), 0
	}
	top, sum := phases[0].LnZ(), 0.0
	for _, s := range phases {
		count := 1
		for k := range p.kinds {
			if kind := &p.kinds[k]; kind.reached == s {
				count = max(count, 1+kind.otherImages()-kind.begun)
			}
		}
		sum += float64(count) * math.Exp(s.LnZ()-top)
	}
	return top + math.Log(sum), len(phases)
}

// leastBelief is the smallest belief if states are compared by their beliefs.
// Chosen.
const leastBelief = 1e-9

// otherImages returns the number of other maxima of a kind, without those that the reached state favours nearly as much as the first.
func (k *kind) otherImages() (count int) {
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
	lnFirst := ln(k.State)
	for _, m := range k.Others {
		if lnFirst-ln(m.State) > -math.Log(phaseOverlap) {
			count++
		}
	}
	return count
}

// mostMessages is the largest number of message entries for which a plan has the messages of several fixed points: 4 MiB, encoded.
// Chosen.
const mostMessages = (4<<20 - 4096) / 9

// messages returns the messages of the phases that hardly overlap, with those of the state to use first. If these are too many, it
// returns only the messages of that state.
func (p *phaseSet) messages() []float64 {
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
