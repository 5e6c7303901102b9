package contractionorder

// The cost of a tree before anything is computed.

import (
	"fmt"
	"math"
	"slices"
)

// Cost prices a contraction. With S(v) the scope of table v, the indices shared between
// its subtree and the rest, and |·| the product of the dimensions, per slice:
//
//	merge v = (a, b)    |S(a) ∪ S(b)| multiplications, |S(a) ∪ S(b)| − |S(v)| additions
//	leaf                additions, by which an index that only this tensor has is summed first:
//	                    the difference of the sizes
//
// Memory is the memory of an executor that works off the merges in their sequence and holds
//
//   - the tensors of the network, whole, throughout: the next slice needs them again;
//   - each result from the merge that makes it to the end of the merge that consumes it;
//   - during its merge, a copy of a leaf that is sliced or has indices to be summed beforehand.
//
// Workspace for permuted copies is not included.
// Figures are float64, at most MaxFloat64, and finite.
type Cost struct {
	Flops      float64 // multiplications and additions of all slices
	Slices     float64 // Π of the dimensions of the sliced indices, 1 without
	SliceFlops float64 // of one slice
	Writes     float64 // entries of all results of one slice
	Log2Table  float64 // log2 of the entries of the largest result
	PeakBytes  float64 // 8 × the largest number of entries held at once
	Width      int     // most indices in one S(a) ∪ S(b), less one; 0 without merges
}

// price is the search's criterion: flops, and so many of them for every entry written.
func (c Cost) price(write float64) float64 {
	return finite(c.Flops + finite(float64(write*c.Writes)*c.Slices))
}

// EvaluateTree returns the cost of contracting h along t with the given indices sliced (fixed to a
// value per slice). Errors wrap ErrTree: t is no tree over the edges of h, or a slice is no index
// of h or is named twice.
// Time: Σ over the merges of the length of their scopes.
func EvaluateTree(h Hypergraph, t Tree, sliced []int) (Cost, error) {
	s, err := newScopes(h, t, sliced)
	if err != nil {
		return Cost{}, err
	}
	c := Cost{Slices: 1}
	for _, v := range sliced {
		c.Slices = finite(c.Slices * float64(h.Dims[v]))
	}

	live := 0.0
	for i := range t.Leaves {
		live = finite(live + s.raw[i])
		c.SliceFlops = finite(c.SliceFlops + s.presum[i])
	}
	c.PeakBytes = finite(8 * live)

	for k, m := range t.Merges {
		v := t.Leaves + k
		c.Width = max(c.Width, s.union[k]-1)
		c.Log2Table = max(c.Log2Table, s.log2Size(v))
		c.SliceFlops = finite(c.SliceFlops + finite(s.full[k]+(s.full[k]-s.size[v])))
		c.Writes = finite(c.Writes + s.size[v])

		live = finite(live + s.size[v])
		c.PeakBytes = max(c.PeakBytes, finite(8*(live+s.copied[m[0]]+s.copied[m[1]])))
		for _, i := range m {
			if i >= t.Leaves {
				live -= s.size[i]
			}
		}
	}

	c.Flops = finite(c.SliceFlops * c.Slices)
	return c, nil
}

// Schedule returns t with its merges in the depth-first sequence that holds least at its peak: of
// two subtrees the one comes first for which max(peak of the first, its result + peak of the
// second) is smaller (J. W. H. Liu, An application of generalized tree pebbling to sparse matrix
// factorization, 1987). Equals keep the canonical sequence. Errors as for EvaluateTree.
func Schedule(h Hypergraph, t Tree, sliced []int) (Tree, error) {
	if err := t.Validate(); err != nil {
		return Tree{}, err
	}
	t = t.Canonical()
	s, err := newScopes(h, t, sliced)
	if err != nil {
		return Tree{}, err
	}
	peak := make([]float64, len(s.size))
	held := make([]float64, len(s.size))
	later := make([]bool, len(t.Merges)) // the second subtree goes first

	for k, m := range t.Merges {
		i, j, v := m[0], m[1], t.Leaves+k

		ij := max(peak[i], finite(held[i]+peak[j]))
		ji := max(peak[j], finite(held[j]+peak[i]))
		later[k] = ji < ij
		merging := finite(held[i] + held[j] + s.copied[i] + s.copied[j] + s.size[v])
		peak[v] = max(min(ij, ji), merging)
		held[v] = s.size[v]
	}

	parent := make([]int, len(s.size))
	for k, m := range t.Merges {
		parent[m[0]], parent[m[1]] = k, k
	}
	return t.arrange(func(i, j int) bool {
		k := parent[i]
		return (t.Merges[k][0] == i) != later[k]
	}), nil
}

// scopes are the scopes and sizes of all tables of a tree.
type scopes struct {
	dims   []int
	scope  [][]int   // by table, sorted
	size   []float64 // |S| by table
	raw    []float64 // by leaf: entries of the whole tensor
	copied []float64 // by table: entries of the leaf's copy, 0 where none is made
	presum []float64 // by leaf: additions before its merge
	full   []float64 // by merge: |S(a) ∪ S(b)|
	union  []int     // by merge: indices in S(a) ∪ S(b)
}

// newScopes sizes all tables of t, in the sequence of its merges.
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

	s := &scopes{dims: slices.Clone(h.Dims)}
	for _, v := range sliced {
		if v < 0 || v >= len(h.Dims) || s.dims[v] == 0 {
			return nil, fmt.Errorf("%w: slice over index %d, which does not exist or is sliced "+
				"already", ErrTree, v)
		}
		s.dims[v] = 0
	}

	tables := t.Leaves + len(t.Merges)
	s.scope = make([][]int, tables)
	s.size = make([]float64, tables)
	s.copied = make([]float64, tables)
	s.raw = make([]float64, t.Leaves)
	s.presum = make([]float64, t.Leaves)
	s.full = make([]float64, len(t.Merges))
	s.union = make([]int, len(t.Merges))

	count := make([]int, len(h.Dims)) // tables that have the index now
	for _, e := range h.Edges {
		for _, v := range e {
			count[v]++
		}
	}

	for i, e := range h.Edges {
		s.leaf(h, i, e, count)
	}

	for k, m := range t.Merges {
		both := mergeSorted(s.scope[m[0]], s.scope[m[1]], count)
		s.full[k] = s.product(both)
		s.union[k] = len(both)

		out := both[:0]
		for _, v := range both {
			if count[v] > 1 {
				out = append(out, v)
			}
		}
		s.scope[t.Leaves+k] = out
		s.size[t.Leaves+k] = s.product(out)
	}
	return s, nil
}

// leaf sizes tensor i with edge e. It is copied where a
// slice fixes an index or an index is summed beforehand.
func (s *scopes) leaf(h Hypergraph, i int, e, count []int) {
	s.raw[i] = 1
	read := 1.0
	used := false
	scope := make([]int, 0, len(e))
	for _, v := range e {
		s.raw[i] = finite(s.raw[i] * float64(h.Dims[v]))
		switch {
		case s.dims[v] == 0:
			used = used || h.Dims[v] > 1
		case s.dims[v] == 1:
		case count[v] > 1:
			scope = append(scope, v)
			fallthrough
		default:
			read = finite(read * float64(h.Dims[v]))
		}
	}

	slices.Sort(scope)
	s.scope[i] = scope
	s.size[i] = s.product(scope)
	s.presum[i] = read - s.size[i]
	if used || s.presum[i] > 0 {
		s.copied[i] = s.size[i]
	}
}

func (s *scopes) product(scope []int) float64 {
	p := 1.0
	for _, v := range scope {
		p *= float64(s.dims[v])
	}
	return finite(p)
}

func (s *scopes) log2Size(v int) float64 {
	sum := 0.0
	for _, i := range s.scope[v] {
		sum += math.Log2(float64(s.dims[i]))
	}
	return sum
}

// mergeSorted returns the union of two sorted lists, and lowers the count of common elements.
func mergeSorted(a, b []int, count []int) []int {
	out := make([]int, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch x, y := a[0], b[0]; {
		case x < y:
			out, a = append(out, x), a[1:]
		case y < x:
			out, b = append(out, y), b[1:]
		default:
			count[x]--
			out, a, b = append(out, x), a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}
