package pairwise

// Programs: a contraction as a list of operations with all allocations known.

// Operations on buffers. Of n tables, buffer t is table t,
// buffer n+t its adjoint, buffer 2n+t the sum of its adjoint over slices.
type opcode uint8

const (
	opLoad    opcode = iota // out: leaf, restricted to the slice, its own indices summed
	opMerge                 // out = a · b, summed
	opAdjoint               // out, an adjoint = the adjoint a · the table b, summed
	opTake                  // out = a, and the scalar b goes into the scale
	opPass                  // out, an adjoint = the adjoint a, of a table whose partner is a scalar
	opUnit                  // out, the adjoint of the last table
	opRest                  // out, the adjoint of the scalar a that went into the scale
	opClear                 // out, a sum of adjoints, is 0
	opSum                   // out += a, over slices
	opRead                  // marginals from table a and its adjoint b
	opMove                  // out takes over the buffer of a
	opFree                  // a is not needed any more
	opDone                  // a is the value of the slice
)

// op is one operation: its buffers a, b and out, as far as it has them, and the kernel of a merge.
type op struct {
	code      opcode
	a, b, out int
	spec      *spec
}

// program lists the operations before the slices, per slice, and after them.
type program struct {
	before, each, after []op
	// flops of one pass of each part
	flops  [3]float64
	peak   float64 // entries
	shared float64 // entries live before the slices
	// reads: by table, indices whose marginals are read there, nil without marginals
	reads [][]int
}

// emitter writes operations and tracks the live tables.
type emitter struct {
	s     *shape
	p     *program
	part  *[]op     // that is written
	at    int       // its number: 0 before the slices, 1 in each, 2 after them
	live  float64   // entries
	owned []float64 // by buffer: entries it holds
	have  []bool    // by buffer: it is live
	steps int       // operations so far
}

// newEmitter begins the part before the slices, the tables of the expression being live.
func newEmitter(s *shape) *emitter {
	e := &emitter{
		s:     s,
		p:     &program{},
		live:  s.raw,
		owned: make([]float64, 3*len(s.scope)),
		have:  make([]bool, 3*len(s.scope)),
	}
	e.p.peak = s.raw
	e.begin(0)
	return e
}

// begin turns to a part of the program.
func (e *emitter) begin(part int) {
	e.at = part
	e.part = []*[]op{&e.p.before, &e.p.each, &e.p.after}[part]
}

// emit writes an operation.
func (e *emitter) emit(o op) {
	*e.part = append(*e.part, o)
	e.steps++
	switch o.code {
	case opFree:
		e.have[o.a] = false
	case opMove:
		e.have[o.a] = false
		e.have[o.out] = true
	case opRead, opDone:
	default:
		e.have[o.out] = true
	}
}

// take allocates a buffer.
func (e *emitter) take(buffer int, size float64) {
	e.owned[buffer] = size
	e.live = finite(e.live + size)
	e.p.peak = max(e.p.peak, e.live)
}

// spend counts the flops of an operation.
func (e *emitter) spend(flops float64) { e.p.flops[e.at] = finite(e.p.flops[e.at] + flops) }

// release frees a buffer.
func (e *emitter) release(buffer int) {
	e.live -= e.owned[buffer]
	e.owned[buffer] = 0
	e.emit(op{code: opFree, a: buffer})
}

// load makes a leaf available.
func (e *emitter) load(leaf int) {
	if e.s.copies(leaf) {
		e.take(leaf, e.s.size[leaf])
		e.spend(e.s.presum(leaf))
	}
	e.emit(op{code: opLoad, out: leaf})
}

// merge makes table leaves+k from its two, which are live, and does not free them.
func (e *emitter) merge(k int) {
	s := e.s
	m := s.merges[k]
	out := s.leaves + k
	for i := range 2 {
		a, b := m[i], m[1-i]
		if len(s.scope[b]) == 0 {
			e.spend(1)
			e.emit(op{code: opTake, a: a, b: b, out: out})
			return
		}
	}

	e.take(out, s.size[out])
	e.spend(finite(s.full[k] + (s.full[k] - s.size[out])))
	e.emit(op{code: opMerge, a: m[0], b: m[1], out: out})
}

// forward is the program of Contract.
func (s *shape) forward() *program {
	e := newEmitter(s)
	e.evaluate(nil)
	return e.p
}

// evaluate emits all merges.
// A table is freed when its merge is done, unless keep says otherwise or other slices need it.
func (e *emitter) evaluate(keep func(table int) bool) {
	s := e.s
	for part := range 2 {
		e.begin(part)
		for k, m := range s.merges {
			out := s.leaves + k
			if s.static[out] != (part == 0) {
				continue
			}
			for _, i := range m {
				if i < s.leaves && (part == 0 || !s.static[i]) {
					e.load(i)
				}
			}
			e.merge(k)
			for _, i := range m {
				if keep == nil || !keep(i) {
					e.drop(i, out)
				}
			}
		}

		if s.leaves == 1 && part == 1 {
			e.load(0)
		}

		if part == 0 {
			e.frontier()
			e.p.shared = e.live
		}
	}
	if s.leaves > 0 {
		e.emit(op{code: opDone, a: len(s.scope) - 1})
	}
	if s.leaves > 0 && keep == nil {
		e.release(len(s.scope) - 1)
	}
}

// drop frees a table after the merge into out,
// moving the ownership when the merge only passed it on.
func (e *emitter) drop(i, out int) {
	if e.s.static[i] && !e.s.static[out] {
		return // the next slice needs it
	}
	if e.passes(i, out) {
		e.owned[out] = e.owned[i]
		e.owned[i] = 0
		e.emit(op{code: opMove, a: i, out: out})
		return
	}
	e.release(i)
}

// passes says that merge out takes over the buffer of i.
func (e *emitter) passes(i, out int) bool {
	m := e.s.merges[out-e.s.leaves]
	if len(e.s.scope[m[1]]) == 0 {
		return i == m[0]
	}
	return len(e.s.scope[m[0]]) == 0 && i == m[1]
}

// frontier loads static leaves that merges of the slices use.
func (e *emitter) frontier() {
	s := e.s
	for k, m := range s.merges {
		if s.static[s.leaves+k] {
			continue
		}
		for _, i := range m {
			if i < s.leaves && s.static[i] {
				e.load(i)
			}
		}
	}
}
