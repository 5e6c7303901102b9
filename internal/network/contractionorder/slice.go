package contractionorder

// Slicing: indices fixed to one value at a time until the tables are small enough.

import (
	"slices"
)

// slicedTree is a tree over a network with some indices sliced: each combination of their values is contracted for itself, along the same
// tree.
type slicedTree struct {
	whole  *network
	tree   *workingTree // over whole without the sliced indices; it counts the moves
	sliced []int32      // numbers of the sliced indices in whole
}

// withoutIndices returns n with the sliced indices removed from its edges. Indices keep their numbers.
func (n *network) withoutIndices(sliced []int32) *network {
	isRemoved := make([]bool, len(n.indexOf))
	for _, v := range sliced {
		isRemoved[v] = true
	}

	reduced := *n
	reduced.edges = make([][]int32, len(n.edges))
	for t, e := range n.edges {
		reduced.edges[t] = slices.DeleteFunc(slices.Clone(e), func(v int32) bool { return isRemoved[v] })
	}
	return &reduced
}

// withSlices returns the same tree with other indices sliced. It has the moves of s, and those of its making.
func (s *slicedTree) withSlices(sliced []int32) *slicedTree {
	other := &slicedTree{whole: s.whole, sliced: sliced}
	other.tree = newWorkingTree(s.whole.withoutIndices(sliced), s.tree.merges())
	other.tree.moves += s.tree.moves
	return other
}

// copyWithoutMoves returns a copy of s that has no moves yet.
func (s *slicedTree) copyWithoutMoves() *slicedTree {
	return &slicedTree{whole: s.whole, tree: s.tree.clone(), sliced: slices.Clone(s.sliced)}
}

// maxLog2Slices is log2 of a number of slices that nobody will contract.
const maxLog2Slices = 64 * oneBit

// log2Slices returns log2 of the number of slices.
func (s *slicedTree) log2Slices() logs {
	var sum logs
	for _, v := range s.sliced {
		sum += s.whole.log2DimOf(v)
	}
	return sum
}

// log2Price returns log2 of the price of all slices together.
func (s *slicedTree) log2Price(o *objective) logs { return s.tree.log2TotalPrice(o) + s.log2Slices() }

// sliceToLimit slices one index after the other, always bestSlice, until no table is over the limit of o. After each it reconfigures the
// tree, in pieces of pieceTables tables, until the tree's moves reach limit. It returns false if tables are still over the limit, because
// no index is left, there are more than 2^64 slices, or the search has ended.
func (s *slicedTree) sliceToLimit(o *objective, pieceTables int, limit int64) bool {
	for s.tree.log2Largest() > o.limit {
		index := s.bestSlice(o)
		if index == none || s.log2Slices() > maxLog2Slices || s.whole.hasEnded() {
			return false
		}
		*s = *s.withSlices(append(slices.Clone(s.sliced), index))
		newReconfigurer(s.tree, *o, pieceTables).run(min(limit, s.tree.moves+int64(len(s.tree.left))<<14))
	}
	return true
}

// bestSlice returns the index to be sliced next: of the indices of tables over the limit the one that leaves the lowest price, which has
// the penalty for tables over the limit. Of several it takes the smallest number. It returns none if no table is over the limit.
func (s *slicedTree) bestSlice(o *objective) int32 {
	w := s.tree
	candidates := make([]uint64, w.n.words)
	base := logs(0)
	for v := int32(w.leafCount()); int(v) < len(w.left); v++ {
		base = max(base, w.unionSize[v])
		if w.size[v] > o.limit {
			for i, word := range w.scopeOf(v) {
				candidates[i] |= word
			}
		}
	}

	base = max(base-500*oneBit, 0)

	choice, lowest := none, 0.0
	for _, index := range appendMembers(candidates, nil) {
		if w.n.hasEnded() {
			return choice
		}

		word, bit, log2Dim := int(index>>6), uint64(1)<<(index&63), w.n.log2DimOf(index)
		price := 0.0
		for x := int32(w.leafCount()); int(x) < len(w.left); x++ {
			union, result := w.unionSize[x], w.size[x]
			if (w.scopeOf(w.left[x])[word]|w.scopeOf(w.right[x])[word])&bit != 0 {
				union -= log2Dim
				if w.scopeOf(x)[word]&bit != 0 {
					result -= log2Dim
				}
			}
			price += float64(o.relativePrice(union, result, base))
		}

		price *= pow2(log2Dim)
		if choice == none || price < lowest {
			choice, lowest = index, price
		}
		w.moves += int64(8 * (len(w.left) - w.leafCount()))
	}
	return choice
}

// removeSlices takes back slices that are no longer needed, those of the largest dimensions first. It takes an index back if no table is
// over the limit then and the price falls.
func (s *slicedTree) removeSlices(o *objective) {
	order := slices.Clone(s.sliced)
	slices.SortStableFunc(order, func(a, b int32) int {
		return int(min(max(s.whole.log2DimOf(b)-s.whole.log2DimOf(a), -1), 1))
	})
	for _, index := range order {
		if s.whole.hasEnded() {
			return
		}
		fewer := slices.DeleteFunc(slices.Clone(s.sliced), func(u int32) bool { return u == index })
		candidate := s.withSlices(fewer)
		if candidate.tree.log2Largest() <= o.limit && candidate.log2Price(o) < s.log2Price(o) {
			*s = *candidate
		} else {
			s.tree.moves = candidate.tree.moves
		}
	}
}

// exchangeSlices tries for every sliced index to take it back and to slice other indices as needed (sliceToLimit), and keeps the result if
// its price is lower. It stops when the tree's moves reach limit.
func (s *slicedTree) exchangeSlices(o *objective, pieceTables int, limit int64) {
	for _, index := range slices.Clone(s.sliced) {
		if s.tree.moves >= limit || s.whole.hasEnded() {
			return
		}
		candidate := s.withSlices(slices.DeleteFunc(slices.Clone(s.sliced),
			func(u int32) bool { return u == index }))
		if candidate.sliceToLimit(o, pieceTables, limit) && candidate.log2Price(o) < s.log2Price(o) {
			*s = *candidate
		} else {
			s.tree.moves = candidate.tree.moves
		}
	}
}
