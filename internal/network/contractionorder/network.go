package contractionorder

// The network as the search sees it:
// indices renumbered so that a scope is a bit set, and the size of its table follows from a few population counts.

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// network is a hypergraph without sliced indices, indices of dimension 1 and indices that only one tensor has. A set of indices is a bit
// set of 64-bit words: index number v is bit v%64 of word v/64. Indices are numbered by dimension, and each dimension begins a new word, so
// that all indices of a word have the same dimension. Then log2 of the product of the dimensions of a set's indices, the size of a table
// over them, is Σ_w popCount(set[w])·log2Dim[w].
type network struct {
	words   int             // words of a bit set
	log2Dim []log2Fixed     // by word: log2 of the dimension of its indices
	wordDim []int           // by word: the dimension of its indices
	indexOf []int           // by number: the index of the hypergraph; −1 for unused numbers at the end of a word
	edges   [][]int32       // by tensor: the numbers of its indices, sorted
	ctx     context.Context // of the search; results after its end are of no use. nil: the search never ends
}

// hasEnded reports whether the search has ended, so that results are of no use any more.
func (n *network) hasEnded() bool { return n.ctx != nil && n.ctx.Err() != nil }

// newNetwork returns the network of a hypergraph, whose index v has dimension dims[v] and whose tensor t has the indices edges[t]. It
// leaves out indices of dimension 1, indices of a single tensor, and those for which isExcluded is true. The remaining indices get
// numbers, by which the network names them.
func newNetwork(dims []int, edges [][]int, isExcluded func(v int) bool) *network {
	tensorCount := make([]int, len(dims)) // by index: the number of tensors that have it
	for _, edge := range edges {
		for _, v := range edge {
			tensorCount[v]++
		}
	}

	var included []int // indices of the network, ascending by dimension
	for v, d := range dims {
		if d > 1 && tensorCount[v] > 1 && !isExcluded(v) {
			included = append(included, v)
		}
	}
	// By dimension, since numberIndices starts a new word of the bit sets with each dimension.
	slices.SortStableFunc(included, func(a, b int) int { return cmp.Compare(dims[a], dims[b]) })

	n := &network{}
	number := n.numberIndices(dims, included)
	n.words = len(n.log2Dim)              // numberIndices has made log2Dim, with one element per word
	n.edges = make([][]int32, len(edges)) // by tensor: the numbers of its indices
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

// numberIndices gives numbers to the included indices, which are sorted by dimension, and returns for each index its number, or −1. Sets of
// indices are bit sets: number i is bit i%64 of word i/64. Each dimension begins a new word, so that all indices of a word have the same
// dimension. Then log2 of the product of the dimensions of a set's indices, the size of a table over them, takes one multiplication for
// each word. indexOf becomes −1 for the unused numbers at the end of a word.
func (n *network) numberIndices(dims, included []int) (number []int32) {
	number = slices.Repeat([]int32{-1}, len(dims))
	for i, v := range included {
		if i > 0 && dims[included[i-1]] != dims[v] {
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
	return number
}

// newSlicedNetwork returns the network of h without the sliced indices.
func newSlicedNetwork(h Hypergraph, sliced []int) *network {
	return newNetwork(h.Dims, h.Edges, func(v int) bool { return slices.Contains(sliced, v) })
}

// log2DimOf returns log2 of the dimension of index number v. The 64 indices of word v/64 all have this dimension.
func (n *network) log2DimOf(v int32) log2Fixed { return n.log2Dim[v>>6] }

// log2Size returns log2 of the number of entries of a table. set has a bit for each index of the table: bit b of word w stands for index
// 64·w + b. All indices of word w have the same dimension, and log2Dim[w] is its log2.
func (n *network) log2Size(set []uint64) log2Fixed {
	var size log2Fixed
	for w, word := range set {
		size += log2Fixed(popCount(word)) * n.log2Dim[w]
	}
	return size
}

// appendMembers appends the members of a bit set to a list, ascending. Bit b of word w stands for the member 64·w + b.
func appendMembers(set []uint64, list []int32) []int32 {
	for w, word := range set {
		for ; word != 0; word &= word - 1 { // word & (word−1) clears the lowest bit that is set
			list = append(list, int32(64*w+lowestBit(word)))
		}
	}
	return list
}

// popCount returns the number of bits of x that are set.
func popCount(x uint64) int { return bits.OnesCount64(x) }

// lowestBit returns the position of the lowest bit of x that is set, 0 to 63, or 64 if x is 0.
func lowestBit(x uint64) int { return bits.TrailingZeros64(x) }
