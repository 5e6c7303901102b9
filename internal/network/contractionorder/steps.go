package contractionorder

// Steps: the operations of an elimination order, table by table. Pricing and executing an
// order walk the same steps, so predicted and measured costs agree to the last flop.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/pace"
)

// Step makes one table out of live ones:
//
//	out[Out] = Σ_Sum Π_k in_k
//
// Tables are numbered: the tensors of the hypergraph first, then the outputs of the steps in
// sequence. A step consumes its inputs. Out lists the index to be eliminated first first, which is
// the slowest axis: the indices of Sum precede the indices of Out in the same sense, so every
// input that is itself a step's output has Sum on its slowest axes.
type Step struct {
	In   []int   // tables multiplied, 1 to MaxOperands
	Sum  []int   // indices summed out, possibly none
	Out  []int   // scope of the result, possibly empty
	Full float64 // Π of the dimensions of Sum and Out: the table that is touched and never stored
	Size float64 // Π of the dimensions of Out
}

// Flops counts the multiplications and additions of a step: (len(In)−1)·Full + (Full − Size).
func (s *Step) Flops() float64 {
	return finite(float64(len(s.In)-1)*s.Full + (s.Full - s.Size))
}

// MaxOperands bounds the inputs of one step:
// normalised entries multiply without leaving the range of float64.
const MaxOperands = 8

const (
	// inputs are merged beforehand while their product stays this small against the full table
	mergeBelow = 0.25
	smallTable = 256  // full tables up to this size are multiplied from as many inputs as there are
	pileUp     = 4096 // entries from which tables of one scope are multiplied where they meet
	// several indices are summed in one step while the output keeps this many entries,
	minRun = 512
	maxRun = 4096 // and the product of their dimensions stays this small
)

// Walk calls yield for every step of eliminating h along order (Restrict is applied to it), and
// stops early when yield returns false. The last tables, without scope, are left to multiply as
// numbers; so are the dimensions of indices that no tensor has. The only error is the context's;
// steps may have been yielded before it.
//
// Bucket elimination: the tables with the next index are merged pairwise, the pair with the
// smallest result first, while the result is small against the table over all their indices; the
// remaining tables are multiplied and summed in one step, together with the following indices of
// the order that no other table has. Memory: the scopes of the live tables. Time: per bucket of k
// tables O(k²·width).
func Walk(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) error {
	return newWalker(ctx, h, order, yield).walk(h)
}

// WalkPlainly is Walk with one step per index: all tables that have it, however many, are multiplied
// in the sequence of their numbers, and it alone is summed.
func WalkPlainly(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) error {
	w := newWalker(ctx, h, order, yield)
	w.plain = true
	return w.walk(h)
}

// glance is Walk whose steps end with their yield: the next one has their memory.
func glance(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) error {
	w := newWalker(ctx, h, order, yield)
	w.passing = new(Step)
	return w.walk(h)
}

// newWalker returns a walker before its first step.
func newWalker(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) *walker {
	order = Restrict(order, h)
	w := &walker{
		pace:  pace.New(ctx),
		order: order,
		pos:   make([]int32, len(h.Dims)),
		dim:   make([]float64, len(order)),
		first: slices.Repeat([]int32{none}, len(order)),
		last:  make([]int32, len(order)),
		next:  len(h.Edges),
		nodes: make([]node, 0, len(h.Edges)),
		in:    make([]node, 0, MaxOperands),
		yield: yield,
	}
	for v := range w.pos {
		w.pos[v] = none
	}
	for p, v := range order {
		w.pos[v] = int32(p)
		w.dim[p] = float64(h.Dims[v])
	}
	return w
}

// walk yields the steps.
func (w *walker) walk(h Hypergraph) error {
	entries := 0
	for _, e := range h.Edges {
		entries += len(e)
	}
	scopes := make([]int32, 0, entries)
	for id, e := range h.Edges {
		from := len(scopes)
		for _, v := range e {
			if w.pos[v] >= 0 {
				scopes = append(scopes, w.pos[v])
			}
		}
		scope := scopes[from:len(scopes):len(scopes)]
		slices.Sort(scope)
		if !w.place(node{id: int32(id), scope: scope, size: w.size(scope)}) {
			return w.pace.Err()
		}
	}

	for p := range w.first {
		if b := w.take(p); len(b) > 0 {
			if !w.bucket(p, b) {
				return w.pace.Err()
			}
		}
	}
	return w.pace.Err()
}

// Reach extends marks of the tensors of a hypergraph to the outputs of steps: an output is marked
// where one of its inputs is.
func Reach(marked []bool, steps []*Step) []bool {
	marked = slices.Clip(marked)
	for _, s := range steps {
		marked = append(marked, slices.ContainsFunc(s.In, func(t int) bool { return marked[t] }))
	}
	return marked
}

// node is a live table: its scope as sorted positions in the order.
type node struct {
	id    int32
	next  int32 // place in nodes of the next table of its bucket; none for the last
	scope []int32
	size  float64
}

// bySize puts small tables first; among equals those with early positions, so that merged
// tables are together in the order and either vary or do not within a run of fast axes.
func bySize(x, y node) int {
	if c := cmp.Compare(x.size, y.size); c != 0 {
		return c
	}
	return cmp.Or(slices.Compare(x.scope, y.scope), cmp.Compare(x.id, y.id))
}

// walker carries one Walk.
type walker struct {
	plain bool // nothing is merged beforehand
	pace  *pace.Pace
	order []int
	pos   []int32   // index → position
	dim   []float64 // dimension by position
	next  int       // number of the next step's output
	yield func(*Step) bool

	nodes []node  // live tables, and places of others that are free
	free  []int32 // places in nodes
	first []int32 // by position: place of the first live table whose smallest position it is; none
	last  []int32 // and of the last

	batch []node  // the tables of a bucket
	in    []node  // inputs of a step
	scope []int32 // of a bucket, as it is made
	rest  []int32 // and its inputs

	scopes  arena.Slab[int32]
	passing *Step // the memory of all steps; nil: each has its own
	list    []int // and of their lists
	steps   arena.Slab[Step]
	lists   arena.Slab[int]
}

func (w *walker) size(scope []int32) float64 {
	s := 1.0
	for _, p := range scope {
		s *= w.dim[p]
	}
	return finite(s)
}

// place puts a table where it is needed next. A large one is multiplied at once with one of the
// same scope that waits there: tables over the same indices would pile up otherwise, twenty of them
// in a bipartite graph of twenty and twenty.
func (w *walker) place(n node) bool {
	if len(n.scope) == 0 {
		return true
	}
	if w.pace.Over(int64(len(n.scope))) {
		return false
	}

	p := n.scope[0]
	if n.size >= pileUp && !w.plain {
		for at := w.first[p]; at != none; at = w.nodes[at].next {
			if t := w.nodes[at]; slices.Equal(t.scope, n.scope) {
				product, ok := w.emit(append(w.in[:0], t, n), n.scope, 0)
				product.next = t.next
				w.nodes[at] = product
				return ok
			}
		}
	}
	n.next = none
	at := w.keep(n)
	if w.first[p] == none {
		w.first[p] = at
	} else {
		w.nodes[w.last[p]].next = at
	}
	w.last[p] = at
	return true
}

// keep returns the place of a node.
func (w *walker) keep(n node) int32 {
	if last := len(w.free) - 1; last >= 0 {
		at := w.free[last]
		w.free = w.free[:last]
		w.nodes[at] = n
		return at
	}
	w.nodes = append(w.nodes, n)
	return int32(len(w.nodes) - 1)
}

// take empties the bucket of a position and returns its tables, in the sequence in which they came.
func (w *walker) take(p int) []node {
	b := w.batch[:0]
	for at := w.first[p]; at != none; {
		n := w.nodes[at]
		b = append(b, n)
		w.nodes[at] = node{}
		w.free = append(w.free, at)
		at = n.next
	}
	w.first[p] = none
	w.batch = b
	return b
}

// emit yields the step that multiplies in and sums out the first sum positions of scope.
func (w *walker) emit(in []node, scope []int32, sum int) (node, bool) {
	n := node{id: int32(w.next), scope: scope[sum:]}
	w.next++
	n.size = w.size(n.scope)
	s, list := w.step(len(in) + len(scope))
	for k, t := range in {
		list[k] = int(t.id)
	}
	of := list[len(in):]
	for k, p := range scope {
		of[k] = w.order[p]
	}
	*s = Step{
		In:   list[:len(in):len(in)],
		Sum:  of[:sum:sum],
		Out:  of[sum:],
		Full: w.size(scope),
		Size: n.size,
	}
	return n, w.yield(s)
}

// step returns the memory of a step with some tables and indices.
func (w *walker) step(n int) (*Step, []int) {
	if w.passing == nil {
		return &w.steps.Make(1)[0], w.lists.Make(n)
	}
	if n > len(w.list) {
		w.list = make([]int, 2*n)
	}
	return w.passing, w.list[:n]
}

// bucket eliminates position p, and following positions that only its tables have.
func (w *walker) bucket(p int, b []node) bool {
	ok := true
	if !w.plain {
		if b, ok = w.mergeEqual(b); !ok {
			return false
		}
	}
	w.scope = w.scope[:0]
	for _, t := range b {
		if w.pace.Over(int64(len(w.scope) + len(t.scope))) {
			return false
		}
		w.rest = appendUnion(w.rest[:0], w.scope, t.scope)
		w.scope, w.rest = w.rest, w.scope
	}

	scope := w.scopes.Copy(w.scope)
	run := 1
	if !w.plain {
		if b, ok = w.mergeSmall(b, w.size(scope)); !ok {
			return false
		}
		run = w.run(p, scope)
	}
	n, ok := w.emit(b, scope, run)
	return ok && w.place(n)
}

// run is the number of positions of a scope, from p on, that are summed in one step: indices that no
// other table has, while the output stays long.
func (w *walker) run(p int, scope []int32) int {
	run := 1
	left := w.size(scope[1:])
	summed := w.dim[p]
	for run < len(scope) && int(scope[run]) == p+run && w.first[p+run] == none {
		d := w.dim[p+run]
		if left < minRun*d || summed*d > maxRun {
			break
		}
		left, summed = left/d, summed*d
		run++
	}
	return run
}

// mergeEqual multiplies tables of the same scope, MaxOperands at a time.
func (w *walker) mergeEqual(b []node) ([]node, bool) {
	slices.SortStableFunc(b, bySize)
	out := b[:0]
	for i := 0; i < len(b); {
		j := i + 1
		for j < len(b) && slices.Equal(b[i].scope, b[j].scope) {
			j++
		}

		t, same := b[i], b[i+1:j]
		for i = j; len(same) > 0; {
			k := min(len(same), MaxOperands-1)
			var ok bool
			if t, ok = w.emit(append(append(w.in[:0], t), same[:k]...), t.scope, 0); !ok {
				return nil, false
			}
			same = same[k:]
		}
		out = append(out, t)
	}
	return out, true
}

// mergeSmall multiplies the smallest table with the partner that gives the smallest result,
// while that is small against full or there are more tables than one step takes.
func (w *walker) mergeSmall(b []node, full float64) ([]node, bool) {
	for first := 0; len(b) > 2 && first < len(b); {
		t := b[first]

		best, size := -1, math.Inf(1)
		for i, o := range b {
			if i != first {
				if w.pace.Over(int64(len(t.scope) + 1)) {
					return nil, false
				}
				if s := w.unionSize(t.scope, o.scope, size); s < size {
					best, size = i, s
				}
			}
		}

		if best < 0 || len(b) <= MaxOperands && (full <= smallTable || size > mergeBelow*full) {
			first++
			continue
		}

		n, ok := w.emit(append(w.in[:0], t, b[best]), w.union(t.scope, b[best].scope), 0)
		if !ok {
			return nil, false
		}

		b = slices.Delete(b, max(first, best), max(first, best)+1)
		b = slices.Delete(b, min(first, best), min(first, best)+1)
		at, _ := slices.BinarySearchFunc(b, n, bySize)
		b = slices.Insert(b, at, n)
		first = 0
	}
	return b, true
}

// unionSize is size(union(a, b)), or anything ≥ limit once it reaches limit.
func (w *walker) unionSize(a, b []int32, limit float64) float64 {
	s := 1.0
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]:
			s *= w.dim[a[i]]
			i++
		case i == len(a) || b[j] < a[i]:
			s *= w.dim[b[j]]
			j++
		default:
			s *= w.dim[a[i]]
			i, j = i+1, j+1
		}
		if s >= limit {
			return limit
		}
	}
	return s
}

// union merges two sorted lists.
func (w *walker) union(a, b []int32) []int32 {
	w.rest = appendUnion(w.rest[:0], a, b)
	return w.scopes.Copy(w.rest)
}

func appendUnion(out, a, b []int32) []int32 {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		out = append(out, min(x, y))
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
	}
	return append(append(out, a[i:]...), b[j:]...)
}

// finite replaces +Inf by the largest float64, which JSON can hold.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
