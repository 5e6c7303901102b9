package bp

// Phases: fixed points whose rank-one components hardly overlap.

import "math"

// Phases returns the converged states, in their sequence, that overlap with none of those before by more than most (Overlap); none of
// networks with negative entries. Their Bethe values add up, as the rank-one components do (structure: the sum over phases).
func Phases(states []*State, most float64) []*State {
	var apart []*State
next:
	for _, s := range states {
		if !s.Converged || s.Signed || s.Contradiction >= 0 {
			continue
		}
		for _, other := range apart {
			if Overlap(s, other) > most {
				continue next
			}
		}
		apart = append(apart, s)
	}
	return apart
}

// Overlap returns the squared cosine between the rank-one components of two states a and b of one expression,
//
//	Π ⟨m_a, v_b⟩ ⟨m_b, v_a⟩ / (⟨m_a, v_a⟩ ⟨m_b, v_b⟩)
//
// over all incidences: 1 for equal states, 0 where one excludes all that the other allows. Linear time.
func Overlap(a, b *State) float64 {
	ln := newLogs()
	for k := range a.g.table {
		ma, va := a.g.message(a.m, int32(k)), a.g.message(a.v, int32(k))
		mb, vb := b.g.message(b.m, int32(k)), b.g.message(b.v, int32(k))
		ln.add(dot(ma, vb), false)
		ln.add(dot(mb, va), false)
		ln.add(dot(ma, va), true)
		ln.add(dot(mb, vb), true)
	}
	value, _ := ln.value()
	return math.Exp(value)
}
