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

// phaseSet is the states in which belief propagation ends, the one to use first, and the kinds of maxima of the product of all tables that
// it started near.
type phaseSet struct {
	states []*bp.State
	kinds  []maximumKind
}

// maximumKind is a set of equal maxima of the product of all tables.
type maximumKind struct {
	modes.Phase             // the first maximum, and the others
	reached       *bp.State // the state that the first maximum leads to; nil if none
	othersReached int       // number of the other maxima that lead to a state
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

// findPhases returns the given states of belief propagation together with the phases, the states in which belief propagation ends if it
// starts near maxima of the product of all tables. That takes at most orderedShare of the budget and orderedTime of the time for planning.
// It returns only the given states if the network is too large, or if the messages of the first state have both signs or contradict each
// other.
func findPhases(ctx context.Context, j *proposal.Job, e *sumproduct.Expression, states []*bp.State) (*phaseSet, error) {
	set := &phaseSet{states: states}
	budget := orderedShare * j.Settings.WithDefaults().Budget
	startFlops := orderedUpdates * float64(countIncidences(e)) * policy.UpdateFlops
	searchFlops := modes.PhasesWork(e)
	limit := int(min((budget-searchFlops)/startFlops, orderedStarts)) // of the number of starts
	isConsistent := !states[0].Signed && states[0].Contradiction < 0  // −1: no table contradicts the messages
	if !isConsistent || len(e.Tables) > policy.PhaseTables || limit < 1 {
		return set, nil
	}

	enough, cancel := proposal.PlanningContext(ctx, orderedTime)
	defer cancel()
	phases, err := modes.Phases(enough, e, limit)
	if err != nil {
		return set, earlyError(ctx, enough, err)
	}

	starts, otherStarts := startsNear(phases, limit)
	allStates, reached, err := bp.ExtendFixedPoints(ctx, e, states, starts, bp.Options{
		Updates: 5 * orderedUpdates * int64(countIncidences(e)), Enough: enough, // at most; a start takes about a fifth of that
	})
	if err != nil {
		return set, err
	}
	set.states = allStates
	set.noteReached(phases, reached, otherStarts)
	return set, nil
}

// startsNear returns starts of belief propagation, the conditional distributions at maxima: first near the first maximum of each kind of
// equal maxima, then near the other maxima of the first kind, of the second and so on, up to limit starts. otherStarts is, by kind, the
// number of starts near its other maxima.
func startsNear(kinds []modes.Phase, limit int) (starts [][][]float64, otherStarts []int) {
	for _, kind := range kinds {
		starts = append(starts, kind.Conditionals)
	}
	for _, kind := range kinds {
		count := min(len(kind.Others), limit-len(starts))
		for _, mode := range kind.Others[:count] {
			starts = append(starts, mode.Conditionals)
		}
		otherStarts = append(otherStarts, count)
	}
	return starts, otherStarts
}

// noteReached sets p.kinds to the kinds of equal maxima, with what belief propagation reached from them. reached has the state that each
// start of startsNear led to, or nil: first for the start near the first maximum of each kind, then for otherStarts[k] starts near other
// maxima of kind k, one kind after the other.
func (p *phaseSet) noteReached(phases []modes.Phase, reached []*bp.State, otherStarts []int) {
	reachedByOthers := reached[len(phases):]
	for k, phase := range phases {
		kind := maximumKind{Phase: phase, reached: reached[k]}
		for _, state := range reachedByOthers[:otherStarts[k]] {
			if state != nil {
				kind.othersReached++
			}
		}
		reachedByOthers = reachedByOthers[otherStarts[k]:]
		p.kinds = append(p.kinds, kind)
	}
}

// earlyError returns err, the error of a search under the context enough. It returns nil if that has ended and ctx has not: the search has
// used up its time, which is no error.
func earlyError(ctx, enough context.Context, err error) error {
	if ctx.Err() == nil && enough.Err() != nil {
		return nil
	}
	return err
}

// phaseOverlap is the squared cosine between the components of two fixed points below which the two count.
// Chosen.
const phaseOverlap = 0.1

// sumOfPhases returns ln of the sum of the Bethe values of the phases that hardly overlap, in nats, and the number of these phases. A phase
// is a state in which belief propagation ends.
//
// Equal maxima of the product of all tables have phases of the same value, by symmetry. Belief propagation need not reach all of them. So a
// phase that was reached from one of several equal maxima also stands for the phases of the other maxima. It counts once more for each
// other maximum that it does not contain (otherImages). Maxima from which belief propagation reached a phase (othersReached) are
// subtracted, since these phases are in the sum themselves.
func (p *phaseSet) sumOfPhases() (ln float64, count int) {
	phases := bp.Phases(p.states, phaseOverlap)
	if len(phases) == 0 {
		return p.states[0].LnZ(), 0
	}
	top, sum := phases[0].LnZ(), 0.0
	for _, s := range phases {
		multiplicity := 1
		for k := range p.kinds {
			if kind := &p.kinds[k]; kind.reached == s {
				multiplicity = max(multiplicity, 1+kind.otherImages()-kind.othersReached)
			}
		}
		sum += float64(multiplicity) * math.Exp(s.LnZ()-top)
	}
	return top + math.Log(sum), len(phases)
}

// leastBelief is the smallest belief if states are compared by their beliefs.
// Chosen.
const leastBelief = 1e-9

// otherImages returns the number of maxima of a kind, a set of equal maxima, that the state reached from the first maximum does not
// contain: the beliefs of the state give them less than phaseOverlap of the probability that they give to the first maximum.
func (k *maximumKind) otherImages() (count int) {
	beliefs := make([][]float64, len(k.State))
	for i := range beliefs {
		beliefs[i] = k.reached.Belief(i)
	}
	lnProbability := func(state []int) (sum float64) {
		for i, a := range state {
			sum += math.Log(max(beliefs[i][a], leastBelief))
		}
		return sum
	}
	lnFirst := lnProbability(k.State)
	for _, mode := range k.Others {
		if lnFirst-lnProbability(mode.State) > -math.Log(phaseOverlap) {
			count++
		}
	}
	return count
}

// mostMessages is the largest number of message entries for which a plan has the messages of several fixed points: 4 MiB, encoded.
// Chosen.
const mostMessages = (4<<20 - 4096) / 9

// messages returns the messages of the phases that hardly overlap, one phase after the other. A phase is a state in which belief
// propagation ends, and states[0] is the one to use first. The result is the messages of states[0] alone if fewer than two phases hardly
// overlap, if states[0] is not the first of them, or if the messages would be more than mostMessages.
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
