package pairwise

// Programs: a contraction as a list of operations with all allocations known.

// opcode is a kind of operation on buffers. Of n tables, buffer t is table t, buffer n+t is its adjoint ∂Z/∂t (adjointBuffer), and buffer
// 2n+t is the sum of its adjoint over slices (adjointSumBuffer).
type opcode uint8

const (
	opLoad          opcode = iota // out: leaf, restricted to the slice, its lone indices summed
	opMerge                       // out = a · b, summed
	opAdjoint                     // out, an adjoint = the adjoint a · the table b, summed
	opScale                       // out = a, and the scalar b goes into the scale
	opPassAdjoint                 // out, an adjoint = the adjoint a, of a table whose partner is a scalar
	opRootAdjoint                 // out, the adjoint of the last table
	opScalarAdjoint               // out, the adjoint of the scalar a that went into the scale
	opClearSum                    // out, a sum of adjoints, is 0
	opSumAdjoint                  // out += a, over slices
	opReadMarginals               // marginals from table a and its adjoint b
	opMove                        // out takes over the memory of a
	opFree                        // a is not needed any more
	opValue                       // a is the value of the slice
)

// op is one operation of a program, with the numbers of the buffers that it is about. A field that the opcode does not mention is 0.
type op struct {
	code opcode
	a, b int   // the operands
	out  int   // the result
	spec *spec // how a table is computed from others; nil if it is not
}

// Parts of a program.
const (
	beforeSlices = iota
	inEachSlice
	afterSlices
)

// program is a contraction as three lists of operations, with all allocations known.
type program struct {
	beforeOps    []op       // before the slices
	sliceOps     []op       // for each slice
	afterOps     []op       // after all slices
	flops        [3]float64 // of one pass of each list
	peak         float64    // the largest number of entries that are live at the same time
	liveAtSlices float64    // the number of entries that are live when the slices begin
	reads        [][]int    // by table: indices whose marginals are read there; nil without marginals
}

// emitter writes a program. It tracks which buffers are live, and how many entries they hold.
type emitter struct {
	shape       *shape
	program     *program
	part        int       // the part of the program that is written: beforeSlices, inEachSlice or afterSlices
	ops         *[]op     // the operations of this part
	live        float64   // the number of entries of all live buffers
	heldEntries []float64 // by buffer: the number of entries that it holds; 0 if it shares those of another
	isLive      []bool    // by buffer
	opCount     int       // operations so far, of all parts
}

// newEmitter returns an emitter of an empty program, which begins with the operations before the slices. Of the entries, those of the
// tables of the expression are live. There is a buffer for each table, for its adjoint, and for the sum of its adjoint over slices.
func newEmitter(s *shape) *emitter {
	buffers := 3 * len(s.scopes)
	e := &emitter{
		shape:       s,
		program:     &program{},
		live:        s.rawEntries,
		heldEntries: make([]float64, buffers),
		isLive:      make([]bool, buffers),
	}
	e.program.peak = s.rawEntries
	e.begin(beforeSlices)
	return e
}

// begin makes a part of the program the one to which operations are appended.
func (e *emitter) begin(part int) {
	e.part = part
	e.ops = []*[]op{&e.program.beforeOps, &e.program.sliceOps, &e.program.afterOps}[part]
}

// emit appends an operation to the current part of the program, and notes which buffers are live after it.
func (e *emitter) emit(o op) {
	*e.ops = append(*e.ops, o)
	e.opCount++
	switch o.code {
	case opFree:
		e.isLive[o.a] = false
	case opMove:
		e.isLive[o.a] = false
		e.isLive[o.out] = true
	case opReadMarginals, opValue: // they have no result
	default:
		e.isLive[o.out] = true
	}
}

// allocate notes that a buffer holds some entries from now on, for the peak of the program.
func (e *emitter) allocate(buffer int, entries float64) {
	e.heldEntries[buffer] = entries
	e.live = finite(e.live + entries)
	e.program.peak = max(e.program.peak, e.live)
}

// moveEntries notes that the entries of one buffer are those of another one from now on.
func (e *emitter) moveEntries(from, to int) {
	e.heldEntries[to] = e.heldEntries[from]
	e.heldEntries[from] = 0
}

// addFlops adds to the flops of the current part.
func (e *emitter) addFlops(flops float64) {
	e.program.flops[e.part] = finite(e.program.flops[e.part] + flops)
}

// free emits opFree for a buffer, and notes that its entries are not live any more.
func (e *emitter) free(buffer int) {
	e.live -= e.heldEntries[buffer]
	e.heldEntries[buffer] = 0
	e.emit(op{code: opFree, a: buffer})
}

// load emits the operation that makes table leaf from a table of the expression: restricted to a slice, and with the indices summed out
// that no other table has. A leaf that needs neither shares the entries of the expression.
func (e *emitter) load(leaf int) {
	if e.shape.isCopied(leaf) {
		e.allocate(leaf, e.shape.sizes[leaf])
		e.addFlops(e.shape.leafAdditions(leaf))
	}
	e.emit(op{code: opLoad, out: leaf})
}

// merge emits the operation that makes table leaves+k, the result of merge k. The two tables of the merge must be live, and stay so. If one
// of them is a scalar, the operation is opScale: the result has the entries of the other table, and the scalar goes into the scale, so
// that nothing is allocated. Otherwise the operation is opMerge.
func (e *emitter) merge(k int) {
	s := e.shape
	m := s.merges[k]
	result := s.leaves + k
	for i := range 2 {
		table, partner := m[i], m[1-i]
		if s.isScalar(partner) {
			e.addFlops(1)
			e.emit(op{code: opScale, a: table, b: partner, out: result})
			return
		}
	}

	e.allocate(result, s.sizes[result])
	products := s.unionSize[k] // combinations of values of the indices of either table
	additions := products - s.sizes[result]
	e.addFlops(finite(products + additions))
	e.emit(op{code: opMerge, a: m[0], b: m[1], out: result})
}

// forwardProgram returns the program that computes the value of a contraction, without marginals (Contract).
func (s *shape) forwardProgram() *program {
	e := newEmitter(s)
	e.evaluate(nil)
	return e.program
}

// evaluate emits the forward pass, up to the value of a slice: before the slices the merges of static tables, which are the same in all
// slices, and in each slice all other merges. Leaves are loaded before their merge. A table is freed after its merge, unless isKept is
// true for it or further slices need it. If isKept is nil, no table is kept, not even the last one. Table leaves+k is the result of merge
// k.
func (e *emitter) evaluate(isKept func(table int) bool) {
	s := e.shape
	for _, part := range []int{beforeSlices, inEachSlice} {
		e.begin(part)
		for k, m := range s.merges {
			result := s.leaves + k
			if isDoneBefore := s.isStatic[result]; isDoneBefore != (part == beforeSlices) {
				continue // the merge is in the other part
			}
			e.loadLeaves(m[:], part)
			e.merge(k)
			for _, table := range m {
				if isKept == nil || !isKept(table) {
					e.freeMerged(table, result)
				}
			}
		}

		if s.leaves == 1 && part == inEachSlice { // there is no merge that loads the only leaf
			e.load(0)
		}

		if part == beforeSlices {
			e.loadStaticLeaves() // those that are merged in each slice
			e.program.liveAtSlices = e.live
		}
	}

	last := len(s.scopes) - 1
	if s.leaves > 0 {
		e.emit(op{code: opValue, a: last})
	}
	if s.leaves > 0 && isKept == nil {
		e.free(last)
	}
}

// loadLeaves loads those of some tables that are leaves. In a slice, static leaves are loaded already (loadStaticLeaves).
func (e *emitter) loadLeaves(tables []int, part int) {
	for _, table := range tables {
		isLeaf := table < e.shape.leaves
		isLoaded := part == inEachSlice && e.shape.isStatic[table]
		if isLeaf && !isLoaded {
			e.load(table)
		}
	}
}

// freeMerged frees a table after its merge into table out. If the merge only passed its entries on, they go over to out. It does nothing if
// the table is static and out is not, since the next slice needs the table.
func (e *emitter) freeMerged(table, out int) {
	if e.shape.isStatic[table] && !e.shape.isStatic[out] {
		return
	}
	if e.passesOn(table, out) {
		e.moveEntries(table, out)
		e.emit(op{code: opMove, a: table, out: out})
		return
	}
	e.free(table)
}

// passesOn reports whether the merge into table out takes the entries of a table as they are, since the other table of the merge is a
// scalar. If both are scalars, it takes those of the first.
func (e *emitter) passesOn(table, out int) bool {
	s := e.shape
	m := s.merges[out-s.leaves]
	if s.isScalar(m[1]) {
		return table == m[0]
	}
	return s.isScalar(m[0]) && table == m[1]
}

// loadStaticLeaves emits, before the slices, the loads of static leaves whose merges are in each slice.
func (e *emitter) loadStaticLeaves() {
	s := e.shape
	for k, m := range s.merges {
		if s.isStatic[s.leaves+k] {
			continue // its leaves are loaded already
		}
		for _, table := range m {
			if isLeaf := table < s.leaves; isLeaf && s.isStatic[table] {
				e.load(table)
			}
		}
	}
}
