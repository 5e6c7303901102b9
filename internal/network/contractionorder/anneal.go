package contractionorder

// Simulated annealing by local rotations.

import (
	"math/rand/v2"
)

// annealing is a schedule: a number of sweeps over all merges, in which the temperature falls geometrically from hot to cold.
type annealing struct {
	// Temperatures in bits: at temperature T a pair of merges that costs Δ bits more than before is accepted with probability 2^(−Δ/T).
	hot, cold log2Fixed
	sweeps    int
	stop      <-chan struct{} // closing it ends the annealing early; nil: nothing does
}

// anneal improves w by simulated annealing: sweeps of random local rotations at falling temperatures. Afterwards w is the cheapest of the
// tree that it was and the trees at the ends of the sweeps. It stops early when the moves of w (elementary operations) reach maxMoves. If
// the stop channel of the schedule is closed, w stays as the last sweep left it.
//
// Whether a rotation is accepted depends on the ratio of the prices of two merges before and after it, so that small tables are annealed as
// much as large ones.
func (w *workingTree) anneal(o objective, schedule annealing, rng *rand.PCG, maxMoves int64) {
	if w.leafCount() < 3 {
		return
	}

	best := w.clone()
	lowestPrice := w.log2TotalPrice(&o)
	temperature := float64(schedule.hot)
	cooling := coolingFactor(float64(schedule.cold)/float64(schedule.hot), schedule.sweeps)
	scratch := make([]uint64, w.network.words)

	for range schedule.sweeps {
		select {
		case <-schedule.stop:
			return
		default:
		}
		if w.movesSpent >= maxMoves {
			break
		}
		w.sweep(&o, log2Fixed(temperature), rng, scratch)
		temperature *= cooling
		if price := w.log2TotalPrice(&o); price < lowestPrice {
			lowestPrice = price
			best.copyFrom(w)
		}
	}

	w.copyFrom(best)
}

// coolingFactor returns ratio^(1/steps) for a ratio below 1: the factor of the temperature in each of the steps. It finds the number in
// [0, 1] whose power is ratio by 60 halvings of the interval, since products give the same bits on every machine and math.Pow does not.
func coolingFactor(ratio float64, steps int) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		middle := (low + high) / 2
		power := 1.0
		for range steps {
			power *= middle
		}
		if power < ratio {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// sweep proposes one random rotation at every merge x one of whose inputs is a merge. Let p be that input, a merge of a and b, and c the
// other input of x. The rotation changes ((a, b), c) to ((a, c), b) or to ((b, c), a). left and right are the children of a node; left is
// none for a leaf. scratch has room for a scope.
func (w *workingTree) sweep(o *objective, temperature log2Fixed, rng *rand.PCG, scratch []uint64) {
	for x := int32(w.leafCount()); int(x) < len(w.left); x++ {
		random := rng.Uint64()

		// p is a child of x that is a merge. If both children are merges, chance decides.
		p, c := w.left[x], w.right[x]
		areBothMerges := w.left[p] != none && w.left[c] != none
		if w.left[p] == none || areBothMerges && random&1 != 0 {
			p, c = c, p
		}
		if w.left[p] == none {
			continue // both children are leaves
		}

		// Chance also decides which input of p changes places with c: the one that is called b.
		a, b := w.left[p], w.right[p]
		if random&2 != 0 {
			a, b = b, a
		}
		w.rotate(o, rotation{x: x, p: p, a: a, b: b, c: c}, temperature, random, scratch)
	}
	// Elementary operations for each merge: 20, and 5 for each word of its scope.
	w.movesSpent += int64((len(w.left) - w.leafCount()) * (20 + 5*w.network.words))
}

// rotation is a change of x = (p, c) with p = (a, b) into x = (p, b) with p = (a, c). All are nodes.
type rotation struct{ x, p, a, b, c int32 }

// rotate changes ((a, b), c) into ((a, c), b), if the temperature allows it. Merge p is the inner merge, of a and b at first, and x the
// outer one, of p and c. random has the random bits of this decision. S(v) is the scope of the table of v, as a bit set. The scope of p
// becomes
//
//	S'(p) = (S(a) ∪ S(c)) ∩ (S(b) ∪ S(x))
//
// and no other scope changes. The prices of the new merges need log2 of three sizes:
//
//	inner = |S(a) ∪ S(c)|,   size = |S'(p)|,   outer = |S'(p) ∪ S(b)|
func (w *workingTree) rotate(
	o *objective, r rotation, temperature log2Fixed, random uint64, scratch []uint64,
) {
	x, p, a, b, c := r.x, r.p, r.a, r.b, r.c
	scopeA, scopeB, scopeC, scopeX := w.scopeOf(a), w.scopeOf(b), w.scopeOf(c), w.scopeOf(x)

	var inner, outer, size log2Fixed
	for i, log2Dim := range w.network.log2Dim { // word by word of the bit sets; all indices in a word have the same dimension
		unionAC := scopeA[i] | scopeC[i]
		newScope := unionAC & (scopeB[i] | scopeX[i]) // S'(p)
		scratch[i] = newScope
		inner += log2Dim * log2Fixed(popCount(unionAC))
		size += log2Dim * log2Fixed(popCount(newScope))
		outer += log2Dim * log2Fixed(popCount(newScope|scopeB[i]))
	}

	// Metropolis: an increase Δ > 0 is accepted with probability 2^(−Δ/T), that is, if it is at most T times an exponential variable in
	// bits.
	before := logAdd(o.log2Price(w.unionSize[p], w.size[p]), o.log2Price(w.unionSize[x], w.size[x]))
	after := logAdd(o.log2Price(inner, size), o.log2Price(outer, w.size[x]))
	if increase := after - before; increase > 0 && increase > temperature*exponential(random)>>fractionBits {
		return
	}

	// Carry out the rotation.
	copy(w.scopeOf(p), scratch)
	w.size[p], w.unionSize[p], w.unionSize[x] = size, inner, outer
	w.left[p], w.right[p] = a, c
	w.parent[c] = p
	w.left[x], w.right[x] = p, b
	w.parent[b] = x
}
