package contractionorder

// Steps: the operations of an elimination order, table by table. An order is priced and executed by the same steps, so that predicted and
// measured costs agree to the last flop.

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
// Tables are numbered: the tensors of the hypergraph first, then the outputs of the steps in sequence. A step consumes its inputs. Sum and
// Out list their indices in the sequence of the order, and all of Sum comes before all of Out. The first index of a table is its slowest
// axis. So an input that is the output of another step has the indices of Sum on its slowest axes.
type Step struct {
	In       []int   // tables multiplied, 1 to MaxOperands
	Sum      []int   // indices summed out, possibly none
	Out      []int   // scope of the result, possibly empty
	FullSize float64 // Π of the dimensions of Sum and Out: entries of the table that is touched and never stored
	Size     float64 // Π of the dimensions of Out: entries of the result
}

// Flops returns the number of multiplications and additions of a step: (len(In)−1)·FullSize + (FullSize − Size). FullSize is the number
// of entries of the product before the sum, and Size that of the result.
func (s *Step) Flops() float64 {
	return finite(float64(len(s.In)-1)*s.FullSize + (s.FullSize - s.Size))
}

// MaxOperands is the limit of the inputs of one step. The product of so many normalised entries is within the range of float64.
const MaxOperands = 8

const (
	// Two inputs of a step are merged beforehand if their product has at most this share of the entries of the full table.
	mergeShare = 0.25
	smallTable = 256  // inputs of full tables up to this size are not merged beforehand
	largeTable = 4096 // tables of one scope with at least so many entries are multiplied as soon as they meet
	// Several indices are summed in one step if the output keeps at least minRunOutput entries and the product of their dimensions is at
	// most maxRunSummed.
	minRunOutput = 512
	maxRunSummed = 4096
)

// Walk calls yield for every step of the elimination of h along order (RestrictOrder is applied to it). It stops early if yield returns
// false. The caller multiplies the tables that remain, which have no indices, and the dimensions of indices that no tensor has. The only
// error is that of the context; steps may have been yielded before it.
//
// This is bucket elimination. The bucket of an index has the tables with that index and none before it. They are merged pairwise, as long
// as a result is small against the table over all indices of the bucket. The remaining tables are multiplied in one step, which sums the
// index and those indices directly after it in the order that only these tables have. Memory: the scopes of the live tables. Time:
// O(k²·width) for a bucket of k tables.
func Walk(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) error {
	return newWalker(ctx, h, order, yield).walk(h)
}

// WalkPlainly calls yield for every step of the elimination of h along order, one step per index: a step multiplies all tables that have
// the index, however many, in the sequence of their numbers, and sums only this index. Otherwise it is like Walk.
func WalkPlainly(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) error {
	w := newWalker(ctx, h, order, yield)
	w.isPlain = true
	return w.walk(h)
}

// walkReusing calls yield for the steps of Walk, with one Step for all calls: a step is valid only until yield returns, and the next one
// overwrites it.
func walkReusing(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) error {
	w := newWalker(ctx, h, order, yield)
	w.reusedStep = new(Step)
	return w.walk(h)
}

// newWalker returns a walker along order, before its first step. The walker names an index by its position in the order; none (−1) stands
// for no position and for no table.
func newWalker(ctx context.Context, h Hypergraph, order []int, yield func(*Step) bool) *walker {
	order = RestrictOrder(order, h)
	w := &walker{
		pace:      pace.New(ctx),
		order:     order,
		position:  make([]int32, len(h.Dims)),
		dim:       make([]float64, len(order)),
		firstSlot: slices.Repeat([]int32{none}, len(order)),
		lastSlot:  make([]int32, len(order)),
		nextTable: len(h.Edges),
		nodes:     make([]node, 0, len(h.Edges)),
		inputs:    make([]node, 0, MaxOperands),
		yield:     yield,
	}
	for v := range w.position {
		w.position[v] = none
	}
	for position, v := range order {
		w.position[v] = int32(position)
		w.dim[position] = float64(h.Dims[v])
	}
	return w
}

// walk puts the tensors of h into buckets and eliminates bucket after bucket. A table's scope has the positions of its indices in the
// order, ascending, in place of the indices. The table is in the bucket of its first position: the index there is the first of its indices
// to be summed out. walk ends early without an error if yield returned false.
func (w *walker) walk(h Hypergraph) error {
	// The scopes of all tensors are parts of one list.
	entries := 0
	for _, edge := range h.Edges {
		entries += len(edge)
	}
	scopes := make([]int32, 0, entries)
	for id, edge := range h.Edges {
		begin := len(scopes)
		for _, v := range edge {
			if w.position[v] >= 0 { // else it has dimension 1
				scopes = append(scopes, w.position[v])
			}
		}
		scope := scopes[begin:len(scopes):len(scopes)]
		slices.Sort(scope)
		if !w.addNode(node{id: int32(id), scope: scope, size: w.size(scope)}) {
			return w.pace.Err()
		}
	}

	// The product of a bucket goes into the bucket of a later position.
	for position := range w.firstSlot {
		tables := w.takeBucket(position)
		if len(tables) > 0 && !w.eliminateFrom(position, tables) {
			return w.pace.Err()
		}
	}
	return w.pace.Err()
}

// MarkOutputs returns for every table, by number, whether it is marked: tensors of the network as given in marked, and the output of a
// step if one of its inputs is marked. marked has one entry per tensor. The outputs of the steps are numbered after the tensors.
func MarkOutputs(marked []bool, steps []*Step) []bool {
	marked = slices.Clip(marked)
	for _, s := range steps {
		marked = append(marked, slices.ContainsFunc(s.In, func(t int) bool { return marked[t] }))
	}
	return marked
}

// node is a live table. Its indices are positions in the order. It is in the bucket of its smallest position.
type node struct {
	id    int32   // the number of the table
	next  int32   // slot of the next table in the bucket; none for the last
	scope []int32 // positions, ascending
	size  float64 // entries
}

// bySize compares two tables: by size, then by scope, then by number. Tables of one size are sorted by scope so that tables with similar
// scopes are multiplied with each other: then the product of them either varies along a run of fast axes or does not.
func bySize(x, y node) int {
	if c := cmp.Compare(x.size, y.size); c != 0 {
		return c
	}
	return cmp.Or(slices.Compare(x.scope, y.scope), cmp.Compare(x.id, y.id))
}

// walker is the state of one Walk.
type walker struct {
	isPlain   bool // for WalkPlainly: nothing is merged beforehand
	pace      *pace.Pace
	order     []int     // by position: the index
	position  []int32   // by index: its position; none for an index of dimension 1
	dim       []float64 // by position: the dimension of its index
	nextTable int       // number of the next step's output
	yield     func(*Step) bool

	nodes     []node  // by slot: a live table. Free slots are in freeSlots
	freeSlots []int32 // slots of nodes without a table
	firstSlot []int32 // by position: slot of the first table in its bucket; none for an empty bucket
	lastSlot  []int32 // by position: slot of the last table in its bucket, if it has one

	bucketTables []node  // buffer of takeBucket
	inputs       []node  // buffer of the inputs of a step
	scope        []int32 // buffer of the scope of a bucket
	unionBuffer  []int32 // buffer of a union

	scopes     arena.Slab[int32]
	reusedStep *Step // for walkReusing: the memory of every step; nil: each step has other memory
	reusedList []int // the memory of the lists of reusedStep
	steps      arena.Slab[Step]
	lists      arena.Slab[int]
}

// size returns the number of entries of a table whose indices are at the positions in scope.
func (w *walker) size(scope []int32) float64 {
	size := 1.0
	for _, p := range scope {
		size *= w.dim[p]
	}
	return finite(size)
}

// addNode puts a table into its bucket: that of the first position in its scope. A bucket is a linked list of slots. If the table is large
// and the bucket has a table of the same scope, the product of the two takes the place of that table in the bucket; a plain walk (isPlain)
// multiplies nothing beforehand. A table without indices is dropped, since the caller of Walk multiplies it. goesOn is false if the walk
// ends: the context has ended or yield returned false.
func (w *walker) addNode(n node) (goesOn bool) {
	if len(n.scope) == 0 {
		return true
	}
	if w.pace.Over(int64(len(n.scope))) {
		return false
	}

	// Multiply a large table with a table of the same scope. Otherwise tables over the same indices would pile up: twenty in a bipartite
	// graph of twenty and twenty vertices.
	position := n.scope[0]
	if n.size >= largeTable && !w.isPlain {
		for slot := w.firstSlot[position]; slot != none; slot = w.nodes[slot].next {
			if table := w.nodes[slot]; slices.Equal(table.scope, n.scope) {
				const sumsOut = 0 // no index is summed out
				product, ok := w.yieldStep(append(w.inputs[:0], table, n), n.scope, sumsOut)
				product.next = table.next
				w.nodes[slot] = product
				return ok
			}
		}
	}

	// Append it to the bucket.
	n.next = none
	slot := w.store(n)
	if w.firstSlot[position] == none {
		w.firstSlot[position] = slot
	} else {
		w.nodes[w.lastSlot[position]].next = slot
	}
	w.lastSlot[position] = slot
	return true
}

// store puts a table into a free slot of w.nodes, or into a new one if none is free, and returns the slot.
func (w *walker) store(n node) int32 {
	if top := len(w.freeSlots) - 1; top >= 0 {
		slot := w.freeSlots[top]
		w.freeSlots = w.freeSlots[:top]
		w.nodes[slot] = n
		return slot
	}
	w.nodes = append(w.nodes, n)
	return int32(len(w.nodes) - 1)
}

// takeBucket empties the bucket of a position, a linked list of slots, and returns its tables in the sequence in which they were added.
// They are valid until the next call.
func (w *walker) takeBucket(position int) []node {
	tables := w.bucketTables[:0]
	for slot := w.firstSlot[position]; slot != none; {
		n := w.nodes[slot]
		tables = append(tables, n)
		w.nodes[slot] = node{}
		w.freeSlots = append(w.freeSlots, slot)
		slot = n.next
	}
	w.firstSlot[position] = none
	w.bucketTables = tables
	return tables
}

// yieldStep calls yield for the step that multiplies the tables of inputs and sums the first sumCount indices of their union. scope is the
// union of their scopes, as ascending positions in the order. It returns the output of the step, which has the remaining positions as its
// scope. goesOn is false if yield returned false, so that the walk ends.
func (w *walker) yieldStep(inputs []node, scope []int32, sumCount int) (output node, goesOn bool) {
	output = node{id: int32(w.nextTable), scope: scope[sumCount:]}
	w.nextTable++
	output.size = w.size(output.scope)

	// One list has the numbers of the inputs, then the indices of the scope.
	step, list := w.stepMemory(len(inputs) + len(scope))
	tables, indices := list[:len(inputs):len(inputs)], list[len(inputs):]
	for k, t := range inputs {
		tables[k] = int(t.id)
	}
	for k, p := range scope {
		indices[k] = w.order[p]
	}
	*step = Step{
		In:       tables,
		Sum:      indices[:sumCount:sumCount],
		Out:      indices[sumCount:],
		FullSize: w.size(scope),
		Size:     output.size,
	}
	return output, w.yield(step)
}

// stepMemory returns memory for a step, and a list of the given length for its tables and indices. For a walk that reuses memory it is the
// memory of the step before.
func (w *walker) stepMemory(length int) (*Step, []int) {
	if w.reusedStep == nil {
		return &w.steps.Make(1)[0], w.lists.Make(length)
	}
	if length > len(w.reusedList) {
		w.reusedList = make([]int, 2*length)
	}
	return w.reusedStep, w.reusedList[:length]
}

// eliminateFrom yields the steps that sum out the index at a position of the order. tables are all tables that have it. The last step also
// sums out the indices at following positions if only these tables have them (countSummed). A plain walk multiplies all tables in one
// step, and sums out one index. Otherwise tables of the same scope, and pairs with a small product, are multiplied before the last step.
// Its output goes into the bucket of a later position. goesOn is false if the context has ended or yield returned false.
func (w *walker) eliminateFrom(position int, tables []node) (goesOn bool) {
	ok := true
	if !w.isPlain {
		if tables, ok = w.mergeEqual(tables); !ok {
			return false
		}
	}

	// scope is the union of the scopes of all tables. Its first position is the given one.
	w.scope = w.scope[:0]
	for _, t := range tables {
		if w.pace.Over(int64(len(w.scope) + len(t.scope))) {
			return false
		}
		w.unionBuffer = appendUnion(w.unionBuffer[:0], w.scope, t.scope)
		w.scope, w.unionBuffer = w.unionBuffer, w.scope
	}

	scope := w.scopes.Copy(w.scope) // the scope of the output is a part of it, and w.scope is overwritten

	sumCount := 1
	if !w.isPlain {
		if tables, ok = w.mergeSmall(tables, w.size(scope)); !ok {
			return false
		}
		sumCount = w.countSummed(position, scope)
	}
	output, ok := w.yieldStep(tables, scope, sumCount)
	return ok && w.addNode(output)
}

// countSummed returns the number of indices that one step over scope sums out. The first is the index at position, which is scope[0]. The
// indices directly after it in the order follow, as long as three things hold for each of them. Only the tables of this step have it: it
// is in scope and its bucket is empty. The output keeps at least minRunOutput entries. The product of the summed dimensions is at most
// maxRunSummed.
func (w *walker) countSummed(position int, scope []int32) int {
	count := 1
	outputSize := w.size(scope[1:])
	summedSize := w.dim[position] // product of the summed dimensions
	for count < len(scope) && int(scope[count]) == position+count && w.firstSlot[position+count] == none {
		dim := w.dim[position+count]
		if outputSize < minRunOutput*dim || summedSize*dim > maxRunSummed {
			break
		}
		outputSize, summedSize = outputSize/dim, summedSize*dim
		count++
	}
	return count
}

// mergeEqual multiplies the tables of each scope with each other, by steps of at most MaxOperands tables that sum no index. It returns the
// products, and the tables whose scope no other table has, all sorted by size. It reuses the memory of tables. goesOn is false if yield
// returned false.
func (w *walker) mergeEqual(tables []node) (merged []node, goesOn bool) {
	slices.SortStableFunc(tables, bySize) // tables of the same scope are neighbours then
	merged = tables[:0]
	for begin := 0; begin < len(tables); {
		end := begin + 1
		for end < len(tables) && slices.Equal(tables[begin].scope, tables[end].scope) {
			end++
		}

		product, factors := tables[begin], tables[begin+1:end]
		for len(factors) > 0 {
			count := min(len(factors), MaxOperands-1)
			inputs := append(append(w.inputs[:0], product), factors[:count]...)
			var ok bool
			const sumsOut = 0
			if product, ok = w.yieldStep(inputs, product.scope, sumsOut); !ok {
				return nil, false
			}
			factors = factors[count:]
		}
		merged = append(merged, product)
		begin = end
	}
	return merged, true
}

// mergeSmall multiplies pairs of tables of a bucket (the tables with the index that is summed next) and returns the remaining tables.
// tables and the result are sorted by size. fullSize is the number of entries of a table over the indices of all of them. For each table,
// the smallest first, it finds the partner with the smallest product. It multiplies the pair if the product is small against the full
// table, or if there are more tables than one step takes; then it begins again with the smallest table. goesOn is false if the context has
// ended or yield returned false.
func (w *walker) mergeSmall(tables []node, fullSize float64) (remaining []node, goesOn bool) {
	for i := 0; len(tables) > 2 && i < len(tables); {
		partner, productSize, ok := w.findPartner(tables, i)
		if !ok {
			return nil, false
		}
		hasTooMany := len(tables) > MaxOperands
		isWorthwhile := fullSize > smallTable && productSize <= mergeShare*fullSize
		if partner < 0 || !hasTooMany && !isWorthwhile {
			i++
			continue
		}

		inputs := append(w.inputs[:0], tables[i], tables[partner])
		const sumsOut = 0 // the bucket's index stays until its other tables are multiplied
		product, ok := w.yieldStep(inputs, w.union(tables[i].scope, tables[partner].scope), sumsOut)
		if !ok {
			return nil, false
		}

		// Replace the two tables by their product, and begin again.
		earlier, later := min(i, partner), max(i, partner)
		tables = slices.Delete(tables, later, later+1) // first, so that the earlier table keeps its position
		tables = slices.Delete(tables, earlier, earlier+1)
		position, _ := slices.BinarySearchFunc(tables, product, bySize)
		tables = slices.Insert(tables, position, product)
		i = 0
	}
	return tables, true
}

// findPartner returns the table whose product with table i has the fewest entries, and their number. partner is −1 if no product has a size
// below infinity. ok is false if the context has ended.
func (w *walker) findPartner(tables []node, i int) (partner int, productSize float64, ok bool) {
	partner, productSize = -1, math.Inf(1)
	scope := tables[i].scope
	for j, candidate := range tables {
		if j == i {
			continue
		}
		if w.pace.Over(int64(len(scope) + 1)) {
			return -1, 0, false
		}
		// unionSize stops at productSize, the smallest size so far.
		if size := w.unionSize(scope, candidate.scope, productSize); size < productSize {
			partner, productSize = j, size
		}
	}
	return partner, productSize, true
}

// unionSize returns the number of entries of a table over the union of the ascending scopes a and b, or limit if there are more. dim[p] is
// the dimension of the index at position p.
func (w *walker) unionSize(a, b []int32, limit float64) float64 {
	size := 1.0
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i] < b[j]: // the next position is in a only
			size *= w.dim[a[i]]
			i++
		case i == len(a) || b[j] < a[i]: // in b only
			size *= w.dim[b[j]]
			j++
		default: // in both
			size *= w.dim[a[i]]
			i, j = i+1, j+1
		}
		if size >= limit {
			return limit
		}
	}
	return size
}

// union returns the union of two ascending scopes, ascending, in memory that stays valid.
func (w *walker) union(a, b []int32) []int32 {
	w.unionBuffer = appendUnion(w.unionBuffer[:0], a, b)
	return w.scopes.Copy(w.unionBuffer)
}

// appendUnion appends the union of two ascending lists a and b to a list, ascending and each element once.
func appendUnion(list, a, b []int32) []int32 {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		list = append(list, min(x, y))
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
	}
	return append(append(list, a[i:]...), b[j:]...)
}

// finite returns x, or the largest float64 for +Inf, which JSON cannot hold.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
