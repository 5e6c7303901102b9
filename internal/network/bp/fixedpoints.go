package bp

// FixedPoints: the limits of belief propagation from several starts.

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Two states are one fixed point if ln Z and all beliefs differ by no more than this. It is far above the uncertainty of converged messages
// and far below the difference of phases.
const (
	sameLnZ    = 1e-7 // relative, for |ln Z| above 1
	sameBelief = 1e-5
)

// FixedPoints runs from the start of o and from starts−1 random ones (seeds o.Seed+1, o.Seed+2, …) and returns the distinct states.
// Converged states come first; states that are equal in that are sorted by ln Z, the largest first. If the Bethe value has several maxima
// (phases), the converged states are some of them. After o.Enough has ended it makes no further start. Errors as for Run. Cost: that of
// Run, times starts; each state keeps its messages.
func FixedPoints(ctx context.Context, e *sumproduct.Expression, starts int, o Options) ([]*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	var states []*State
	var values []float64
	for n := 0; n < max(starts, 1); n++ {
		options := o
		if n > 0 {
			options.Seed = o.Seed + uint64(n)
		}
		s, err := run(ctx, g, options)
		if err != nil {
			return nil, err
		}
		ln, isKnown := s.LnZ(), false
		for k, other := range states {
			isKnown = isKnown || isSameFixedPoint(s, other, ln, values[k])
		}

		if !isKnown {
			states, values = append(states, s), append(values, ln)
		}
		if o.hasEnough() {
			break
		}
	}

	return sortStates(states, values), nil
}

// Further runs from given starts (Options.Given). all is states together with the new fixed points that starts converged to, in the
// sequence of FixedPoints. reached is, by start, the state of all to which it converged, or nil if it did not converge. After o.Enough has
// ended it makes no further start. Errors as for Run. Cost: that of Run, times the starts.
func Further(
	ctx context.Context, e *sumproduct.Expression, states []*State, starts [][][]float64, o Options,
) (all, reached []*State, err error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, nil, err
	}
	all, reached = slices.Clone(states), make([]*State, len(starts))
	values := make([]float64, len(all))
	for k, s := range all {
		values[k] = s.LnZ()
	}
	for n, start := range starts {
		if o.hasEnough() {
			break
		}
		options := o
		options.Given = start
		s, err := run(ctx, g, options)
		if err != nil {
			return nil, nil, err
		}
		if !s.Converged || s.Contradiction >= 0 {
			continue
		}
		ln := s.LnZ()
		if k := slices.IndexFunc(all, func(other *State) bool { return isSameFixedPoint(s, other, ln, other.LnZ()) }); k >= 0 {
			reached[n] = all[k]
			continue
		}
		all, values, reached[n] = append(all, s), append(values, ln), s
	}
	return sortStates(all, values), reached, nil
}

// sortStates sorts states in place: converged ones first, then by value, the largest first. values are those of ln Z.
func sortStates(states []*State, values []float64) []*State {
	by := &ranked{states, values}
	sort.Stable(by)
	return by.states
}

// isSameFixedPoint reports whether two states are one fixed point: both converged or both not, both in a contradiction or both not, and ln
// Z and beliefs within sameLnZ and sameBelief. lnA and lnB are their ln Z.
func isSameFixedPoint(a, b *State, lnA, lnB float64) bool {
	if a.Converged != b.Converged || (a.Contradiction < 0) != (b.Contradiction < 0) {
		return false
	}
	if lnA != lnB && !(math.Abs(lnA-lnB) <= sameLnZ*max(1, math.Abs(lnA))) {
		return false
	}
	for i := range a.g.e.Dims {
		beliefB := b.Belief(i)
		for x, p := range a.Belief(i) {
			if math.Abs(p-beliefB[x]) > sameBelief {
				return false
			}
		}
	}
	return true
}

// ranked is a list for package sort: converged states first, then by ln Z, the largest first.
type ranked struct {
	states []*State
	ln     []float64
}

func (r *ranked) Len() int { return len(r.states) }

func (r *ranked) Less(a, b int) bool {
	if r.states[a].Converged != r.states[b].Converged {
		return r.states[a].Converged
	}
	return r.ln[a] > r.ln[b]
}

func (r *ranked) Swap(a, b int) {
	r.states[a], r.states[b] = r.states[b], r.states[a]
	r.ln[a], r.ln[b] = r.ln[b], r.ln[a]
}
