package contractionorder

// Simulated annealing by local rotations.

import (
	"math/rand/v2"
)

// annealing is a schedule of sweeps over all merges, the temperature falling geometrically.
type annealing struct {
	// temperature in bits: a merge pair costlier by Δ bits is accepted with probability 2^(−Δ/T)
	hot, cold logs
	sweeps    int
	stop      <-chan struct{} // ends it early when closed; nil: never
}

// anneal sweeps over the merges of w. At x = (p, c) with p = (a, b) it proposes ((a, c), b) or ((b,
// c), a): only the scope of p changes, to the indices that b or the rest of the network has too.
// The price of the two merges before and after decides, as a ratio, so that small tables are
// annealed as much as large ones. w becomes the cheapest tree seen at the end of a sweep. It stops
// when the moves of w reach limit.
func (w *working) anneal(o objective, plan annealing, rng *rand.PCG, limit int64) {
	if w.leaves() < 3 {
		return
	}

	best := w.clone()
	least := w.logTotal(&o)
	temperature := float64(plan.hot)
	cool := coolingFactor(float64(plan.cold)/float64(plan.hot), plan.sweeps)
	scratch := make([]uint64, w.n.words)

	for range plan.sweeps {
		select {
		case <-plan.stop:
			return
		default:
		}
		if w.moves >= limit {
			break
		}
		w.sweep(&o, logs(temperature), rng, scratch)
		temperature *= cool
		if t := w.logTotal(&o); t < least {
			least = t
			best.copyFrom(w)
		}
	}

	w.copyFrom(best)
}

// coolingFactor returns ratio^(1/steps) by bisection, from products alone.
func coolingFactor(ratio float64, steps int) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		mid := (low + high) / 2
		p := 1.0
		for range steps {
			p *= mid
		}
		if p < ratio {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// sweep proposes one rotation at every merge.
func (w *working) sweep(o *objective, temperature logs, rng *rand.PCG, scratch []uint64) {
	for x := int32(w.leaves()); int(x) < len(w.left); x++ {
		random := rng.Uint64()

		// One child of x has to be a merge: p = (a, b). Chance decides which, where both are.
		p, c := w.left[x], w.right[x]
		if w.left[p] == none || w.left[c] != none && random&1 != 0 {
			p, c = c, p
		}
		if w.left[p] == none {
			continue
		}

		// Chance decides too which of p's inputs changes places with c.
		a, b := w.left[p], w.right[p]
		if random&2 != 0 {
			a, b = b, a
		}
		w.rotate(o, temperature, random, x, p, a, b, c, scratch)
	}
	w.moves += int64((len(w.left) - w.leaves()) * (20 + 5*w.n.words))
}

// rotate turns x = (p = (a, b), c) into (p = (a, c), b) if the temperature allows.
// With S(·) the scopes, the new merges cost
//
//	inner = |S(a) ∪ S(c)|
//	size  = |S'(p)|,   S'(p) = (S(a) ∪ S(c)) ∩ (S(b) ∪ S(x))
//	outer = |S'(p) ∪ S(b)|
//
// as logarithms; the scope of x and all others stay.
func (w *working) rotate(
	o *objective, temperature logs, random uint64, x, p, a, b, c int32, scratch []uint64,
) {
	sa, sb, sc, sx := w.set(a), w.set(b), w.set(c), w.set(x)

	var inner, outer, size logs
	for i, l := range w.n.log {
		ac := sa[i] | sc[i]
		out := ac & (sb[i] | sx[i])
		scratch[i] = out
		inner += l * logs(ones(ac))
		size += l * logs(ones(out))
		outer += l * logs(ones(out|sb[i]))
	}

	// Metropolis: costlier by d > 0 is accepted with probability 2^(−d/T).
	old := logAdd(o.log(w.full[p], w.size[p]), o.log(w.full[x], w.size[x]))
	now := logAdd(o.log(inner, size), o.log(outer, w.size[x]))
	if d := now - old; d > 0 && d > temperature*exponential(random)>>fraction {
		return
	}

	copy(w.set(p), scratch)
	w.size[p], w.full[p], w.full[x] = size, inner, outer
	w.left[p], w.right[p] = a, c
	w.parent[c] = p
	w.left[x], w.right[x] = p, b
	w.parent[b] = x
}
