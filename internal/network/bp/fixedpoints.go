package bp

// FixedPoints: the limits of belief propagation from several starts.

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Two states are one fixed point if their ln Z and all beliefs differ by no more than these tolerances. They are far above the uncertainty
// of converged messages and far below the difference of phases.
const (
	lnZTolerance    = 1e-7 // relative, for |ln Z| above 1
	beliefTolerance = 1e-5
)

// FixedPoints runs belief propagation from several starts and returns the distinct resulting states. The first start is that of o, the
// other starts−1 are random (seeds o.Seed+1, o.Seed+2, …). Converged states come first, then the others; within either group the largest
// ln Z comes first. If the Bethe value has several maxima (phases), the converged states are some of them. After o.Enough has ended it
// makes no further start. Errors as for Run. Cost: that of Run, times starts; each state keeps its messages.
func FixedPoints(ctx context.Context, e *sumproduct.Expression, starts int, o Options) ([]*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	var states []*State
	var lnZs []float64 // by state
	for n := 0; n < max(starts, 1); n++ {
		options := o
		if n > 0 {
			options.Seed = o.Seed + uint64(n)
		}
		s, err := run(ctx, g, options)
		if err != nil {
			return nil, err
		}
		lnZ := s.LnZ()
		if isNew := findFixedPoint(s, lnZ, states, lnZs) < 0; isNew {
			states, lnZs = append(states, s), append(lnZs, lnZ)
		}
		if o.hasEnough() { // at least one start was made
			break
		}
	}

	return sortStates(states, lnZs), nil
}

// ExtendFixedPoints adds to states the fixed points that belief propagation reaches from given starts. A start is a distribution of every
// index, as in Options.StartBeliefs. all is states together with the new fixed points, in the sequence of FixedPoints. reached is, by
// start, the state of all to which it converged, or nil if it did not converge. After o.Enough has ended it makes no further start. Errors
// as for Run. Cost: that of Run, times the starts.
func ExtendFixedPoints(
	ctx context.Context, e *sumproduct.Expression, states []*State, starts [][][]float64, o Options,
) (all, reached []*State, err error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, nil, err
	}
	all, reached = slices.Clone(states), make([]*State, len(starts))
	lnZs := make([]float64, len(all)) // by state
	for k, s := range all {
		lnZs[k] = s.LnZ()
	}
	for n, start := range starts {
		if o.hasEnough() {
			break
		}
		options := o
		options.StartBeliefs = start
		s, err := run(ctx, g, options)
		if err != nil {
			return nil, nil, err
		}
		if !s.Converged || s.Contradiction >= 0 {
			continue
		}

		// It is a known fixed point or a new one.
		lnZ := s.LnZ()
		if position := findFixedPoint(s, lnZ, all, lnZs); position >= 0 {
			reached[n] = all[position]
			continue
		}
		all, lnZs, reached[n] = append(all, s), append(lnZs, lnZ), s
	}
	return sortStates(all, lnZs), reached, nil
}

// sortStates sorts states in place, converged ones first, then by ln Z, the largest first, and returns them. lnZs has ln Z of every state,
// and is sorted with them.
func sortStates(states []*State, lnZs []float64) []*State {
	sorter := &stateSorter{states, lnZs}
	sort.Stable(sorter)
	return sorter.states
}

// findFixedPoint returns the position in states of the first one that is the same fixed point as s, −1 if there is none. lnZ is ln Z of s,
// and lnZs has ln Z of every state.
func findFixedPoint(s *State, lnZ float64, states []*State, lnZs []float64) int {
	for k, state := range states {
		if isSameFixedPoint(s, state, lnZ, lnZs[k]) {
			return k
		}
	}
	return -1
}

// isSameFixedPoint reports whether a and b are one fixed point. Both must have converged or neither, both must be in a contradiction or
// neither, and ln Z and all beliefs must be equal within lnZTolerance and beliefTolerance. lnZA and lnZB are their ln Z.
func isSameFixedPoint(a, b *State, lnZA, lnZB float64) bool {
	if a.Converged != b.Converged || (a.Contradiction < 0) != (b.Contradiction < 0) {
		return false
	}
	// Two values −∞ are equal, too; their difference is NaN.
	isSameLnZ := lnZA == lnZB || math.Abs(lnZA-lnZB) <= lnZTolerance*max(1, math.Abs(lnZA))
	if !isSameLnZ {
		return false
	}
	for i := range a.graph.expression.Dims {
		beliefB := b.Belief(i)
		for x, p := range a.Belief(i) {
			if math.Abs(p-beliefB[x]) > beliefTolerance {
				return false
			}
		}
	}
	return true
}

// stateSorter sorts states and their ln Z by package sort: converged states first, then the largest ln Z first.
type stateSorter struct {
	states []*State
	lnZs   []float64 // by state
}

func (r *stateSorter) Len() int { return len(r.states) }

func (r *stateSorter) Less(a, b int) bool {
	if r.states[a].Converged != r.states[b].Converged {
		return r.states[a].Converged
	}
	return r.lnZs[a] > r.lnZs[b]
}

func (r *stateSorter) Swap(a, b int) {
	r.states[a], r.states[b] = r.states[b], r.states[a]
	r.lnZs[a], r.lnZs[b] = r.lnZs[b], r.lnZs[a]
}
