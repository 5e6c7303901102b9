package pairwise

// The backward pass as a program: the adjoint of every table that marginals need.

import (
	"math"
	"slices"
)

// maxStepsPerMerge bounds the operations of a program. Recomputation that needs more is not tried.
const maxStepsPerMerge = 64

// isTooLong reports whether the program has so many operations that it is given up.
func (e *emitter) isTooLong() bool { return e.opCount > maxStepsPerMerge*(len(e.shape.merges)+1000) }

// readings states at which tables marginals are read, and what the backward pass needs for it. The marginal of an index is read at one
// table that has it, from the table and its adjoint. If a merge sums an index out, that is one of the two tables of the merge: the
// smaller one, or the one whose adjoint is needed anyway if only one is. A lone index of a leaf is read at that leaf.
type readings struct {
	reads        [][]int // by table: the indices whose marginals are read there
	needsAdjoint []bool  // by table: its adjoint is needed
	needsTable   []bool  // by table: its entries are needed in the backward pass
}

// chooseReadings decides at which tables the marginals of indices are read, and which tables and adjoints are needed for it, from the
// leaves up. The marginals of a lone index, which only one leaf has, are read at its leaf. Those of the indices that a merge sums out are
// read at one of its two tables: the one whose adjoint is needed anyway, or else the smaller one. Reading at a table needs its adjoint, and
// so the adjoint of the result of the merge and the other table of the merge.
func (s *shape) chooseReadings() *readings {
	n := len(s.scopes)
	r := &readings{reads: make([][]int, n), needsAdjoint: make([]bool, n), needsTable: make([]bool, n)}
	for leaf := range s.leaves {
		r.reads[leaf] = s.loneIndices[leaf]
		r.needsAdjoint[leaf] = len(s.loneIndices[leaf]) > 0
	}
	for k, m := range s.merges {
		a, b, result := m[0], m[1], s.leaves+k
		if len(s.summedIndices[k]) > 0 {
			table := r.cheaperToRead(s, a, b)
			r.reads[table] = append(slices.Clip(r.reads[table]), s.summedIndices[k]...) // Clip: the list of a leaf is that of the shape
			r.needsAdjoint[table] = true
		}

		// A table is needed for the adjoint of its partner, or to read marginals. Leaves are read in the expression.
		r.needsAdjoint[result] = r.needsAdjoint[a] || r.needsAdjoint[b]
		r.needsTable[a] = r.needsAdjoint[b] || len(r.reads[a]) > 0 && a >= s.leaves
		r.needsTable[b] = r.needsAdjoint[a] || len(r.reads[b]) > 0 && b >= s.leaves
		for _, table := range m {
			if s.isScalar(table) { // its adjoint is computed from its value, see opScalarAdjoint
				r.needsTable[table] = r.needsTable[table] || r.needsAdjoint[table]
			}
		}
	}
	return r
}

// backwardEmitter writes a program with a backward pass.
type backwardEmitter struct {
	*emitter
	readings *readings
	maxKept  float64 // the largest number of entries of a table that is kept from the forward pass
}

// isKept reports whether a table is kept from the forward pass for the backward pass, and not computed again.
func (e *backwardEmitter) isKept(table int) bool {
	return e.readings.needsTable[table] && e.shape.sizes[table] <= e.maxKept
}

// cheaperToRead returns the one of two tables that are merged whose adjoint is needed anyway, or else the smaller one.
func (r *readings) cheaperToRead(s *shape, a, b int) (table int) {
	onlyBNeedsAdjoint := r.needsAdjoint[b] && !r.needsAdjoint[a]
	isBSmaller := r.needsAdjoint[a] == r.needsAdjoint[b] && s.sizes[b] < s.sizes[a]
	if onlyBNeedsAdjoint || isBSmaller {
		return b
	}
	return a
}

// backwardProgram returns the program of Marginals: a forward pass to the value Z, and then a backward pass to the adjoints ∂Z/∂T of
// tables T, from which marginals are read. Of the tables that the backward pass needs, it keeps those of at most maxKept entries, and
// computes the others again. It returns nil if that takes too many operations.
//
// Static tables are the same in all slices and computed once, before the slices. The frontier is the static tables that are merged with
// one that is not static, in each slice. In a slice the backward pass goes down to the frontier, whose adjoints it adds to sums over the
// slices. After the slices it goes on from these sums.
func (s *shape) backwardProgram(readings *readings, maxKept float64) *program {
	e := &backwardEmitter{newEmitter(s), readings, maxKept}
	e.program.reads = readings.reads
	frontier := e.clearFrontier() // emitted before the slices, which add to the sums
	e.evaluate(e.isKept)          // the forward pass: operations before the slices and in each slice, up to the value
	e.emitSliceAdjoints()
	e.emitStaticAdjoints(frontier)
	if e.isTooLong() {
		return nil
	}
	return e.program
}

// emitSliceAdjoints emits the backward pass in each slice: the adjoints from the last table of the tree, the root, down to static tables,
// which are the same in all slices. The root has no index, so its table and adjoint are one number.
func (e *backwardEmitter) emitSliceAdjoints() {
	s := e.shape
	e.begin(inEachSlice)
	root := len(s.scopes) - 1
	if root >= 0 && e.readings.needsAdjoint[root] {
		e.allocate(s.adjointBuffer(root), 1)
		e.emit(op{code: opRootAdjoint, out: s.adjointBuffer(root)})
		e.useAdjoint(root)
		e.emitAdjointsBelow(root)
	}
	if root >= 0 && e.isLive[root] {
		e.free(root)
	}
}

// emitStaticAdjoints emits the backward pass after the slices. Static tables are computed once for all slices; those of the frontier are
// merged in each slice, and their adjoints are the sums over the slices. From these it goes on to the static tables below. It frees all
// static tables.
func (e *backwardEmitter) emitStaticAdjoints(frontier []int) {
	s := e.shape
	e.begin(afterSlices)
	for _, table := range frontier {
		sum, adjoint := s.adjointSumBuffer(table), s.adjointBuffer(table)
		e.moveEntries(sum, adjoint)
		e.emit(op{code: opMove, a: sum, out: adjoint})
		e.useAdjoint(table)
		e.emitAdjointsBelow(table)
		if e.isLive[table] {
			e.free(table)
		}
	}
	for table := range s.scopes { // static tables without marginals
		if e.isLive[table] {
			e.free(table)
		}
	}
}

// clearFrontier returns the frontier. Static tables are computed once for all slices. A static table is in the frontier if it is merged in
// each slice, with a table that is not static, and if its adjoint is needed. For each of these, clearFrontier emits the operation that sets
// the sum of its adjoint over slices to 0.
func (e *backwardEmitter) clearFrontier() (frontier []int) {
	s := e.shape
	for k, m := range s.merges {
		for _, table := range m {
			isMergedInSlices := s.isStatic[table] && !s.isStatic[s.leaves+k]
			if isMergedInSlices && e.readings.needsAdjoint[table] {
				frontier = append(frontier, table)
				e.allocate(s.adjointSumBuffer(table), s.sizes[table])
				e.emit(op{code: opClearSum, out: s.adjointSumBuffer(table)})
			}
		}
	}
	return frontier
}

// emitAdjointsBelow emits the adjoints of the tables below a table of the tree, as far as they are needed. The adjoint of the table must be
// live. It goes down the tree: from the adjoint of a merge's result it makes those of the two tables merged, and then frees it. It stops if
// the program is too long.
func (e *backwardEmitter) emitAdjointsBelow(table int) {
	s := e.shape
	stack := []int{table}
	for len(stack) > 0 && !e.isTooLong() {
		c := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		isLeaf := c < s.leaves
		if isLeaf || !e.isLive[s.adjointBuffer(c)] {
			continue // nothing below needs its adjoint
		}
		withAdjoint := e.emitOperandAdjoints(c)

		// The larger table is last on the stack and so goes first: its adjoint does not wait.
		if len(withAdjoint) == 2 && s.sizes[withAdjoint[0]] > s.sizes[withAdjoint[1]] {
			withAdjoint[0], withAdjoint[1] = withAdjoint[1], withAdjoint[0]
		}
		stack = append(stack, withAdjoint...)
	}
}

// emitOperandAdjoints emits the adjoints of the two tables that are merged into table c. If a table needs no adjoint, it gets none.
// withAdjoint are the tables that got one. The adjoint of c is freed, and so is each of the two tables, unless further slices need it.
func (e *backwardEmitter) emitOperandAdjoints(c int) (withAdjoint []int) {
	s := e.shape
	m := s.merges[c-s.leaves]
	for _, i := range m {
		if e.readings.needsTable[i] { // an adjoint or a marginal is computed from it
			e.recompute(i)
		}
	}
	for i := range 2 {
		a, partner := m[i], m[1-i]
		if e.readings.needsAdjoint[a] {
			e.makeAdjoint(c, a, partner)
			withAdjoint = append(withAdjoint, a)
		}
	}
	e.free(s.adjointBuffer(c))
	for _, a := range withAdjoint {
		e.useAdjoint(a) // reads the marginals, or adds to the sum over slices
	}
	for _, i := range m {
		isNeededBySlices := e.part == inEachSlice && s.isStatic[i]
		if e.isLive[i] && !isNeededBySlices {
			e.free(i)
		}
	}
	return withAdjoint
}

// makeAdjoint emits the operation that computes the adjoint of table a, ∂Z/∂a. Table c is the merge of a and its partner, and its adjoint
// is live. There are three cases (passesOn(x, c) reports that c has the entries of x, since the other table of the merge is a scalar):
//
//   - The partner is a scalar. Then the buffer of the adjoint of c becomes that of a.
//   - a is a scalar. Then its adjoint is Z / a.
//   - Otherwise the adjoint of a is the adjoint of c times the partner, summed over the indices that a does not have.
func (e *backwardEmitter) makeAdjoint(c, a, partner int) {
	s := e.shape
	adjointA, adjointC := s.adjointBuffer(a), s.adjointBuffer(c)
	switch {
	case e.passesOn(a, c):
		e.allocate(adjointA, 0) // no entries of its own: it takes over those of the adjoint of c
		e.emit(op{code: opPassAdjoint, a: adjointC, out: adjointA})
		e.moveEntries(adjointC, adjointA)
	case e.passesOn(partner, c):
		e.allocate(adjointA, 1)
		e.emit(op{code: opScalarAdjoint, a: a, out: adjointA})
	default:
		e.allocate(adjointA, s.sizes[a])
		products := s.unionSize[c-s.leaves] // combinations of values of the indices of the merge
		additions := products - s.sizes[a]
		e.addFlops(finite(products + additions))
		e.emit(op{code: opAdjoint, a: adjointC, b: partner, out: adjointA})
	}
}

// useAdjoint emits what is done with the adjoint of a table, which is live. In a slice, the adjoint of a static table goes into its sum
// over slices, and is freed. Otherwise the marginals of the table are read, and the adjoint is freed if no adjoint below needs it.
func (e *backwardEmitter) useAdjoint(table int) {
	s := e.shape
	adjoint := s.adjointBuffer(table)
	if e.part == inEachSlice && s.isStatic[table] {
		e.addFlops(s.sizes[table])
		e.emit(op{code: opSumAdjoint, a: adjoint, out: s.adjointSumBuffer(table)})
		e.free(adjoint)
		return
	}

	isLeaf := table < s.leaves
	if len(e.readings.reads[table]) > 0 {
		entries := s.sizes[table]
		if isLeaf {
			entries = finite(entries + s.leafAdditions(table))
		}
		e.addFlops(finite(3 * entries)) // a product and two additions for each entry
		e.emit(op{code: opReadMarginals, a: table, b: adjoint})
	}
	if isLeaf {
		e.free(adjoint)
		return
	}
	m := s.merges[table-s.leaves]
	isNeededBelow := e.readings.needsAdjoint[m[0]] || e.readings.needsAdjoint[m[1]]
	if !isNeededBelow {
		e.free(adjoint)
	}
}

// recompute emits the merges that make a table again, and all tables below it that are not live. A table is live while its buffer has its
// entries. It does nothing if the table is live, and stops if the program is too long.
func (e *backwardEmitter) recompute(table int) {
	s := e.shape
	stack := []int{table}
	for len(stack) > 0 && !e.isTooLong() {
		c := stack[len(stack)-1] // it stays on the stack until it is live
		if e.isLive[c] {
			stack = stack[:len(stack)-1]
			continue
		}
		if isLeaf := c < s.leaves; isLeaf {
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
			if !e.isKept(i) { // it is not kept for the backward pass, and is made again if it is needed again
				e.freeMerged(i, c)
			}
		}
	}
}

// fitBackward returns the program of Marginals that keeps as many tables of the forward pass for the backward pass as memory bytes have
// room for. It tries smaller and smaller limits of the size of tables that are kept (maxKept): no limit, then largest, largest/4, … until
// below 1 entry. The tables that are not kept are computed again. If no program fits, it returns the one with the smallest peak.
func (s *shape) fitBackward(memory float64) *program {
	readings := s.chooseReadings()
	largest := s.largestSize()
	var smallest *program
	for maxKept := math.MaxFloat64; ; {
		p := s.backwardProgram(readings, maxKept)
		if p == nil { // too long, and more so with fewer tables kept
			break
		}
		if smallest == nil || p.peak < smallest.peak {
			smallest = p
		}
		fits := 8*p.peak <= memory // 8 bytes an entry
		if fits || maxKept < 1 {
			break
		}
		maxKept = min(maxKept, 4*largest) / 4 // largest after the first round
	}
	return smallest
}
