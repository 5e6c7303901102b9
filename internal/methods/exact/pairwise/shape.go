package pairwise

// The shape of a contraction: scopes of all tables of a tree, without entries.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// shape is the tables of a contraction tree without entries. Tables 0 … leaves−1 are the leaves: tables of the expression, without their
// sliced indices and those that they sum out first. Table leaves+k is the result of merge k. Indices of dimension 1 and sliced ones are in
// no scope. A table is static if it is the same in all slices and is computed once.
type shape struct {
	graph         contractionorder.Hypergraph // of the expression
	dims          []int                       // by index: the number of its values within a slice; 0 for sliced indices
	sliced        []int                       // the indices that have one value in a slice
	slices        float64                     // number of slices: Π of the dimensions of the sliced indices
	leaves        int                         // number of leaves
	merges        [][2]int                    // by merge: the two tables that are merged
	scopes        [][]int                     // by table: its indices, sorted
	loneIndices   [][]int                     // by leaf: indices that no other leaf has, which are summed before its merge
	slicedOfLeaf  [][]int                     // by leaf: its sliced indices of dimension above 1
	summedIndices [][]int                     // by merge: indices that it sums out
	unionSize     []float64                   // by merge: number of entries of a table over all indices of the two tables
	sizes         []float64                   // by table: number of entries
	rawEntries    float64                     // number of entries of all tables of the expression
	isStatic      []bool                      // by table: it is computed once for all slices
	summingMerge  []int                       // by index: the merge that sums it out; −1 if a leaf does
	layouts       []layout                    // by buffer, see opcode
	specs         []*spec                     // by buffer: how the table is computed
}

// isScalar reports whether a table has one entry, over no indices.
func (s *shape) isScalar(table int) bool { return len(s.scopes[table]) == 0 }

// adjointBuffer returns the number of the buffer of a table's adjoint.
func (s *shape) adjointBuffer(table int) int { return len(s.scopes) + table }

// adjointSumBuffer returns the number of the buffer with the sum of a table's adjoint over slices.
func (s *shape) adjointSumBuffer(table int) int { return 2*len(s.scopes) + table }

// newShape computes the scopes of all tables of the tree t over a hypergraph, whose edges are the scopes of its leaves. sliced are the
// indices that have one value in each slice. Errors wrap contractionorder.ErrTree.
func newShape(
	h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int,
) (*shape, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if t.Leaves != len(h.Edges) {
		return nil, fmt.Errorf("%w: %d leaves, the network has %d tensors",
			contractionorder.ErrTree, t.Leaves, len(h.Edges))
	}
	s := &shape{
		graph:  h,
		dims:   slices.Clone(h.Dims),
		sliced: sliced,
		slices: 1,
		leaves: t.Leaves,
		merges: t.Merges,
	}

	if err := s.fixSliced(); err != nil {
		return nil, err
	}
	s.computeScopes()
	s.chooseStatic(math.MaxFloat64) // tables of any size are computed once for all slices, if they have no sliced indices
	return s, nil
}

// fixSliced sets the dimension of each sliced index to 0, which marks it as sliced, and multiplies the number of slices by its dimension.
// graph.Dims still has that dimension.
func (s *shape) fixSliced() error {
	for _, v := range s.sliced {
		if v < 0 || v >= len(s.dims) || s.dims[v] == 0 {
			return fmt.Errorf("%w: slice over index %d, which does not exist or is sliced "+
				"already", contractionorder.ErrTree, v)
		}
		s.slices = finite(s.slices * float64(s.dims[v]))
		s.dims[v] = 0
	}
	return nil
}

// computeScopes sets the scopes of all tables, their indices, from the leaves to the last one. It also sets what follows from them: sizes,
// and which merge sums out which index.
func (s *shape) computeScopes() {
	tables := s.leaves + len(s.merges)
	s.scopes = make([][]int, tables)
	s.sizes = make([]float64, tables)
	s.isStatic = make([]bool, tables)
	s.loneIndices = make([][]int, s.leaves)
	s.slicedOfLeaf = make([][]int, s.leaves)
	s.summedIndices = make([][]int, len(s.merges))
	s.unionSize = make([]float64, len(s.merges))
	s.summingMerge = make([]int, len(s.dims))

	tableCount := make([]int, len(s.dims)) // by index: the number of tables that have it and are not merged yet
	for _, scope := range s.graph.Edges {
		for _, v := range scope {
			tableCount[v]++
		}
	}
	for i, scope := range s.graph.Edges {
		s.addLeaf(i, scope, tableCount)
	}
	for k, m := range s.merges {
		s.addMerge(k, m, tableCount) // lowers tableCount
	}
}

// addLeaf computes the scope of leaf i, the indices of the leaf in a slice. tableScope are the indices of its table in the expression.
// Indices that are sliced, of dimension 1, or in no other table (lone) are not part of the scope. tableCount is, by index, the number of
// tables that have it. s.dims are the dimensions in a slice, 0 for sliced indices, and s.graph.Dims those in the expression.
func (s *shape) addLeaf(i int, tableScope, tableCount []int) {
	entries := 1.0 // of the table in the expression
	for _, v := range tableScope {
		entries = finite(entries * float64(s.graph.Dims[v]))
		isSliced := s.dims[v] == 0
		switch {
		case isSliced && s.graph.Dims[v] > 1:
			s.slicedOfLeaf[i] = append(s.slicedOfLeaf[i], v)
		case isSliced, s.dims[v] == 1:
		case tableCount[v] > 1:
			s.scopes[i] = append(s.scopes[i], v)
		default:
			s.loneIndices[i] = append(s.loneIndices[i], v)
			s.summingMerge[v] = -1 // the leaf sums it out, no merge does
		}
	}
	slices.Sort(s.scopes[i])
	s.rawEntries = finite(s.rawEntries + entries)
	s.sizes[i] = s.entriesOver(s.scopes[i])
}

// addMerge computes the scope of the result of merge k of two tables: the indices of both, without those that no further table has, which
// the merge sums out. tableCount is, by index, the number of tables that have it and are not merged yet. addMerge lowers it for indices
// of both tables.
func (s *shape) addMerge(k int, tables [2]int, tableCount []int) {
	a, b := s.scopes[tables[0]], s.scopes[tables[1]]
	scope := make([]int, 0, len(a)+len(b))
	union := 1.0
	for len(a) > 0 || len(b) > 0 {
		var v int
		var isInBoth bool
		v, isInBoth, a, b = takeSmallest(a, b)
		union *= float64(s.dims[v])
		if isInBoth {
			tableCount[v]-- // one result takes the place of two tables
		}
		if isNeeded := tableCount[v] > 1; isNeeded { // by a table other than the result
			scope = append(scope, v)
		} else {
			s.summedIndices[k] = append(s.summedIndices[k], v)
			s.summingMerge[v] = k
		}
	}

	s.unionSize[k] = finite(union)
	s.scopes[s.leaves+k] = scope
	s.sizes[s.leaves+k] = s.entriesOver(scope)
}

// takeSmallest takes the smallest number v from two sorted lists, at least one of which has a number, and returns what is left of the
// lists. isInBoth reports whether both lists had it.
func takeSmallest(a, b []int) (v int, isInBoth bool, restA, restB []int) {
	switch {
	case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
		return a[0], false, a[1:], b
	case len(a) == 0 || b[0] < a[0]:
		return b[0], false, a, b[1:]
	}
	return a[0], true, a[1:], b[1:]
}

// chooseStatic sets isStatic: it decides which tables are computed once for all slices. A leaf is, if it has no sliced indices, and if it
// has at most maxSize entries or shares the entries of the expression (not isCopied). The result of a merge is, if it has at most maxSize
// entries and both of its tables are static.
func (s *shape) chooseStatic(maxSize float64) {
	if len(s.sliced) == 0 || len(s.scopes) == 0 {
		return
	}
	for i := range s.leaves {
		s.isStatic[i] = len(s.slicedOfLeaf[i]) == 0 && (s.sizes[i] <= maxSize || !s.isCopied(i))
	}
	for k, m := range s.merges {
		s.isStatic[s.leaves+k] = s.isStatic[m[0]] && s.isStatic[m[1]] && s.sizes[s.leaves+k] <= maxSize
	}
	last := len(s.scopes) - 1
	s.isStatic[last] = false // every slice has a value
}

// programWithin returns the first program that fits the memory, in bytes, 8 for an entry. build makes a program for the current isStatic,
// by which some tables are static: computed once for all slices and kept for them. If the program does not fit, programWithin limits the
// size of static tables to a quarter of the largest table, then to a quarter of that, and so on, and builds again. If no program fits, it
// returns the last one, in which only leaves that share the entries of the expression are static.
func (s *shape) programWithin(memory float64, build func() *program) *program {
	p := build()
	if len(s.sliced) == 0 { // there is one slice, and isStatic has no effect
		return p
	}
	for maxSize := s.largestSize(); 8*p.peak > memory && maxSize >= 0.5; maxSize /= 4 { // all limits below 1 entry leave out the same tables
		s.chooseStatic(maxSize / 4)
		p = build()
	}
	return p
}

// largestSize returns the entries of the largest table, at least 1.
func (s *shape) largestSize() float64 {
	largest := 1.0
	for _, size := range s.sizes {
		largest = max(largest, size)
	}
	return largest
}

// isCopied reports whether a leaf needs entries of its own, since it is sliced or sums indices out. Otherwise it shares those of the
// expression.
func (s *shape) isCopied(leaf int) bool {
	return len(s.slicedOfLeaf[leaf]) > 0 || len(s.loneIndices[leaf]) > 0
}

// leafAdditions returns the number of additions by which a leaf sums out its lone indices, those that no other leaf has.
func (s *shape) leafAdditions(leaf int) float64 {
	n := s.sizes[leaf]
	for _, v := range s.loneIndices[leaf] {
		n = finite(n * float64(s.dims[v]))
	}
	return n - s.sizes[leaf]
}

// entriesOver returns the number of entries of a table over a scope.
func (s *shape) entriesOver(scope []int) float64 {
	p := 1.0
	for _, v := range scope {
		p *= float64(s.dims[v])
	}
	return finite(p)
}

// log2Largest returns log2 of the entries of the largest table, at least 0.
func (s *shape) log2Largest() float64 {
	largest := 0.0
	for t := range s.scopes {
		sum := 0.0
		for _, v := range s.scopes[t] {
			sum += math.Log2(float64(s.dims[v]))
		}
		largest = max(largest, sum)
	}
	return largest
}

// byLifetime compares two indices by the merge that sums them out, for sorting. The later is the greater. Ties are broken by number.
func (s *shape) byLifetime(i, j int) int {
	return cmp.Or(cmp.Compare(s.summingMerge[i], s.summingMerge[j]), cmp.Compare(i, j))
}

// finite replaces +Inf by the largest float64.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
