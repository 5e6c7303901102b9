package pairwise

// The shape of a contraction: scopes of all tables of a tree, without entries.

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// shape knows the tables of a tree. Tables 0 … leaves−1 are the expression's, less their summed
// and sliced indices; table leaves+k is the result of merge k; indices of dimension 1 and sliced
// ones are in no scope.
type shape struct {
	h       contractionorder.Hypergraph
	dims    []int   // 0 for sliced indices
	sliced  []int   // indices
	slices  float64 // Π of their dimensions
	leaves  int
	merges  [][2]int
	scope   [][]int   // by table, sorted
	alone   [][]int   // by leaf: indices only it has
	cut     [][]int   // by leaf: sliced indices of dimension above 1 it has
	sums    [][]int   // by merge: indices summed
	full    []float64 // by merge: entries of the table over all indices of its two
	size    []float64 // by table: entries
	raw     float64   // entries of the expression
	static  []bool    // by table: the same in all slices
	sumAt   []int     // by index: the merge that sums it
	layouts []layout  // by buffer
	specs   []*spec   // by buffer
}

// newShape computes the scopes of all tables of a tree.
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
		h:      h,
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
	s.scope = make([][]int, tables)
	s.size = make([]float64, tables)
	s.static = make([]bool, tables)
	s.alone = make([][]int, t.Leaves)
	s.cut = make([][]int, t.Leaves)
	s.sums = make([][]int, len(t.Merges))
	s.full = make([]float64, len(t.Merges))
	s.sumAt = make([]int, len(h.Dims))

	count := make([]int, len(h.Dims))
	for _, e := range h.Edges {
		for _, v := range e {
			count[v]++
		}
	}

	for i, e := range h.Edges {
		s.leaf(i, e, count)
	}
	for k, m := range t.Merges {
		s.merge(k, m, count)
	}
	s.share(math.MaxFloat64)
	return s, nil
}

// leaf sorts the indices of a table of the expression; count has the number of tables of each.
func (s *shape) leaf(i int, e, count []int) {
	raw := 1.0
	for _, v := range e {
		raw = finite(raw * float64(s.h.Dims[v]))
		switch {
		case s.dims[v] == 0 && s.h.Dims[v] > 1:
			s.cut[i] = append(s.cut[i], v)
		case s.dims[v] <= 1:
		case count[v] > 1:
			s.scope[i] = append(s.scope[i], v)
		default:
			s.alone[i] = append(s.alone[i], v)
			s.sumAt[v] = -1
		}
	}
	slices.Sort(s.scope[i])
	s.raw = finite(s.raw + raw)
	s.size[i] = s.product(s.scope[i])
}

// merge sorts the indices of the result of merge k, and lowers the count of common indices.
func (s *shape) merge(k int, m [2]int, count []int) {
	a, b := s.scope[m[0]], s.scope[m[1]]
	out := make([]int, 0, len(a)+len(b))
	full := 1.0
	for len(a) > 0 || len(b) > 0 {
		var v int
		both := false
		switch {
		case len(b) == 0 || len(a) > 0 && a[0] < b[0]:
			v, a = a[0], a[1:]
		case len(a) == 0 || b[0] < a[0]:
			v, b = b[0], b[1:]
		default:
			v = a[0]
			a, b = a[1:], b[1:]
			both = true
		}

		full *= float64(s.dims[v])
		if both {
			count[v]--
		}
		if count[v] > 1 {
			out = append(out, v)
		} else {
			s.sums[k] = append(s.sums[k], v)
			s.sumAt[v] = k
		}
	}

	s.full[k] = finite(full)
	s.scope[s.leaves+k] = out
	s.size[s.leaves+k] = s.product(out)
}

// share decides which tables are computed once for all slices:
// those that are the same in all of them and have at most most entries, and are made of such.
func (s *shape) share(most float64) {
	if len(s.sliced) == 0 || len(s.scope) == 0 {
		return
	}
	for i := range s.leaves {
		s.static[i] = len(s.cut[i]) == 0 && (s.size[i] <= most || !s.copies(i))
	}
	for k, m := range s.merges {
		s.static[s.leaves+k] = s.static[m[0]] && s.static[m[1]] && s.size[s.leaves+k] <= most
	}
	s.static[len(s.scope)-1] = false // every slice has a value of its own
}

// within returns the first program that fits into memory, sharing less and less over slices;
// the last one if none does.
func (s *shape) within(memory float64, build func() *program) *program {
	p := build()
	if len(s.sliced) == 0 {
		return p
	}
	for most := s.top(); 8*p.peak > memory && most >= 0.5; most /= 4 {
		s.share(most / 4)
		p = build()
	}
	return p
}

// top is the size of the largest table.
func (s *shape) top() float64 {
	top := 1.0
	for _, size := range s.size {
		top = max(top, size)
	}
	return top
}

// copies says that a leaf is not used as it is in the expression.
func (s *shape) copies(leaf int) bool { return len(s.cut[leaf]) > 0 || len(s.alone[leaf]) > 0 }

// presum is the number of additions that reduce a leaf to its scope.
func (s *shape) presum(leaf int) float64 {
	n := s.size[leaf]
	for _, v := range s.alone[leaf] {
		n = finite(n * float64(s.dims[v]))
	}
	return n - s.size[leaf]
}

// product is the number of entries over a scope.
func (s *shape) product(scope []int) float64 {
	p := 1.0
	for _, v := range scope {
		p *= float64(s.dims[v])
	}
	return finite(p)
}

// largest is log2 of the entries of the largest table.
func (s *shape) largest() float64 {
	top := 0.0
	for t := range s.scope {
		sum := 0.0
		for _, v := range s.scope[t] {
			sum += math.Log2(float64(s.dims[v]))
		}
		top = max(top, sum)
	}
	return top
}

// longLived compares indices by how long they stay: those summed later are last. Ties by number.
func (s *shape) longLived(i, j int) int {
	return cmp.Or(cmp.Compare(s.sumAt[i], s.sumAt[j]), cmp.Compare(i, j))
}

// finite replaces an overflow by the largest float64.
func finite(x float64) float64 { return min(x, math.MaxFloat64) }
