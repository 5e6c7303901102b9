package contractionorder

// Slicing: indices fixed to one value at a time until the tables are small enough.

import (
	"cmp"
	"slices"
)

// slicedTree is a tree over a network with some indices sliced: each combination of their values is contracted for itself, along the same
// tree.
type slicedTree struct {
	wholeNetwork *network
	tree         *workingTree // over wholeNetwork without the sliced indices; its movesSpent count earlier choices, too
	sliced       []int32      // numbers of the sliced indices in wholeNetwork
}

// withoutIndices returns n with the sliced indices removed from the scopes of its tensors. All indices keep their numbers.
func (n *network) withoutIndices(sliced []int32) *network {
	isRemoved := make([]bool, len(n.indexOf))
	for _, v := range sliced {
		isRemoved[v] = true
	}

	reduced := *n
	reduced.edges = make([][]int32, len(n.edges))
	for t, edge := range n.edges {
		reduced.edges[t] = slices.DeleteFunc(slices.Clone(edge), func(v int32) bool { return isRemoved[v] })
	}
	return &reduced
}

// withSlices returns the same tree with the given indices sliced in place of those of s. Its moves (elementary operations) are those of s
// and those of this change.
func (s *slicedTree) withSlices(sliced []int32) *slicedTree {
	changed := &slicedTree{wholeNetwork: s.wholeNetwork, sliced: sliced}
	changed.tree = newWorkingTree(s.wholeNetwork.withoutIndices(sliced), s.tree.merges())
	changed.tree.movesSpent += s.tree.movesSpent
	return changed
}

// copyWithoutMoves returns a copy of s that has no moves yet.
func (s *slicedTree) copyWithoutMoves() *slicedTree {
	return &slicedTree{wholeNetwork: s.wholeNetwork, tree: s.tree.clone(), sliced: slices.Clone(s.sliced)}
}

// maxLog2Slices is log2 of a number of slices, 2^64, that nobody will contract.
const maxLog2Slices = 64 * oneBit

// log2Slices returns log2 of the number of slices: of the product of the dimensions of the sliced indices.
func (s *slicedTree) log2Slices() log2Fixed {
	var sum log2Fixed
	for _, v := range s.sliced {
		sum += s.wholeNetwork.log2DimOf(v)
	}
	return sum
}

// log2Price returns log2 of the price of all slices together. Each slice has the price of the tree.
func (s *slicedTree) log2Price(o *objective) log2Fixed {
	return s.tree.log2TotalPrice(o) + s.log2Slices()
}

// sliceToLimit slices one index after the other until no result of a merge is over the limit of o. After each index it replaces pieces of
// at most maxTables tables of the tree by optimal trees, until the tree's moves (elementary operations) reach maxMoves. It returns false
// if results are still over the limit: no index is left, there are more than 2^64 slices (maxLog2Slices), or the search has ended.
func (s *slicedTree) sliceToLimit(o *objective, maxTables int, maxMoves int64) bool {
	for s.tree.log2Largest() > o.limit {
		index := s.bestSlice(o)
		if index == none || s.log2Slices() > maxLog2Slices || s.wholeNetwork.hasEnded() {
			return false
		}
		*s = *s.withSlices(append(slices.Clone(s.sliced), index))
		// Each run may make 2^14 moves for each table of the tree.
		newReconfigurer(s.tree, *o, maxTables).run(min(maxMoves, s.tree.movesSpent+int64(len(s.tree.left))<<14))
	}
	return true
}

// bestSlice returns the index to be sliced next, or none if no result of a merge is over the limit of o. Candidates are the indices of the
// results over the limit. It returns the candidate with which all slices together have the lowest price; of several the one with the
// smallest number. The price includes the penalty for results that are still over the limit. If the search ends, it returns the best
// candidate so far. Scopes are bit sets: index v is bit v%64 of word v/64.
func (s *slicedTree) bestSlice(o *objective) int32 {
	w := s.tree
	candidates := make([]uint64, w.network.words)
	largestUnion := log2Fixed(0)
	for v := int32(w.leafCount()); int(v) < len(w.left); v++ { // all merges
		largestUnion = max(largestUnion, w.unionSize[v])
		if w.size[v] > o.limit {
			for i, word := range w.scopeOf(v) {
				candidates[i] |= word
			}
		}
	}

	// Prices are divided by 2^base, so that they are within the range of float64, which ends at 2^1024. No union is above 2^500 after the
	// division: that leaves room for penalties and sums.
	base := max(largestUnion-500*oneBit, 0)
	choice, lowestPrice := none, 0.0
	for _, index := range appendMembers(candidates, nil) {
		if w.network.hasEnded() {
			return choice
		}

		price := w.priceWithout(index, o, base)
		price *= pow2(w.network.log2DimOf(index)) // one slice for each value of the index
		if choice == none || price < lowestPrice {
			choice, lowestPrice = index, price
		}
		w.movesSpent += int64(8 * (len(w.left) - w.leafCount())) // 8 elementary operations for each merge
	}
	return choice
}

// priceWithout returns the price of all merges of the tree if an index is left out of all scopes, divided by 2^base. Scopes are bit sets:
// index v is bit v%64 of word v/64.
func (w *workingTree) priceWithout(index int32, o *objective, base log2Fixed) float64 {
	word, bit, log2Dim := int(index>>6), uint64(1)<<(index&63), w.network.log2DimOf(index)
	price := 0.0
	for x := int32(w.leafCount()); int(x) < len(w.left); x++ {
		union, result := w.unionSize[x], w.size[x]
		inputHasIndex := (w.scopeOf(w.left[x])[word]|w.scopeOf(w.right[x])[word])&bit != 0
		if inputHasIndex {
			union -= log2Dim
			if w.scopeOf(x)[word]&bit != 0 {
				result -= log2Dim
			}
		}
		price += float64(o.relativePrice(union, result, base))
	}
	return price
}

// removeSlices makes sliced indices whole again: they are no longer fixed in each slice. It tries the sliced indices one after the other,
// those of the largest dimensions first. An index becomes whole if no result of a merge is over the limit of o then and the price of all
// slices falls.
func (s *slicedTree) removeSlices(o *objective) {
	order := slices.Clone(s.sliced)
	slices.SortStableFunc(order, func(a, b int32) int { // −1 if a has the larger dimension
		return cmp.Compare(s.wholeNetwork.log2DimOf(b), s.wholeNetwork.log2DimOf(a))
	})
	for _, index := range order {
		if s.wholeNetwork.hasEnded() {
			return
		}
		otherIndices := slices.DeleteFunc(slices.Clone(s.sliced), func(u int32) bool { return u == index })
		candidate := s.withSlices(otherIndices)
		if candidate.tree.log2Largest() <= o.limit && candidate.log2Price(o) < s.log2Price(o) {
			*s = *candidate
		} else {
			s.tree.movesSpent = candidate.tree.movesSpent // s stays, but the moves that made the candidate are spent, too
		}
	}
}

// exchangeSlices tries for every sliced index to make it whole again and to slice other indices in its place, until no table is over the
// limit of o. It keeps the result if the price of all slices falls. It stops when the tree's moves (elementary operations) reach maxMoves.
func (s *slicedTree) exchangeSlices(o *objective, maxTables int, maxMoves int64) {
	for _, index := range slices.Clone(s.sliced) {
		if s.tree.movesSpent >= maxMoves || s.wholeNetwork.hasEnded() {
			return
		}
		otherIndices := slices.DeleteFunc(slices.Clone(s.sliced), func(u int32) bool { return u == index })
		candidate := s.withSlices(otherIndices)
		if candidate.sliceToLimit(o, maxTables, maxMoves) && candidate.log2Price(o) < s.log2Price(o) {
			*s = *candidate
		} else {
			s.tree.movesSpent = candidate.tree.movesSpent // s stays, but the moves for the candidate are spent, too
		}
	}
}
