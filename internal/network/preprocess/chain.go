package preprocess

// Tables that count.

import (
	"cmp"
	"math"
	"slices"
)

// maxStates bounds the counters of a chain.
const maxStates = 64

// chain writes table n as a chain over its indices x_0 … x_{m−1} with counters s_1 … s_{m−1}
// between them: values of x_0 … x_k after which the rest of the table is the same up to a factor
// are one state of s_{k+1}. A function of a count has at most as many states as there are counts;
// clauses, parity and noisy-or have two. Nothing cancels. The indices are taken in the sequence of
// their places, in which they will be summed out. Only chains that are no larger than the table are
// returned.
func (w *work) chain(n int, place []int) (pieces, bool) {
	scope := slices.Clone(w.tables[n].scope)
	slices.SortFunc(scope, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	t := &table{scope: scope, data: w.inOrder(w.tables[n], scope)}
	shape := w.shape(t)

	p := pieces{table: n, arity: len(shape), kind: aChain}
	err := w.tables[n].factorised(len(shape))
	states := [][]float64{t.data} // remaining table under each state
	size := len(t.data)
	total := 0

	for k, d := range shape {
		size /= d
		var next [][]float64
		var steps []step

		// Every state and value leads to the state whose
		// continuation is the same up to a factor, the gain.
		for s, rest := range states {
			for x := range d {
				part := rest[x*size : (x+1)*size]
				gain := part[largest(part)]
				if gain == 0 {
					continue
				}
				to := class(next, part, gain)
				if to == len(next) {
					if to == maxStates {
						return pieces{}, false
					}
					rest, ok := scaledBy(part, gain)
					if !ok {
						return pieces{}, false
					}
					next = append(next, rest)
				}
				steps = append(steps, step{s, x, to, gain})
			}
		}

		if total += len(states) * d * len(next); total > len(t.data) {
			return pieces{}, false
		}

		scope := chainScope(t.scope[k], k, len(shape))
		p.add(scope, chainTable(steps, len(states), d, len(next)), err)
		if k < len(shape)-1 {
			p.hidden = append(p.hidden, len(next))
		}
		states = next
	}

	return p, len(shape) > 2
}

// inOrder returns the entries of t with its indices in another sequence.
func (w *work) inOrder(t *table, scope []int) []float64 {
	data := make([]float64, 0, len(t.data))
	for _, at := range w.positions(t, scope) {
		data = append(data, t.data[at])
	}
	return data
}

// step says that value x leads from one state to another, with a factor gain.
type step struct {
	from, x, to int
	gain        float64
}

// class returns which of the known continuations part is gain times, len(known) for none.
func class(known [][]float64, part []float64, gain float64) int {
next:
	for c, rest := range known {
		for k, f := range rest {
			if !equals(part[k], gain, f) {
				continue next
			}
		}
		return c
	}
	return len(known)
}

// scaledBy divides by gain; it returns false when an entry would be lost.
func scaledBy(part []float64, gain float64) ([]float64, bool) {
	out := make([]float64, len(part))
	for k, x := range part {
		if out[k] = x / gain; x != 0 && math.Abs(out[k]) < tiny {
			return nil, false
		}
	}
	return out, true
}

// chainScope is (counter before, index, counter after) of position k; new index h is −1−h.
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
