package contractionorder

// The network as the search sees it:
// indices renumbered so that a scope is a bit set whose size is a few population counts.

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// network is a hypergraph without slices, indices of dimension 1 and indices that only one tensor
// has. Indices are numbered by dimension, each dimension beginning a new word of the bit set, so
// that log2 of a set's size is Σ_w popcount(w)·log[w].
type network struct {
	words int       // of a set
	log   []logs    // by word: log2 of the dimension of its indices
	dim   []int     // by word: that dimension
	of    []int     // by number: the index of the hypergraph, −1 for none
	edges [][]int32 // by tensor: sorted numbers
	// of the search: results after its end are of no use; nil: none
	ctx context.Context
}

// over reports whether the search has ended.
func (n *network) over() bool { return n.ctx != nil && n.ctx.Err() != nil }

// newNetwork takes the edges of a hypergraph with the given indices left out.
func newNetwork(dims []int, edges [][]int, without func(v int) bool) *network {
	count := make([]int, len(dims))
	for _, e := range edges {
		for _, v := range e {
			count[v]++
		}
	}

	var active []int
	for v, d := range dims {
		if d > 1 && count[v] > 1 && !without(v) {
			active = append(active, v)
		}
	}
	slices.SortStableFunc(active, func(a, b int) int { return cmp.Compare(dims[a], dims[b]) })

	n := &network{}
	number := slices.Repeat([]int32{-1}, len(dims))

	// A new dimension begins a new word.
	for i, v := range active {
		if i > 0 && dims[active[i-1]] != dims[v] {
			for len(n.of)%64 != 0 {
				n.of = append(n.of, -1)
			}
		}
		if len(n.of)%64 == 0 {
			n.log = append(n.log, log2(uint64(dims[v])))
			n.dim = append(n.dim, dims[v])
		}
		number[v] = int32(len(n.of))
		n.of = append(n.of, v)
	}

	n.words = len(n.log)
	n.edges = make([][]int32, len(edges))
	for i, e := range edges {
		for _, v := range e {
			if number[v] >= 0 {
				n.edges[i] = append(n.edges[i], number[v])
			}
		}
		slices.Sort(n.edges[i])
	}
	return n
}

// fromHypergraph is newNetwork with slices.
func fromHypergraph(h Hypergraph, sliced []int) *network {
	return newNetwork(h.Dims, h.Edges, func(v int) bool { return slices.Contains(sliced, v) })
}

// weight returns log2 of the dimension of an index.
func (n *network) weight(v int32) logs { return n.log[v>>6] }

// weigh returns log2 of the size of a set.
func (n *network) weigh(set []uint64) logs {
	var w logs
	for i, x := range set {
		w += logs(ones(x)) * n.log[i]
	}
	return w
}

// members appends the numbers in a set to out.
func members(set []uint64, out []int32) []int32 {
	for i, x := range set {
		for ; x != 0; x &= x - 1 {
			out = append(out, int32(i<<6+trailing(x)))
		}
	}
	return out
}

func ones(x uint64) int     { return bits.OnesCount64(x) }
func trailing(x uint64) int { return bits.TrailingZeros64(x) }
