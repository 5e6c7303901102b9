package pairwise

// Layouts: in which sequence a result has its indices, and which kernel computes it.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// layout is where the entries of a table lie: the entry at the values x_i of its indices is at Σ_i x_i stride[i].
type layout struct {
	index  []int // the indices of the table, the last one the fastest
	stride []int // by position in index
}

// strideOf returns the stride of an index, or 0 if the table does not have it.
func (l *layout) strideOf(v int) int {
	if i := slices.Index(l.index, v); i >= 0 {
		return l.stride[i]
	}
	return 0
}

// axis is a loop of a merge over the values of an index. An index may be split into two axes, as 6 values into 3 times 2.
type axis struct {
	index  int
	dim    int    // number of values
	stride [3]int // in operands 0 and 1 and in the result (2); 0 if the table does not have the index
}

// kind is the loop nest of a merge.
type kind uint8

const (
	tiny    kind = iota // few entries: one plain loop
	panel               // out[rows, run] += S[rows, k] · V[k, run]
	blend               // out[run] += A[k, run] · B[k, run]
	inner               // out[o] = Σ_run A[o, run] · B[o, run]
	batched             // out[rows, columns, run] = Σ_k A[rows, k, run] · B[k, columns, run]
)

// spec is a merge ready for its kernel: which index is which loop. The work is cut into blocks: a block is the work at one combination of
// values of outer and steps. The result has its axes in the sequence outer, rows, run. For kind inner these are outer only, since the run
// is summed. For batched they are sorted by how long they stay. Operand 0 of a panel is S, operand 1 is V.
type spec struct {
	kind          kind
	isSwapped     bool        // operands 0 and 1 are b and a of the operation
	outer         []axis      // loops over blocks of the result
	rows          []axis      // of a panel, or of matrices side by side
	columns       []axis      // of matrices side by side
	run           []axis      // the innermost loop
	sum           []axis      // summed within a block
	steps         []axis      // summed block after block
	insideAxes    []axis      // split off outer or steps: loops during which staged data stays (see stage.go)
	staged        [2]copyPlan // by operand: how a block is copied before it is read; empty if it is read where it is
	resultEntries int         // number of entries of the result
	work          float64     // multiplications
}

const (
	tinyWork    = 256     // multiplications up to which a merge is one plain loop
	maxRun      = 512     // entries of a run
	maxRows     = 96      // rows of a panel, a multiple of the rows of every tile
	taskRows    = 384     // rows that use a panel of V while it is packed
	maxSum      = 256     // values summed within a block
	maxListed   = 1024    // entries of the offset lists of rows and sums, unless one axis is longer
	maxPanel    = 1 << 16 // entries of a packed panel of V: 512 KiB
	smallPanel  = 1 << 11 // entries of an S or a panel of V that is read where it is staged: half of the first cache
	maxInnerOut = 64      // entries of a result up to which sums are computed one by one
	maxMatrix   = 256     // entries of a matrix, when several are multiplied side by side
	maxMatrices = 32      // matrices that are multiplied side by side
	innerParts  = 64      // parts at most into which the sums of an inner merge are cut for threads
)

// WorkspaceBytes bounds the memory of one thread of a contraction in addition to the
// tables, unless a single dimension exceeds 512.
const WorkspaceBytes = 8 * (maxPanel + maxRows*maxSum + 2*(maxLargeStaged+maxPadding) + maxSum*kernel.Columns + innerParts*maxInnerOut)

// layOut chooses the layout of every buffer of a program, and the kernel of every operation that computes one. It fills in layouts and
// specs of the shape, and the spec of each operation.
func (s *shape) layOut(p *program) {
	if s.layouts == nil {
		buffers := 3 * len(s.scopes) // tables, adjoints, and sums of adjoints
		s.layouts = make([]layout, buffers)
		s.specs = make([]*spec, buffers)
	}
	for _, ops := range [][]op{p.beforeOps, p.sliceOps, p.afterOps} {
		for i := range ops {
			s.prepareOp(&ops[i])
		}
	}
}

// prepareOp chooses the layout of the result of an operation, buffer o.out, and its kernel (o.spec) if it has one. A buffer that the
// program computes twice keeps the layout and the kernel of the first time. A result that shares the entries of operand a has the layout of
// a.
func (s *shape) prepareOp(o *op) {
	isPlanned := s.specs[o.out] != nil
	switch o.code {
	case opLoad:
		if !isPlanned && s.layouts[o.out].index == nil {
			stored := s.storedLayout(o.out)
			s.layouts[o.out] = stored
			if s.isCopied(o.out) { // sliced or summed: a merge with nothing
				s.specs[o.out], s.layouts[o.out] = s.planMerge(stored, layout{}, s.scopes[o.out])
			}
		}
		o.spec = s.specs[o.out]
	case opMerge, opAdjoint:
		table := o.out
		if o.code == opAdjoint { // buffers of adjoints follow those of tables; an adjoint has the indices of its table
			table -= len(s.scopes)
		}
		if !isPlanned {
			s.specs[o.out], s.layouts[o.out] = s.planMerge(s.layouts[o.a], s.layouts[o.b], s.scopes[table])
		}
		o.spec = s.specs[o.out]
	case opScale, opPassAdjoint, opSumAdjoint, opMove:
		s.layouts[o.out] = s.layouts[o.a]
	}
}

// storedLayout returns the layout of one slice of a leaf's table within the table of the expression, which is row-major with all values
// of all indices. It has the indices with more than one value that are not sliced. graph.Dims are the dimensions in the table of the
// expression, and dims those in a slice, which are 0 for sliced indices. Example: of a table over (i, j, k) with dimensions 2, 3, 4 and
// slices over j, the layout has i with stride 12 and k with stride 1.
func (s *shape) storedLayout(leaf int) layout {
	scope := s.graph.Edges[leaf]
	l := layout{index: []int{}}
	stride := 1
	for i := len(scope) - 1; i >= 0; i-- {
		v := scope[i]
		if s.dims[v] > 1 {
			l.index = append(l.index, v)
			l.stride = append(l.stride, stride)
		}
		stride *= s.graph.Dims[v]
	}
	slices.Reverse(l.index)
	slices.Reverse(l.stride)
	return l
}

// planMerge chooses the kernel of out = a · b, a table over the indices in out, and the layout of the result. By rule the indices that are
// summed out last come last in every table, so that reads are contiguous. A kernel may depart from it to get rows and runs, groups of axes
// over which it computes many entries at a time. Among the candidates a small model of the time of the loops decides (fastestKernel).
func (s *shape) planMerge(a, b layout, out []int) (*spec, layout) {
	g := s.groupIndices(a, b, out)
	best := g.fastestKernel()
	best.work = g.work

	// The layout of the result, row-major over the axes of the kernel.
	sequence := slices.Concat(best.outer, best.rows, best.run)
	switch best.kind {
	case inner: // the run is summed
		sequence = best.outer
	case batched: // the matrices lie side by side within the result's own sequence
		sequence = g.out
	}
	l, entries := s.rowMajor(sequence)
	best.resultEntries = entries

	// The strides of the kernel's axes in the result.
	for _, axes := range []*[]axis{&best.outer, &best.rows, &best.columns, &best.run} {
		*axes = slices.Clone(*axes)
		for i := range *axes {
			(*axes)[i].stride[2] = l.strideOf((*axes)[i].index)
		}
	}
	best.stage()
	return best, l
}

// rowMajor returns the layout of a table over the indices of some axes, in their sequence, the last one the fastest, and its number of
// entries.
func (s *shape) rowMajor(axes []axis) (l layout, entries int) {
	l = layout{index: make([]int, len(axes)), stride: make([]int, len(axes))}
	entries = 1
	for i := len(axes) - 1; i >= 0; i-- {
		v := axes[i].index
		l.index[i], l.stride[i] = v, entries
		entries *= s.dims[v]
	}
	return l, entries
}

// fastestKernel returns the candidate that takes the least time by the model (time), the first one of equals. It is a plain loop if there
// is little work. The others multiply runs entry by entry (blend), sum products of runs to numbers (inner), or multiply matrices, one pair
// (panel) or many side by side (batched). A run is a list of entries of the innermost loop, of at most maxRun or shortRun entries. In
// panel(v, …) it belongs to operand v.
func (g *groups) fastestKernel() *spec {
	if !(g.work > tinyWork) {
		return g.tiny()
	}
	const shortRun = 64 // entries, as an alternative to maxRun
	best := g.blend(maxRun)
	bestTime := best.time(g)
	for _, candidate := range []*spec{
		g.blend(shortRun),
		g.inner(),
		g.panel(0, maxRun), g.panel(1, maxRun),
		g.panel(0, shortRun), g.panel(1, shortRun),
		g.batched(),
	} {
		if candidate == nil { // not for this merge
			continue
		}
		if t := candidate.time(g); t < bestTime {
			best, bestTime = candidate, t
		}
	}
	return best
}

// groups are the indices of a merge by the tables that have them. Each group is sorted by when the indices are summed out, the last one
// last.
type groups struct {
	batch     []axis     // in both operands and in the result
	sum       []axis     // in one or both operands, not in the result: they are summed out
	exclusive [2][]axis  // by operand: in this operand only, and in the result
	out       []axis     // in the result: batch and both exclusive
	size      [2]float64 // by operand: number of entries
	work      float64    // number of multiplications: entries of a table over all indices
}

// groupIndices groups the indices of a merge of two tables by the tables that have them. a and b are the layouts of the two tables,
// operands 0 and 1. out are the indices of the result, sorted by number. The other indices are summed out. An operand has stride 0 for an
// index that it does not have.
func (s *shape) groupIndices(a, b layout, out []int) groups {
	// The indices of both tables, each once, and the sizes of the tables.
	g := groups{size: [2]float64{1, 1}, work: 1}
	indices := make([]int, 0, len(a.index)+len(b.index))
	indices = append(indices, a.index...)
	for _, v := range b.index {
		g.size[1] *= float64(s.dims[v])
		if !slices.Contains(a.index, v) {
			indices = append(indices, v)
		}
	}
	for _, v := range a.index {
		g.size[0] *= float64(s.dims[v])
	}
	slices.SortFunc(indices, s.byLifetime) // those that are summed out last come last

	for _, v := range indices {
		x := axis{index: v, dim: s.dims[v], stride: [3]int{a.strideOf(v), b.strideOf(v), 0}}
		g.work *= float64(x.dim)
		_, isInResult := slices.BinarySearch(out, v)
		isInA, isInB := x.stride[0] != 0, x.stride[1] != 0
		switch {
		case !isInResult:
			g.sum = append(g.sum, x)
			continue
		case !isInB:
			g.exclusive[0] = append(g.exclusive[0], x)
		case !isInA:
			g.exclusive[1] = append(g.exclusive[1], x)
		default:
			g.batch = append(g.batch, x)
		}
		g.out = append(g.out, x)
	}
	return g
}

// tiny returns the merge as one plain loop over all entries of the result, with a loop over the sum in it.
func (g *groups) tiny() *spec { return &spec{kind: tiny, outer: g.out, sum: g.sum} }
