package pairwise

// The backward pass as a program: the adjoint of every table that marginals need.

import (
	"math"
)

// maxStepsPerMerge bounds the operations of a program. Recomputation that needs more is not tried.
const maxStepsPerMerge = 64

// isTooLong reports whether the program has too many operations.
func (e *emitter) isTooLong() bool { return e.opCount > maxStepsPerMerge*(len(e.shape.merges)+1000) }

// readings states at which tables marginals are read, and what the backward pass needs for it. An index that is summed at a merge is read
// at one of the two tables: at the smaller one, unless only the adjoint of the other is needed anyway. A lone index is read at its leaf.
type readings struct {
	reads        [][]int // by table: the indices read there
	needsAdjoint []bool  // by table: its adjoint is needed
	needsTable   []bool  // by table: its entries are needed in the backward pass
}

// chooseReadings decides where marginals are read, from the leaves up.
func (s *shape) chooseReadings() *readings {
	n := len(s.scopes)
	w := &readings{reads: make([][]int, n), needsAdjoint: make([]bool, n), needsTable: make([]bool, n)}
	for i := range s.leaves {
		w.reads[i] = s.loneIndices[i]
		w.needsAdjoint[i] = len(s.loneIndices[i]) > 0
	}
	for k, m := range s.merges {
		a, b := m[0], m[1]
		if len(s.summedIndices[k]) > 0 {
			table := a
			if w.needsAdjoint[a] == w.needsAdjoint[b] && s.sizes[b] < s.sizes[a] ||
				w.needsAdjoint[b] && !w.needsAdjoint[a] {
				table = b
			}
			w.reads[table] = append(w.reads[table][:len(w.reads[table]):len(w.reads[table])], s.summedIndices[k]...)
			w.needsAdjoint[table] = true
		}

		w.needsAdjoint[s.leaves+k] = w.needsAdjoint[a] || w.needsAdjoint[b]
		// for the adjoint of its partner, or to read marginals; a leaf is read in the expression
		w.needsTable[a] = w.needsAdjoint[b] || len(w.reads[a]) > 0 && a >= s.leaves
		w.needsTable[b] = w.needsAdjoint[a] || len(w.reads[b]) > 0 && b >= s.leaves

		for i := range 2 { // the adjoint of a scalar is computed from its value, see opRest
			if len(s.scopes[m[i]]) == 0 {
				w.needsTable[m[i]] = w.needsTable[m[i]] || w.needsAdjoint[m[i]]
			}
		}
	}
	return w
}

// backwardProgram returns the program of Marginals: forward, then back. Of the tables that the way back needs it keeps those of at most
// maxKept entries, and computes the others again. It returns nil if that takes too many operations.
func (s *shape) backwardProgram(w *readings, maxKept float64) *program {
	n := len(s.scopes)
	isKept := func(t int) bool { return w.needsTable[t] && s.sizes[t] <= maxKept }
	e := newEmitter(s)
	e.program.reads = w.reads

	frontier := e.clearFrontier(w)
	e.evaluate(isKept)

	e.begin(inEachSlice)
	root := n - 1
	if n > 0 && w.needsAdjoint[root] {
		e.allocate(n+root, 1)
		e.emit(op{code: opRootAdjoint, out: n + root})
		e.useAdjoint(w, root)
		e.backFrom(w, isKept, root)
	}
	if n > 0 && e.isLive[root] {
		e.free(root)
	}

	e.begin(afterSlices)
	for _, i := range frontier {
		e.moveEntries(2*n+i, n+i)
		e.emit(op{code: opMove, a: 2*n + i, out: n + i})
		e.useAdjoint(w, i)
		e.backFrom(w, isKept, i)
		if e.isLive[i] {
			e.free(i)
		}
	}

	for t := range s.scopes { // static tables without marginals
		if e.isLive[t] {
			e.free(t)
		}
	}

	if e.isTooLong() {
		return nil
	}
	return e.program
}

// clearFrontier returns the frontier: the static tables that are merged in each slice and whose adjoint is needed. For each it emits a
// sum of adjoints over slices, which begins with 0.
func (e *emitter) clearFrontier(w *readings) (frontier []int) {
	s := e.shape
	n := len(s.scopes)
	for k, m := range s.merges {
		for _, i := range m {
			if s.isStatic[i] && !s.isStatic[s.leaves+k] && w.needsAdjoint[i] {
				frontier = append(frontier, i)
				e.allocate(2*n+i, s.sizes[i])
				e.emit(op{code: opClearSum, out: 2*n + i})
			}
		}
	}
	return frontier
}

// backFrom emits the adjoints of all tables below table from that need one. The adjoint of from must be live, and each adjoint is freed
// when those of its two tables are made. It stops if the program is too long.
func (e *emitter) backFrom(w *readings, isKept func(table int) bool, from int) {
	s := e.shape
	n := len(s.scopes)
	stack := []int{from}
	for len(stack) > 0 && !e.isTooLong() {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if c < s.leaves || !e.isLive[n+c] {
			continue
		}

		m := s.merges[c-s.leaves]
		for _, i := range m {
			if w.needsTable[i] {
				e.recompute(isKept, i)
			}
		}

		var next []int // tables whose adjoints are new
		for i := range 2 {
			a, b := m[i], m[1-i]
			if !w.needsAdjoint[a] {
				continue
			}
			e.makeAdjoint(c, a, b)
			next = append(next, a)
		}

		e.free(n + c)
		for _, a := range next {
			e.useAdjoint(w, a)
		}
		for _, i := range m {
			if e.isLive[i] && (e.part == afterSlices || !s.isStatic[i]) {
				e.free(i)
			}
		}

		// The larger table is last on the stack and so goes first: its adjoint does not wait.
		if len(next) == 2 && s.sizes[next[0]] > s.sizes[next[1]] {
			next[0], next[1] = next[1], next[0]
		}
		stack = append(stack, next...)
	}
}

// makeAdjoint emits the adjoint of a from that of c, the result of the merge of a and b.
func (e *emitter) makeAdjoint(c, a, b int) {
	s := e.shape
	n := len(s.scopes)
	switch {
	case e.passesOn(a, c):
		e.allocate(n+a, 0)
		e.emit(op{code: opPassAdjoint, a: n + c, out: n + a})
		e.moveEntries(n+c, n+a)
	case e.passesOn(b, c): // a is a scalar
		e.allocate(n+a, 1)
		e.emit(op{code: opScalarAdjoint, a: a, out: n + a})
	default:
		e.allocate(n+a, s.sizes[a])
		union := s.unionSize[c-s.leaves]
		e.addFlops(finite(union + (union - s.sizes[a])))
		e.emit(op{code: opAdjoint, a: n + c, b: b, out: n + a})
	}
}

// useAdjoint emits what is done with the adjoint of table t, which is live. In a slice the adjoint of a static table goes into its sum over
// slices. Otherwise the marginals of t are read. The adjoint is freed if no adjoint below needs it.
func (e *emitter) useAdjoint(w *readings, t int) {
	n := len(e.shape.scopes)
	if e.part == inEachSlice && e.shape.isStatic[t] {
		e.addFlops(e.shape.sizes[t])
		e.emit(op{code: opSumAdjoint, a: n + t, out: 2*n + t})
		e.free(n + t)
		return
	}

	if len(w.reads[t]) > 0 {
		size := e.shape.sizes[t]
		if t < e.shape.leaves {
			size = finite(size + e.shape.presumFlops(t))
		}
		e.addFlops(finite(3 * size))
		e.emit(op{code: opReadMarginals, a: t, b: n + t})
	}
	if t < e.shape.leaves || !w.needsAdjoint[e.shape.merges[t-e.shape.leaves][0]] &&
		!w.needsAdjoint[e.shape.merges[t-e.shape.leaves][1]] {
		e.free(n + t)
	}
}

// recompute emits table t again, with all below it that are not live. It does nothing if t is live, and stops if the program is too long.
func (e *emitter) recompute(isKept func(table int) bool, t int) {
	s := e.shape
	stack := []int{t}
	for len(stack) > 0 && !e.isTooLong() {
		c := stack[len(stack)-1]
		if e.isLive[c] {
			stack = stack[:len(stack)-1]
			continue
		}
		if c < s.leaves {
			e.load(c)
			continue
		}

		m := s.merges[c-s.leaves]
		if !e.isLive[m[0]] || !e.isLive[m[1]] {
			for _, i := range m {
				if !e.isLive[i] {
					stack = append(stack, i)
				}
			}
			continue
		}

		e.merge(c - s.leaves)
		for _, i := range m {
			if !isKept(i) {
				e.freeMerged(i, c)
			}
		}
	}
}

// fitBackward returns the program of Marginals that keeps as many tables as memory bytes have room for. If none fits, it returns the one
// with the smallest peak.
func (s *shape) fitBackward(memory float64) *program {
	w := s.chooseReadings()
	largest := s.largestSize()
	var smallest *program
	for maxKept := math.MaxFloat64; ; maxKept = min(maxKept, 4*largest) / 4 {
		p := s.backwardProgram(w, maxKept)
		if p == nil {
			break
		}
		if smallest == nil || p.peak < smallest.peak {
			smallest = p
		}
		if 8*p.peak <= memory || maxKept < 1 {
			break
		}
	}
	return smallest
}
