package pairwise

// Programs: a contraction as a list of operations with all allocations known.

// opcode is a kind of operation on buffers. Of n tables, buffer t is table t, buffer n+t its adjoint, and buffer 2n+t the sum of its
// adjoint over slices.
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

// op is one operation. A field that the opcode does not mention is 0.
type op struct {
	code      opcode
	a, b, out int   // buffers
	spec      *spec // how a table is computed; nil if it is not
}

// Parts of a program.
const (
	beforeSlices = iota
	inEachSlice
	afterSlices
)

// program is the list of operations of a contraction: before the slices, for each slice, and after them.
type program struct {
	beforeOps, sliceOps, afterOps []op
	flops                         [3]float64 // of one pass of each part
	peak                          float64    // most entries that are live at the same time
	liveAtSlices                  float64    // entries that are live when the slices begin
	reads                         [][]int    // by table: indices whose marginals are read there; nil without marginals
}

// emitter writes a program and tracks which tables are live.
type emitter struct {
	shape       *shape
	program     *program
	part        int       // of the program that is written
	ops         *[]op     // the operations of this part
	live        float64   // entries
	heldEntries []float64 // by buffer: entries that it holds
	isLive      []bool    // by buffer
	opCount     int       // operations so far, of all parts
}

// newEmitter begins a program with the part before the slices. The tables of the expression are live.
func newEmitter(s *shape) *emitter {
	e := &emitter{
		shape:       s,
		program:     &program{},
		live:        s.rawEntries,
		heldEntries: make([]float64, 3*len(s.scopes)),
		isLive:      make([]bool, 3*len(s.scopes)),
	}
	e.program.peak = s.rawEntries
	e.begin(beforeSlices)
	return e
}

// begin turns to a part of the program.
func (e *emitter) begin(part int) {
	e.part = part
	e.ops = []*[]op{&e.program.beforeOps, &e.program.sliceOps, &e.program.afterOps}[part]
}

// emit appends an operation to the part, and notes which buffers are live after it.
func (e *emitter) emit(o op) {
	*e.ops = append(*e.ops, o)
	e.opCount++
	switch o.code {
	case opFree:
		e.isLive[o.a] = false
	case opMove:
		e.isLive[o.a] = false
		e.isLive[o.out] = true
	case opReadMarginals, opValue:
	default:
		e.isLive[o.out] = true
	}
}

// allocate counts the entries of a buffer as live.
func (e *emitter) allocate(buffer int, size float64) {
	e.heldEntries[buffer] = size
	e.live = finite(e.live + size)
	e.program.peak = max(e.program.peak, e.live)
}

// moveEntries makes the entries that buffer a holds those of buffer to.
func (e *emitter) moveEntries(a, to int) {
	e.heldEntries[to] = e.heldEntries[a]
	e.heldEntries[a] = 0
}

// addFlops counts the flops of an operation of the part.
func (e *emitter) addFlops(flops float64) {
	e.program.flops[e.part] = finite(e.program.flops[e.part] + flops)
}

// free emits opFree for a buffer.
func (e *emitter) free(buffer int) {
	e.live -= e.heldEntries[buffer]
	e.heldEntries[buffer] = 0
	e.emit(op{code: opFree, a: buffer})
}

// load emits opLoad for a leaf.
func (e *emitter) load(leaf int) {
	if e.shape.isCopied(leaf) {
		e.allocate(leaf, e.shape.sizes[leaf])
		e.addFlops(e.shape.presumFlops(leaf))
	}
	e.emit(op{code: opLoad, out: leaf})
}

// merge emits the operation that makes table leaves+k from its two, which must be live. It does not free them. If one of them is a scalar,
// the operation is opTake, otherwise opMerge.
func (e *emitter) merge(k int) {
	s := e.shape
	m := s.merges[k]
	out := s.leaves + k
	for i := range 2 {
		a, b := m[i], m[1-i]
		if len(s.scopes[b]) == 0 {
			e.addFlops(1)
			e.emit(op{code: opScale, a: a, b: b, out: out})
			return
		}
	}

	e.allocate(out, s.sizes[out])
	e.addFlops(finite(s.unionSize[k] + (s.unionSize[k] - s.sizes[out])))
	e.emit(op{code: opMerge, a: m[0], b: m[1], out: out})
}

// forwardProgram returns the program of Contract.
func (s *shape) forwardProgram() *program {
	e := newEmitter(s)
	e.evaluate(nil)
	return e.program
}

// evaluate emits the merges of static tables before the slices, and all others in each slice. A table is freed after its merge, unless
// isKept is true for it or further slices need it. With isKept nil no table is kept, and the last is freed, too.
func (e *emitter) evaluate(isKept func(table int) bool) {
	s := e.shape
	for _, part := range []int{beforeSlices, inEachSlice} {
		e.begin(part)
		for k, m := range s.merges {
			out := s.leaves + k
			if s.isStatic[out] != (part == beforeSlices) {
				continue
			}
			for _, i := range m {
				if i < s.leaves && (part == beforeSlices || !s.isStatic[i]) {
					e.load(i)
				}
			}
			e.merge(k)
			for _, i := range m {
				if isKept == nil || !isKept(i) {
					e.freeMerged(i, out)
				}
			}
		}

		if s.leaves == 1 && part == inEachSlice {
			e.load(0)
		}

		if part == beforeSlices {
			e.loadStaticLeaves()
			e.program.liveAtSlices = e.live
		}
	}
	if s.leaves > 0 {
		e.emit(op{code: opValue, a: len(s.scopes) - 1})
	}
	if s.leaves > 0 && isKept == nil {
		e.free(len(s.scopes) - 1)
	}
}

// freeMerged frees table i after its merge into out. If the merge only passed its entries on, they go over to out. It does nothing if i is
// static and out is not, since the next slice needs i.
func (e *emitter) freeMerged(i, out int) {
	if e.shape.isStatic[i] && !e.shape.isStatic[out] {
		return
	}
	if e.passesOn(i, out) {
		e.moveEntries(i, out)
		e.emit(op{code: opMove, a: i, out: out})
		return
	}
	e.free(i)
}

// passesOn reports whether the merge into out takes the entries of i as they are, since its other table is a scalar. Of two scalars it
// takes the first.
func (e *emitter) passesOn(i, out int) bool {
	m := e.shape.merges[out-e.shape.leaves]
	if len(e.shape.scopes[m[1]]) == 0 {
		return i == m[0]
	}
	return len(e.shape.scopes[m[0]]) == 0 && i == m[1]
}

// loadStaticLeaves loads the static leaves that are merged in each slice.
func (e *emitter) loadStaticLeaves() {
	s := e.shape
	for k, m := range s.merges {
		if s.isStatic[s.leaves+k] {
			continue
		}
		for _, i := range m {
			if i < s.leaves && s.isStatic[i] {
				e.load(i)
			}
		}
	}
}
