package pairwise

// Layouts: in which sequence a result has its indices, and which kernel computes it.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// layout is the sequence of the indices of a table, the last one the fastest, with their strides.
type layout struct {
	index  []int
	stride []int
}

// strideOf is the stride of an index, 0 for one that the table has not.
func (l *layout) strideOf(v int) int {
	if i := slices.Index(l.index, v); i >= 0 {
		return l.stride[i]
	}
	return 0
}

// axis is an index of a merge: its dimension and its strides in both operands and the result.
type axis struct {
	index  int
	dim    int
	stride [3]int
}

// kind is the loop nest of a merge.
type kind uint8

const (
	tiny    kind = iota // few entries: a loop over all
	panel               // out[rows, run] += S[rows, k] · V[k, run]
	blend               // out[run] += A[k, run] · B[k, run]
	inner               // out[o] = Σ_run A[o, run] · B[o, run]
	batched             // out[rows, columns, run] = Σ_k A[rows, k, run] · B[k, columns, run]
)

// spec is a merge ready for its kernel. The result has its axes in the sequence outer, rows, run
// (for inner: outer; the run is summed; for batched: as long as they stay). Operand 0 of a panel is S, operand 1 is V; swapped says
// that they are b and a of the operation.
type spec struct {
	kind    kind
	swapped bool
	outer   []axis // one block for every combination of their values
	rows    []axis // of a panel, or of matrices side by side
	columns []axis // of matrices side by side
	run     []axis // the innermost loop
	sum     []axis // summed within a block
	steps   []axis // summed block after block
	inside  []axis // of outer or steps: gone through while staged data stays (see stage.go)
	staged  [2]copying
	size    int     // entries of the result
	work    float64 // multiplications
}

const (
	tinyWork   = 256     // multiplications up to which a merge is one plain loop
	maxRun     = 512     // entries of a run
	maxRows    = 96      // rows of a panel, a multiple of the rows of every tile
	taskRows   = 384     // rows that use a panel of V while it is packed
	maxSum     = 256     // values summed within a block
	listed     = 1024    // entries of the offset lists of rows and sums, unless one axis is longer
	maxPanel   = 1 << 16 // entries of a packed panel of V: 512 KiB
	smallPanel = 1 << 11 // entries of an S or a panel of V that is read where it is staged: half of the first cache
	innerOut   = 64      // entries of a result up to which sums are computed one by one
	maxMatrix  = 256     // entries of a matrix, when several are multiplied side by side
	side       = 32      // of those, at most
	innerPart  = 64      // parts at most into which such a sum is cut for threads
)

// WorkspaceBytes bounds the memory of one thread of a contraction beside the
// tables, unless a single dimension exceeds 512.
const WorkspaceBytes = 8 * (maxPanel + maxRows*maxSum + 2*(topStaged+maxPadding) + maxSum*kernel.Columns + innerPart*innerOut)

// layOut fixes layouts and kernels for all operations of a program.
func (s *shape) layOut(p *program) {
	if s.layouts == nil {
		s.layouts = make([]layout, 3*len(s.scope))
		s.specs = make([]*spec, 3*len(s.scope))
	}
	for _, part := range [][]op{p.before, p.each, p.after} {
		for i := range part {
			s.prepare(&part[i])
		}
	}
}

// prepare fixes layout and kernel of one operation.
func (s *shape) prepare(o *op) {
	tables := len(s.scope)
	switch o.code {
	case opLoad:
		if s.specs[o.out] == nil && s.layouts[o.out].index == nil {
			raw := s.rawLayout(o.out)
			s.layouts[o.out] = raw
			if s.copies(o.out) {
				s.specs[o.out], s.layouts[o.out] = s.plan(raw, layout{}, s.scope[o.out])
			}
		}
		o.spec = s.specs[o.out]
	case opMerge:
		if s.specs[o.out] == nil {
			s.specs[o.out], s.layouts[o.out] = s.plan(s.layouts[o.a], s.layouts[o.b],
				s.scope[o.out])
		}
		o.spec = s.specs[o.out]
	case opAdjoint:
		if s.specs[o.out] == nil {
			s.specs[o.out], s.layouts[o.out] = s.plan(s.layouts[o.a], s.layouts[o.b],
				s.scope[o.out-tables])
		}
		o.spec = s.specs[o.out]
	case opTake, opPass, opSum, opMove:
		s.layouts[o.out] = s.layouts[o.a]
	}
}

// rawLayout is the layout of a table of the expression, without indices of dimension 1 and sliced ones.
func (s *shape) rawLayout(leaf int) layout {
	e := s.h.Edges[leaf]
	l := layout{index: []int{}}
	step := 1
	for i := len(e) - 1; i >= 0; i-- {
		if s.dims[e[i]] > 1 {
			l.index = append(l.index, e[i])
			l.stride = append(l.stride, step)
		}
		step *= s.h.Dims[e[i]]
	}
	slices.Reverse(l.index)
	slices.Reverse(l.stride)
	return l
}

// plan chooses kernel and layout for out = a · b. The rule that keeps reads contiguous: indices
// that stay longest are last in every table. It is departed from to give panels rows and runs; a
// small model of the time of the loops decides.
func (s *shape) plan(a, b layout, out []int) (*spec, layout) {
	g := s.classify(a, b, out)
	best := g.tiny()

	if g.work > tinyWork {
		best = g.blend(maxRun)
		cost := best.time(&g)
		try := func(x *spec) {
			if x == nil {
				return
			}
			if t := x.time(&g); t < cost {
				best, cost = x, t
			}
		}
		try(g.blend(64))
		try(g.inner())
		for _, run := range []int{maxRun, 64} {
			try(g.panel(0, run))
			try(g.panel(1, run))
		}
		try(g.batched())
	}

	best.work = g.work

	l := layout{index: make([]int, 0, len(out))}
	sequence := [][]axis{best.outer, best.rows, best.run}
	switch best.kind {
	case inner:
		sequence = sequence[:1]
	case batched:
		sequence = [][]axis{g.out}
	}
	for _, part := range sequence {
		for _, x := range part {
			l.index = append(l.index, x.index)
		}
	}

	l.stride = make([]int, len(l.index))
	step := 1
	for i := len(l.index) - 1; i >= 0; i-- {
		l.stride[i] = step
		step *= s.dims[l.index[i]]
	}
	best.size = step
	for _, part := range []*[]axis{&best.outer, &best.rows, &best.columns, &best.run} {
		*part = slices.Clone(*part)
		for i := range *part {
			(*part)[i].stride[2] = l.strideOf((*part)[i].index)
		}
	}
	best.stage()
	return best, l
}

// groups are the indices of a merge by where they are, each sorted by how long they stay.
type groups struct {
	batch []axis     // in both operands and the result
	sum   []axis     // in both operands
	own   [2][]axis  // in one operand only, and in the result
	out   []axis     // batch and own
	size  [2]float64 // entries of the operands
	work  float64    // multiplications
}

// classify sorts the indices of a merge of two tables into one over out.
func (s *shape) classify(a, b layout, out []int) groups {
	g := groups{size: [2]float64{1, 1}, work: 1}
	all := make([]int, 0, len(a.index)+len(b.index))
	all = append(all, a.index...)
	for _, v := range b.index {
		g.size[1] *= float64(s.dims[v])
		if !slices.Contains(a.index, v) {
			all = append(all, v)
		}
	}
	for _, v := range a.index {
		g.size[0] *= float64(s.dims[v])
	}

	slices.SortFunc(all, s.longLived)

	for _, v := range all {
		x := axis{index: v, dim: s.dims[v], stride: [3]int{a.strideOf(v), b.strideOf(v), 0}}
		g.work *= float64(x.dim)
		_, stays := slices.BinarySearch(out, v)
		switch {
		case !stays:
			g.sum = append(g.sum, x)
			continue
		case x.stride[1] == 0:
			g.own[0] = append(g.own[0], x)
		case x.stride[0] == 0:
			g.own[1] = append(g.own[1], x)
		default:
			g.batch = append(g.batch, x)
		}
		g.out = append(g.out, x)
	}
	return g
}

// tiny is the merge as one plain loop.
func (g *groups) tiny() *spec { return &spec{kind: tiny, outer: g.out, sum: g.sum} }
