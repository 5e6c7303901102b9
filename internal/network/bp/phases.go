package bp

// Phases: fixed points whose rank-one components hardly overlap.

import "math"

// Phases returns the converged states that hardly overlap: in their sequence it takes each state whose Overlap with every state taken
// before is at most maxOverlap. It returns none for networks with negative entries. Phases are fixed points for parts of the distribution
// that hardly overlap, so the sum of their Bethe values is an estimate of Z.
func Phases(states []*State, maxOverlap float64) []*State {
	var phases []*State
nextState:
	for _, s := range states {
		if !s.Converged || s.Signed || s.Contradiction >= 0 {
			continue
		}
		for _, phase := range phases {
			if Overlap(s, phase) > maxOverlap {
				continue nextState
			}
		}
		phases = append(phases, s)
	}
	return phases
}

// Overlap returns the squared cosine between the rank-one components of two states a and b of one expression,
//
//	Π ⟨m_a, v_b⟩ ⟨m_b, v_a⟩ / (⟨m_a, v_a⟩ ⟨m_b, v_b⟩)
//
// over all incidences, the pairs of a table and an index of it, where m is the message from the table to the index and v the message back.
// A component is the product of the messages of one state. The overlap is 1 for equal states, and 0 if somewhere a excludes all values
// that b allows. Linear time.
func Overlap(a, b *State) float64 {
	product := newLogProduct()
	for k := range a.graph.tableOf {
		mA, vA := a.graph.messageOf(a.toIndex, int32(k)), a.graph.messageOf(a.toTable, int32(k))
		mB, vB := b.graph.messageOf(b.toIndex, int32(k)), b.graph.messageOf(b.toTable, int32(k))
		product.multiply(scalarProductNumber(mA, vB))
		product.multiply(scalarProductNumber(mB, vA))
		product.divide(scalarProductNumber(mA, vA))
		product.divide(scalarProductNumber(mB, vB))
	}
	ln, _ := product.value() // without the sign, which is + for messages ≥ 0
	return math.Exp(ln)
}
