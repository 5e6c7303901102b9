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
// no scope.
type shape struct {
	graph         contractionorder.Hypergraph
	dims          []int   // by index; 0 for sliced indices
	sliced        []int   // indices
	slices        float64 // number of slices: Π of the dimensions of the sliced indices
	leaves        int
	merges        [][2]int
	scopes        [][]int   // by table, sorted
	loneIndices   [][]int   // by leaf: indices that no other leaf has, which are summed before its merge
	slicedOfLeaf  [][]int   // by leaf: its sliced indices of dimension above 1
	summedIndices [][]int   // by merge: indices summed
	unionSize     []float64 // by merge: entries of a table over all indices of the two that are merged
	sizes         []float64 // by table: entries
	rawEntries    float64   // entries of all tables of the expression
	isStatic      []bool    // by table: it is computed once for all slices, since it is the same in all of them
	summingMerge  []int     // by index: the merge that sums it; −1 if a leaf does
	layouts       []layout  // by buffer, see opcode
	specs         []*spec   // by buffer: how the table is computed
}

// newShape computes the scopes of all tables of a tree. Errors wrap contractionorder.ErrTree.
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

	for _, v := range sliced {
		if v < 0 || v >= len(h.Dims) || s.dims[v] == 0 {
			return nil, fmt.Errorf("%w: slice over index %d, which does not exist or is sliced "+
				"already", contractionorder.ErrTree, v)
		}
		s.slices = finite(s.slices * float64(s.dims[v]))
		s.dims[v] = 0
	}

	tables := t.Leaves + len(t.Merges)
	s.scopes = make([][]int, tables)
	s.sizes = make([]float64, tables)
	s.isStatic = make([]bool, tables)
	s.loneIndices = make([][]int, t.Leaves)
	s.slicedOfLeaf = make([][]int, t.Leaves)
	s.summedIndices = make([][]int, len(t.Merges))
	s.unionSize = make([]float64, len(t.Merges))
	s.summingMerge = make([]int, len(h.Dims))

	count := make([]int, len(h.Dims)) // by index: the tables that have it and are not merged yet
	for _, e := range h.Edges {
		for _, v := range e {
			count[v]++
		}
	}

	for i, e := range h.Edges {
		s.addLeaf(i, e, count)
	}
	for k, m := range t.Merges {
		s.addMerge(k, m, count)
	}
	s.chooseStatic(math.MaxFloat64)
	return s, nil
}

// addLeaf computes the scope of leaf i, whose table has the scope e, and sorts its other indices into slicedIn and lone. count is the
// number of tables that have each index.
func (s *shape) addLeaf(i int, e, count []int) {
	raw := 1.0
	for _, v := range e {
		raw = finite(raw * float64(s.graph.Dims[v]))
		switch {
		case s.dims[v] == 0 && s.graph.Dims[v] > 1:
			s.slicedOfLeaf[i] = append(s.slicedOfLeaf[i], v)
		case s.dims[v] <= 1: // of dimension 1, or sliced and of dimension 1
		case count[v] > 1:
			s.scopes[i] = append(s.scopes[i], v)
		default:
			s.loneIndices[i] = append(s.loneIndices[i], v)
			s.summingMerge[v] = -1
		}
	}
	slices.Sort(s.scopes[i])
	s.rawEntries = finite(s.rawEntries + raw)
	s.sizes[i] = s.entriesOver(s.scopes[i])
}

// addMerge computes the scope of the result of merge k, of the tables m. An index is summed if no other table has it. count is, by index,
// the number of tables that have it and are not merged yet; addMerge lowers it for indices of both tables.
func (s *shape) addMerge(k int, m [2]int, count []int) {
	a, b := s.scopes[m[0]], s.scopes[m[1]]
	out := make([]int, 0, len(a)+len(b))
	union := 1.0
	for len(a) > 0 || len(b) > 0 { // merges two sorted lists
		var v int
		isInBoth := false
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			v, a = a[0], a[1:]
		case len(a) == 0 || b[0] < a[0]:
			v, b = b[0], b[1:]
		default:
			v = a[0]
			a, b = a[1:], b[1:]
			isInBoth = true
		}

		union *= float64(s.dims[v])
		if isInBoth {
			count[v]--
		}
		if count[v] > 1 {
			out = append(out, v)
		} else {
			s.summedIndices[k] = append(s.summedIndices[k], v)
			s.summingMerge[v] = k
		}
	}

	s.unionSize[k] = finite(union)
	s.scopes[s.leaves+k] = out
	s.sizes[s.leaves+k] = s.entriesOver(out)
}

// chooseStatic decides which tables are computed once for all slices. These are tables without sliced indices that have at most maxSize
// entries and are made of such tables only. A leaf that is used as it is in the expression may be larger.
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
	s.isStatic[len(s.scopes)-1] = false // every slice has its value
}

// programWithin builds programs with fewer and fewer static tables, until one fits into memory bytes, and returns that one. If none fits,
// it returns the last, in which only leaves that are used as they are are static.
func (s *shape) programWithin(memory float64, build func() *program) *program {
	p := build()
	if len(s.sliced) == 0 {
		return p
	}
	for maxSize := s.largestSize(); 8*p.peak > memory && maxSize >= 0.5; maxSize /= 4 {
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

// isCopied reports whether a leaf needs entries in addition to those of the expression, since it is sliced or has lone indices.
func (s *shape) isCopied(leaf int) bool {
	return len(s.slicedOfLeaf[leaf]) > 0 || len(s.loneIndices[leaf]) > 0
}

// presumFlops returns the number of additions that sum the lone indices of a leaf out.
func (s *shape) presumFlops(leaf int) float64 {
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

// byLifetime compares indices by how long they stay: an index that is summed later is greater. Ties are broken by number.
func (s *shape) byLifetime(i, j int) int {
	return cmp.Or(cmp.Compare(s.summingMerge[i], s.summingMerge[j]), cmp.Compare(i, j))
}

// finite replaces +Inf by the largest float64.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
