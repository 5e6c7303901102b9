package contractionorder

// The cost of a tree before anything is computed.

import (
	"fmt"
	"math"
	"slices"
)

// Cost is the price of a contraction along a tree. The scope S(v) of table v has the indices that both tensors inside and tensors outside
// its subtree have. |·| is the product of the dimensions. A slice takes
//
//	for a merge v = (a, b)    |S(a) ∪ S(b)| multiplications and |S(a) ∪ S(b)| − |S(v)| additions
//	for a leaf                additions, one for each entry that is summed away: indices that only it has are summed beforehand
//
// The memory is that of an executor that carries out the merges in their sequence and holds
//
//   - the tensors of the network, whole, throughout: the next slice needs them again;
//   - each result from the merge that makes it to the end of the merge that consumes it;
//   - during its merge, a copy of a leaf that is sliced or has indices to be summed beforehand.
//
// Workspace for permuted copies is not included. All figures are finite: MaxFloat64 stands for larger ones.
type Cost struct {
	Flops      float64 // multiplications and additions of all slices
	Slices     float64 // Π of the dimensions of the sliced indices; 1 without slices
	SliceFlops float64 // of one slice
	Writes     float64 // entries of all results of one slice
	Log2Table  float64 // log2 of the entries of the largest result
	PeakBytes  float64 // 8 × the largest number of entries held at once
	Width      int     // the largest number of indices in one S(a) ∪ S(b), less one; 0 without merges
}

// price returns the number that a search minimises: the flops of all slices, and writeCost flops for every entry that they write.
func (c Cost) price(writeCost float64) float64 {
	return finite(c.Flops + finite(float64(writeCost*c.Writes)*c.Slices))
}

// EvaluateTree returns the cost of contracting h along t with the given indices sliced, that is, fixed to one value in each slice. It
// returns an error that wraps ErrTree if t is no tree over the edges of h, or if a sliced index does not exist or is named twice. Time: Σ
// over the merges of the length of their scopes.
func EvaluateTree(h Hypergraph, t Tree, sliced []int) (Cost, error) {
	s, err := newScopes(h, t, sliced)
	if err != nil {
		return Cost{}, err
	}
	c := Cost{Slices: 1}
	for _, v := range sliced {
		c.Slices = finite(c.Slices * float64(h.Dims[v]))
	}

	// Indices that only one tensor has are summed beforehand.
	for i := range t.Leaves {
		c.SliceFlops = finite(c.SliceFlops + s.presumFlops[i])
	}
	for k := range t.Merges {
		result := t.Leaves + k
		c.Width = max(c.Width, s.unionCount[k]-1) // as of treewidth: one less than the indices of a merge
		c.Log2Table = max(c.Log2Table, s.log2Size(result))
		// A product for each entry of the union. Each entry of the result is a sum of products: one addition less than it has products.
		c.SliceFlops = finite(c.SliceFlops + finite(s.unionSize[k]+(s.unionSize[k]-s.size[result])))
		c.Writes = finite(c.Writes + s.size[result])
	}

	c.Flops = finite(c.SliceFlops * c.Slices)
	c.PeakBytes = s.peakBytes(t)
	return c, nil
}

// peakBytes returns the bytes that a contraction along t holds at its peak. It holds the tensors throughout, each result until the end of
// the merge that consumes it, and during a merge the copies that it needs of tensors. Merge k makes table Leaves+k. An entry has 8 bytes.
func (s *scopes) peakBytes(t Tree) float64 {
	liveEntries := 0.0
	for i := range t.Leaves {
		liveEntries = finite(liveEntries + s.tensorSize[i])
	}
	peak := finite(8 * liveEntries)
	for k, inputs := range t.Merges {
		liveEntries = finite(liveEntries + s.size[t.Leaves+k])
		peak = max(peak, finite(8*(liveEntries+s.copySize[inputs[0]]+s.copySize[inputs[1]])))
		for _, i := range inputs {
			isResult := i >= t.Leaves // tensors are not released
			if isResult {
				liveEntries -= s.size[i]
			}
		}
	}
	return peak
}

// Schedule returns t with its merges in the depth-first sequence with the smallest peak of entries held. Let i and j be the two inputs of
// a merge. If the subtree of i is carried out first, its result is held while the subtree of j is carried out, so the peak is
//
//	max(peak of i, result of i + peak of j)
//
// and with i and j exchanged if the subtree of j is carried out first. The subtree with the smaller of the two peaks goes first. If they
// are equal, the sequence is that of Canonical. Errors as for EvaluateTree. Source: J. W. H. Liu, An application of generalized tree
// pebbling to sparse matrix factorization (1987).
func Schedule(h Hypergraph, t Tree, sliced []int) (Tree, error) {
	if err := t.Validate(); err != nil {
		return Tree{}, err
	}
	t = t.Canonical()
	s, err := newScopes(h, t, sliced)
	if err != nil {
		return Tree{}, err
	}

	// Find for each merge which input's subtree goes first. Peaks and results count no entries of leaves, which are always held.
	peak := make([]float64, len(s.size))       // by table: the peak of entries held while its subtree is carried out
	resultSize := make([]float64, len(s.size)) // by table: its entries, 0 for a leaf
	isReversed := make([]bool, len(t.Merges))  // by merge: the second subtree goes first
	for k, m := range t.Merges {
		i, j, v := m[0], m[1], t.Leaves+k

		inOrder := max(peak[i], finite(resultSize[i]+peak[j]))
		reversed := max(peak[j], finite(resultSize[j]+peak[i]))
		isReversed[k] = reversed < inOrder
		// During the merge itself the inputs, the copies that it needs of leaves, and the result are held.
		merging := finite(resultSize[i] + resultSize[j] + s.copySize[i] + s.copySize[j] + s.size[v])
		peak[v] = max(min(inOrder, reversed), merging)
		resultSize[v] = s.size[v]
	}

	// Arrange the merges accordingly.
	consumer := make([]int, len(s.size)) // by table: the merge that consumes it
	for k, m := range t.Merges {
		consumer[m[0]], consumer[m[1]] = k, k
	}
	return t.depthFirst(func(i, j int) bool { // does i come before j, the other input of its merge?
		k := consumer[i]
		isFirstInput := t.Merges[k][0] == i
		return isFirstInput != isReversed[k]
	}), nil
}

// scopes has the scopes and sizes of all tables of a tree, in one slice. Tables are the leaves, then the results of the merges.
type scopes struct {
	dims        []int     // by index: its dimension, 0 for a sliced index
	scope       [][]int   // by table, sorted
	size        []float64 // by table: |S|
	tensorSize  []float64 // by leaf: entries of the whole tensor
	copySize    []float64 // by table: entries of the copy that its merge needs of a leaf; 0 if it needs none
	presumFlops []float64 // by leaf: additions that sum indices before its merge
	unionSize   []float64 // by merge: |S(a) ∪ S(b)|
	unionCount  []int     // by merge: indices in S(a) ∪ S(b)
}

// newScopes returns the scopes and sizes of all tables of t over h, in one slice. Tables 0 to Leaves−1 are the tensors, and table Leaves+k
// is the result of merge k. An index stays in a scope as long as another table has it. Errors are those of EvaluateTree.
func newScopes(h Hypergraph, t Tree, sliced []int) (*scopes, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if t.Leaves != len(h.Edges) {
		return nil, fmt.Errorf("%w: %d leaves, the network has %d tensors",
			ErrTree, t.Leaves, len(h.Edges))
	}
	if err := h.Validate(); err != nil {
		return nil, err
	}

	dims, err := dimsOfSlice(h, sliced)
	if err != nil {
		return nil, err
	}
	tables := t.Leaves + len(t.Merges)
	s := &scopes{
		dims:        dims,
		scope:       make([][]int, tables),
		size:        make([]float64, tables),
		copySize:    make([]float64, tables),
		tensorSize:  make([]float64, t.Leaves),
		presumFlops: make([]float64, t.Leaves),
		unionSize:   make([]float64, len(t.Merges)),
		unionCount:  make([]int, len(t.Merges)),
	}

	tableCount := make([]int, len(h.Dims)) // by index: the number of tables that have it, at this point of the merges
	for _, edge := range h.Edges {
		for _, v := range edge {
			tableCount[v]++
		}
	}
	for i, edge := range h.Edges {
		s.measureLeaf(h, i, edge, tableCount)
	}
	for k := range t.Merges {
		s.measureMerge(t, k, tableCount)
	}
	return s, nil
}

// dimsOfSlice returns the dimensions of h, but 0 for sliced indices, which marks them. It returns an error that wraps ErrTree if a sliced
// index does not exist or is named twice.
func dimsOfSlice(h Hypergraph, sliced []int) ([]int, error) {
	dims := slices.Clone(h.Dims)
	for _, v := range sliced {
		if v < 0 || v >= len(h.Dims) || dims[v] == 0 {
			return nil, fmt.Errorf("%w: slice over index %d, which does not exist or is sliced "+
				"already", ErrTree, v)
		}
		dims[v] = 0
	}
	return dims, nil
}

// measureLeaf sets the scope and the sizes of leaf i, a tensor with the indices edge: tensorSize is that of the whole tensor, size that of
// its table in one slice. An index that only this tensor has (tableCount is 1) is summed before the merge and is not in the scope;
// presumFlops is the number of additions for that. s.dims has the dimensions, but 0 for sliced indices, which have one value in each
// slice. The merge needs a copy of the tensor if an index is sliced or summed beforehand; copySize is the size of the copy.
func (s *scopes) measureLeaf(h Hypergraph, i int, edge, tableCount []int) {
	s.tensorSize[i] = 1
	sliceSize := 1.0 // entries of the tensor in one slice
	isSliced := false
	scope := make([]int, 0, len(edge))
	for _, v := range edge {
		s.tensorSize[i] = finite(s.tensorSize[i] * float64(h.Dims[v]))
		switch {
		case s.dims[v] == 0: // a sliced index
			isSliced = isSliced || h.Dims[v] > 1
		case s.dims[v] == 1: // in no scope
		case tableCount[v] > 1:
			scope = append(scope, v)
			fallthrough
		default: // also an index that is summed
			sliceSize = finite(sliceSize * float64(h.Dims[v]))
		}
	}

	slices.Sort(scope)
	s.scope[i] = scope
	s.size[i] = s.sizeOf(scope)
	s.presumFlops[i] = sliceSize - s.size[i]
	if isSliced || s.presumFlops[i] > 0 {
		s.copySize[i] = s.size[i]
	}
}

// measureMerge sets the sizes of merge k of t, and the scope and the size of its result. The merges before k must have been measured.
// tableCount has for each index the number of tables with it before the merge; afterwards the number after it.
func (s *scopes) measureMerge(t Tree, k int, tableCount []int) {
	inputs, result := t.Merges[k], t.Leaves+k
	union := uniteScopes(s.scope[inputs[0]], s.scope[inputs[1]], tableCount) // which also updates tableCount
	s.unionSize[k] = s.sizeOf(union)
	s.unionCount[k] = len(union)

	resultScope := union[:0] // in the memory of union, which is read ahead of it
	for _, v := range union {
		if tableCount[v] > 1 { // a table outside this merge has v
			resultScope = append(resultScope, v)
		}
	}
	s.scope[result] = resultScope
	s.size[result] = s.sizeOf(resultScope)
}

// sizeOf returns the number of entries of a table over scope, which has no sliced index.
func (s *scopes) sizeOf(scope []int) float64 {
	product := 1.0
	for _, v := range scope {
		product *= float64(s.dims[v])
	}
	return finite(product)
}

// log2Size returns log2 of the number of entries of a table, also if that number is beyond float64.
func (s *scopes) log2Size(table int) float64 {
	sum := 0.0
	for _, v := range s.scope[table] {
		sum += math.Log2(float64(s.dims[v]))
	}
	return sum
}

// uniteScopes returns the union of the scopes of two tables that are merged; all three lists are sorted. It changes tableCount, the number
// of tables with an index: for each index in both scopes it subtracts 1, since the two tables become one.
func uniteScopes(a, b []int, tableCount []int) []int {
	union := make([]int, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x < y:
			union, a = append(union, x), a[1:]
		case y < x:
			union, b = append(union, y), b[1:]
		default:
			tableCount[x]--
			union, a, b = append(union, x), a[1:], b[1:]
		}
	}
	return append(append(union, a...), b...)
}
