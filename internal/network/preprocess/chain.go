package preprocess

// Chains of counters: a table that is a function of a count becomes small tables along a chain.

import (
	"cmp"
	"math"
	"slices"
)

// maxStates bounds the counters of a chain.
const maxStates = 64

// decomposeChain writes t as a chain of small tables over its indices x_0 … x_{m−1}, with hidden indices s_1 … s_{m−1}, the counters,
// between them:
//
//	T(x_0, …, x_{m−1}) = Σ_s A_0(x_0, s_1) A_1(s_1, x_1, s_2) … A_{m−1}(s_{m−1}, x_{m−1})
//
// The state of counter s_{k+1} is a function of x_0 … x_k: two combinations of these values have the same state if the table over the other
// indices is the same for both, up to a factor. A function of a count has at most as many states as there are counts; clauses, parity and
// noisy-or have two. No terms cancel. The indices are in the sequence in which they will be summed out, positionInOrder. ok is false if t
// has two indices or fewer, if there are too many states, or if the chain is larger than t.
func decomposeChain(dims []int, t *table, positionInOrder []int) (c decomposition, ok bool) {
	// Sort the indices, and the entries accordingly.
	scope := slices.Clone(t.scope)
	slices.SortFunc(scope, func(a, b int) int { return cmp.Compare(positionInOrder[a], positionInOrder[b]) })
	data := make([]float64, 0, len(t.data))
	for _, offset := range t.offsets(dims, scope) {
		data = append(data, t.data[offset])
	}

	// states lists the states of the counter before index k. A state is given by the table over index k and all later ones, up to a factor.
	// Before index 0 there is one state, and after the last index there is one.
	c.kind = chainKind
	arity := len(scope)
	err := t.factorError(arity) // of the entries of each table of the chain, which has arity tables
	states := [][]float64{data}
	blockSize := len(data) // entries of the table over the indices after index k
	chainSize := 0         // entries of the chain's tables
	for k, i := range scope {
		d := dims[i]
		blockSize /= d
		newStates, steps, ok := nextStates(states, d, blockSize)
		if !ok {
			return decomposition{}, false
		}
		chainSize += len(states) * d * len(newStates)
		if chainSize > len(data) {
			return decomposition{}, false
		}

		c.add(chainScope(i, k, arity), chainTable(steps, len(states), d, len(newStates)), err)
		if k < arity-1 {
			c.hidden = append(c.hidden, len(newStates))
		}
		states = newStates
	}
	return c, arity > 2
}

// step leads from a state of one counter, by a value x of the index, to a state of the next counter.
type step struct {
	from, x, to int
	gain        float64 // the entries that remain after the step are gain times the continuation of state to
}

// nextStates returns the states of the next counter of a chain, and the steps to them. A state is given by its continuation: the entries
// of the table over the remaining indices, up to a factor. The next index has d values. If it is fixed at value x, block x of the
// continuation, with blockSize entries, remains. Blocks that are proportional to each other lead to one state. The continuation of that
// state is the first of these blocks, divided by its largest entry, the gain. A block of zeros has no step. ok is false if there are more
// than maxStates states, or if the division would lose an entry.
func nextStates(states [][]float64, d, blockSize int) (next [][]float64, steps []step, ok bool) {
	for s, continuation := range states {
		for x := range d {
			block := continuation[x*blockSize : (x+1)*blockSize]
			gain := block[indexOfLargest(block)]
			if gain == 0 {
				continue
			}
			newState, isKnown := findProportional(next, block, gain)
			if !isKnown {
				if len(next) == maxStates {
					return nil, nil, false
				}
				quotient, ok := quotients(block, gain)
				if !ok {
					return nil, nil, false
				}
				newState = len(next)
				next = append(next, quotient)
			}
			steps = append(steps, step{from: s, x: x, to: newState, gain: gain})
		}
	}
	return next, steps, true
}

// findProportional returns the position in continuations of the first list f with block = gain·f, within rounding. Every list in
// continuations is the continuation of one state of a chain; the position is the number of the state. ok is false if there is no such
// list.
func findProportional(continuations [][]float64, block []float64, gain float64) (state int, ok bool) {
nextState:
	for s, continuation := range continuations {
		for k, f := range continuation {
			if !equals(block[k], gain, f) {
				continue nextState
			}
		}
		return s, true
	}
	return 0, false
}

// quotients returns the entries of block divided by gain. ok is false if the quotient of an entry that is not 0 is below tiny in absolute
// value: then digits may be lost.
func quotients(block []float64, gain float64) (quotient []float64, ok bool) {
	quotient = make([]float64, len(block))
	for k, x := range block {
		quotient[k] = x / gain
		if x != 0 && math.Abs(quotient[k]) < tiny {
			return nil, false
		}
	}
	return quotient, true
}

// chainScope returns the scope of the k-th table of a chain over arity indices: counter k, index i, counter k+1. There is no counter
// before the first table and none after the last. In the scope of a decomposition hidden index h is written as −1−h. Counter k is hidden
// index k−1, so it is written as −k.
func chainScope(i, k, arity int) []int {
	counter, nextCounter := -k, -1-k
	switch k {
	case 0:
		return []int{i, nextCounter}
	case arity - 1:
		return []int{counter, i}
	}
	return []int{counter, i, nextCounter}
}

// chainTable returns the table over (state of a counter, value of an index, state of the next counter), which has the gain of a step for
// all steps and is 0 elsewhere. The counters have stateCount and nextCount states, the index has d values. A counter of one state needs no
// axis.
func chainTable(steps []step, stateCount, d, nextCount int) []float64 {
	data := make([]float64, stateCount*d*nextCount)
	for _, s := range steps {
		data[(s.from*d+s.x)*nextCount+s.to] = s.gain
	}
	return data
}
