package contractionorder

// The network as the search sees it:
// indices renumbered so that a scope is a bit set whose size is a few population counts.

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// network is a hypergraph without sliced indices, indices of dimension 1 and indices that only one tensor has. Its indices are numbered by
// dimension, and each dimension begins a new word of a bit set, so that log2 of the size of a set is Σ_w popCount(set[w])·log2Dim[w].
type network struct {
	words   int             // words of a bit set
	log2Dim []logs          // by word: log2 of the dimension of its indices
	wordDim []int           // by word: that dimension
	indexOf []int           // by number: the index of the hypergraph; −1 for numbers that fill up a word
	edges   [][]int32       // by tensor: sorted numbers
	ctx     context.Context // of the search; results after its end are of no use. nil: the search never ends
}

// hasEnded reports whether the search has ended.
func (n *network) hasEnded() bool { return n.ctx != nil && n.ctx.Err() != nil }

// newNetwork returns the network of a hypergraph without the indices that isExcluded reports.
func newNetwork(dims []int, edges [][]int, isExcluded func(v int) bool) *network {
	count := make([]int, len(dims))
	for _, edge := range edges {
		for _, v := range edge {
			count[v]++
		}
	}

	var active []int // by dimension
	for v, d := range dims {
		if d > 1 && count[v] > 1 && !isExcluded(v) {
			active = append(active, v)
		}
	}
	slices.SortStableFunc(active, func(a, b int) int { return cmp.Compare(dims[a], dims[b]) })

	n := &network{}
	number := slices.Repeat([]int32{-1}, len(dims))

	for i, v := range active {
		if i > 0 && dims[active[i-1]] != dims[v] {
			for len(n.indexOf)%64 != 0 { // a new dimension begins a new word
				n.indexOf = append(n.indexOf, -1)
			}
		}
		if len(n.indexOf)%64 == 0 {
			n.log2Dim = append(n.log2Dim, log2(uint64(dims[v])))
			n.wordDim = append(n.wordDim, dims[v])
		}
		number[v] = int32(len(n.indexOf))
		n.indexOf = append(n.indexOf, v)
	}

	n.words = len(n.log2Dim)
	n.edges = make([][]int32, len(edges))
	for i, edge := range edges {
		for _, v := range edge {
			if number[v] >= 0 {
				n.edges[i] = append(n.edges[i], number[v])
			}
		}
		slices.Sort(n.edges[i])
	}
	return n
}

// newSlicedNetwork returns the network of h without the sliced indices.
func newSlicedNetwork(h Hypergraph, sliced []int) *network {
	return newNetwork(h.Dims, h.Edges, func(v int) bool { return slices.Contains(sliced, v) })
}

// log2DimOf returns log2 of the dimension of index number v.
func (n *network) log2DimOf(v int32) logs { return n.log2Dim[v>>6] }

// log2Size returns log2 of the size of a table whose scope is set.
func (n *network) log2Size(set []uint64) logs {
	var size logs
	for w, word := range set {
		size += logs(popCount(word)) * n.log2Dim[w]
	}
	return size
}

// appendMembers appends the numbers in a bit set to out, ascending.
func appendMembers(set []uint64, out []int32) []int32 {
	for i, x := range set {
		for ; x != 0; x &= x - 1 {
			out = append(out, int32(i<<6+lowestBit(x)))
		}
	}
	return out
}

// popCount returns the number of ones in a word.
func popCount(x uint64) int { return bits.OnesCount64(x) }

// lowestBit returns the number of the lowest one in a word, 0 to 63, or 64 if there is none.
func lowestBit(x uint64) int { return bits.TrailingZeros64(x) }
