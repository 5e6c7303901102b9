package bp

// Phases: fixed points whose rank-one components hardly overlap.

import "math"

// Phases returns the converged states whose Overlap with every phase before is at most maxOverlap, in their sequence. It returns none for
// networks with negative entries. The Bethe values of phases add up, as the rank-one components do (structure: the sum over phases).
func Phases(states []*State, maxOverlap float64) []*State {
	var apart []*State
next:
	for _, s := range states {
		if !s.Converged || s.Signed || s.Contradiction >= 0 {
			continue
		}
		for _, other := range apart {
			if Overlap(s, other) > maxOverlap {
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
// over all incidences. It is 1 for equal states, and 0 if a excludes, somewhere, all values that b allows. Linear time.
func Overlap(a, b *State) float64 {
	ln := newLogSum()
	for k := range a.g.tableOf {
		ma, va := a.g.message(a.m, int32(k)), a.g.message(a.v, int32(k))
		mb, vb := b.g.message(b.m, int32(k)), b.g.message(b.v, int32(k))
		ln.add(scalarProductNumber(ma, vb), false)
		ln.add(scalarProductNumber(mb, va), false)
		ln.add(scalarProductNumber(ma, va), true)
		ln.add(scalarProductNumber(mb, vb), true)
	}
	value, _ := ln.value()
	return math.Exp(value)
}
