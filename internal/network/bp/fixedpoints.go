package bp

// FixedPoints: the limits of belief propagation from several starts.

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Two states are one fixed point when ln Z and all beliefs agree this well: far above the
// uncertainty of converged messages, far below the difference of phases.
const (
	sameLnZ    = 1e-7
	sameBelief = 1e-5
)

// FixedPoints runs from o's own start and from starts−1 random ones (seeds o.Seed+1, o.Seed+2, …)
// and returns the distinct states: the converged ones first, the largest ln Z first among them, each
// as it was met first. Where the Bethe value has several maxima (phases), these are among them. Once o.Enough has ended
// no further start is made. Errors and cost as for Run, times starts; a state keeps its messages.
func FixedPoints(ctx context.Context, e *sumproduct.Expression, starts int, o Options) ([]*State, error) {
	g, err := newGraph(e)
	if err != nil {
		return nil, err
	}
	var found []*State
	var values []float64
	for n := 0; n < max(starts, 1); n++ {
		p := o
		if n > 0 {
			p.Seed = o.Seed + uint64(n)
		}
		s, err := run(ctx, g, p)
		if err != nil {
			return nil, err
		}
		ln, known := s.LnZ(), false
		for k, other := range found {
			known = known || same(s, other, ln, values[k])
		}

		if !known {
			found, values = append(found, s), append(values, ln)
		}
		if o.enough() {
			break
		}
	}

	return inSequence(found, values), nil
}

// Further runs from given starts, see Options.Given, and returns the states with those of them that converge to others, in the sequence
// of FixedPoints. reached says which state each start has come to, nil where it did not converge. Once o.Enough has ended no further
// start is made. Errors and cost as for Run, times the starts.
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
	for n, given := range starts {
		if o.enough() {
			break
		}
		p := o
		p.Given = given
		s, err := run(ctx, g, p)
		if err != nil {
			return nil, nil, err
		}
		if !s.Converged || s.Contradiction >= 0 {
			continue
		}
		ln := s.LnZ()
		if k := slices.IndexFunc(all, func(other *State) bool { return same(s, other, ln, other.LnZ()) }); k >= 0 {
			reached[n] = all[k]
			continue
		}
		all, values, reached[n] = append(all, s), append(values, ln), s
	}
	return inSequence(all, values), reached, nil
}

// inSequence sorts states: the converged ones first, the largest value first among them.
func inSequence(states []*State, values []float64) []*State {
	by := &ranked{states, values}
	sort.Stable(by)
	return by.states
}

// same reports whether two states are one fixed point: see sameLnZ and sameBelief.
func same(a, b *State, lnA, lnB float64) bool {
	if a.Converged != b.Converged || (a.Contradiction < 0) != (b.Contradiction < 0) {
		return false
	}
	if lnA != lnB && !(math.Abs(lnA-lnB) <= sameLnZ*max(1, math.Abs(lnA))) {
		return false
	}
	for i := range a.g.e.Dims {
		q := b.Belief(i)
		for x, p := range a.Belief(i) {
			if math.Abs(p-q[x]) > sameBelief {
				return false
			}
		}
	}
	return true
}

// ranked sorts converged states first, then by ln Z, the largest first.
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
