package preprocess

// Chains of counters: a table that is a function of a count becomes small tables along a chain.

import (
	"cmp"
	"math"
	"slices"
)

// maxStates bounds the counters of a chain.
const maxStates = 64

// chain writes t as a chain over its indices x_0 … x_{m−1} with counters s_1 … s_{m−1} between them:
// values of x_0 … x_k after which the rest of the table is the same up to a factor are one state of
// s_{k+1}. A function of a count has at most as many states as there are counts; clauses, parity and
// noisy-or have two. Nothing cancels. The indices are taken in the sequence of their places, in which
// they will be summed out. ok is false for two indices and for chains larger than the table.
func chain(dims []int, t *table, place []int) (c decomposition, ok bool) {
	scope := slices.Clone(t.scope)
	slices.SortFunc(scope, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	data := make([]float64, 0, len(t.data))
	for _, offset := range t.offsets(dims, scope) {
		data = append(data, t.data[offset])
	}

	c.kind = chainKind
	arity := len(scope)
	err := t.factorised(arity)
	states := [][]float64{data} // continuation of the table under each state
	size := len(data)           // of a continuation
	total := 0                  // entries of the chain
	for k, i := range scope {
		d := dims[i]
		size /= d
		next, steps, ok := advance(states, d, size)
		if !ok {
			return decomposition{}, false
		}
		if total += len(states) * d * len(next); total > len(data) {
			return decomposition{}, false
		}

		c.add(chainScope(i, k, arity), chainTable(steps, len(states), d, len(next)), err)
		if k < arity-1 {
			c.hidden = append(c.hidden, len(next))
		}
		states = next
	}
	return c, arity > 2
}

// step leads from a state of one counter, by a value x of the index, to a state of the next counter.
type step struct {
	from, x, to int
	gain        float64 // the entries that remain after the step are gain times the continuation of state to
}

// advance returns the states of the next counter of a chain, and the steps to them. A state is given by its continuation: the entries of
// the table over the remaining indices, up to a factor. If the next index, with d values, is fixed at x, block x of size entries of the
// continuation remains. Blocks that are proportional to each other lead to one state. Its continuation is the first of them, divided by its
// largest entry. A block of zeros has no step. ok is false if there are more than maxStates states, or if the division would lose an entry.
func advance(states [][]float64, d, size int) (next [][]float64, steps []step, ok bool) {
	for s, continuation := range states {
		for x := range d {
			block := continuation[x*size : (x+1)*size]
			gain := block[largest(block)]
			if gain == 0 {
				continue
			}
			to, isKnown := findProportional(next, block, gain)
			if !isKnown {
				if len(next) == maxStates {
					return nil, nil, false
				}
				q, ok := quotients(block, gain)
				if !ok {
					return nil, nil, false
				}
				to = len(next)
				next = append(next, q)
			}
			steps = append(steps, step{from: s, x: x, to: to, gain: gain})
		}
	}
	return next, steps, true
}

// findProportional returns the first of the known continuations that, times gain, is block. ok is false if there is none.
func findProportional(known [][]float64, block []float64, gain float64) (state int, ok bool) {
next:
	for s, continuation := range known {
		for k, f := range continuation {
			if !equals(block[k], gain, f) {
				continue next
			}
		}
		return s, true
	}
	return 0, false
}

// quotients divides by gain. ok is false when an entry would be lost.
func quotients(part []float64, gain float64) (out []float64, ok bool) {
	out = make([]float64, len(part))
	for k, x := range part {
		if out[k] = x / gain; x != 0 && math.Abs(out[k]) < tiny {
			return nil, false
		}
	}
	return out, true
}

// chainScope is (counter before, index, counter after) of position k; hidden index h is −1−h.
func chainScope(i, k, arity int) []int {
	switch k {
	case 0:
		return []int{i, -1}
	case arity - 1:
		return []int{-k, i}
	}
	return []int{-k, i, -1 - k}
}

// chainTable is the table over (counter before, value, counter after);
// one state at an end needs no axis.
func chainTable(steps []step, before, d, after int) []float64 {
	data := make([]float64, before*d*after)
	for _, s := range steps {
		data[(s.from*d+s.x)*after+s.to] = s.gain
	}
	return data
}
