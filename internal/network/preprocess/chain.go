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

// step says that value x leads from one state to another, with a factor gain.
type step struct {
	from, x, to int
	gain        float64
}

// advance takes every state and each of d values to the state whose continuation, of size entries, is
// the same up to a factor, the gain. ok is false when there are too many states, or an entry would be
// lost.
func advance(states [][]float64, d, size int) (next [][]float64, steps []step, ok bool) {
	for s, continuation := range states {
		for x := range d {
			part := continuation[x*size : (x+1)*size]
			gain := part[largest(part)]
			if gain == 0 {
				continue
			}
			to := class(next, part, gain)
			if to == len(next) {
				if to == maxStates {
					return nil, nil, false
				}
				q, ok := quotients(part, gain)
				if !ok {
					return nil, nil, false
				}
				next = append(next, q)
			}
			steps = append(steps, step{s, x, to, gain})
		}
	}
	return next, steps, true
}

// class returns which of the known continuations part is gain times, len(known) for none.
func class(known [][]float64, part []float64, gain float64) int {
next:
	for c, continuation := range known {
		for k, f := range continuation {
			if !equals(part[k], gain, f) {
				continue next
			}
		}
		return c
	}
	return len(known)
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
