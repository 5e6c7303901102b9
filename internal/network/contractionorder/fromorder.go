package contractionorder

// Elimination orders as trees.

import (
	"cmp"
	"slices"
)

// maxCompared is the largest number of tables of one index whose unions are compared. More tables are merged by their sizes only.
const maxCompared = 64

// movesPerCheck is the number of moves between two checks of the context: about a millisecond.
const movesPerCheck = 1 << 20

// FromOrder returns the contraction tree that eliminates the indices of h along order (RestrictOrder is applied to it). To eliminate an
// index, it merges the tables that have it two at a time: the smallest table with the partner that gives the smallest result. At the end
// it merges the tables without an index. For an index with k ≤ 64 tables it takes O(k²) comparisons of scopes. For an inconsistent
// hypergraph it returns an error that wraps ErrTree.
func FromOrder(h Hypergraph, order []int) (Tree, error) {
	if err := h.Validate(); err != nil {
		return Tree{}, err
	}
	remaining := eliminateInOrder(newSlicedNetwork(h, nil), RestrictOrder(order, h))
	return NewTree(len(h.Edges), remaining.mergeRemaining())
}

// eliminateInOrder eliminates the indices of order one after the other and returns the pool of the tables that remain. order has indices of
// the hypergraph from which n was made; those that n does not have are skipped. It stops early if the context of n ends.
func eliminateInOrder(n *network, order []int) *pool {
	p := newPool(n)

	// number[v] is the number that index v of the hypergraph has in n, or none. indexOf maps numbers to indices, with −1 for unused
	// numbers.
	largest := -1
	for _, v := range n.indexOf {
		largest = max(largest, v)
	}
	number := slices.Repeat([]int32{none}, largest+1)
	for i, v := range n.indexOf { // number i is index v
		if v >= 0 {
			number[v] = int32(i)
		}
	}

	movesAtCheck := int64(0) // p.movesSpent when the context was checked last
	for _, v := range order {
		if v <= largest && number[v] != none {
			p.eliminate(number[v])
		}
		if p.movesSpent-movesAtCheck > movesPerCheck {
			movesAtCheck = p.movesSpent
			if n.hasEnded() {
				break
			}
		}
	}
	return p
}

// eliminate merges the tables that have index v until one is left. Each time it merges the smallest table with a partner: the table whose
// union of scopes with it is the smallest. If there are more than maxCompared tables, the partner is the second smallest table. The last
// merge sums v out.
func (p *pool) eliminate(v int32) {
	bucket := slices.Clone(p.tablesWith[v]) // the tables with index v, ascending by size
	bySize := func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.size[a], p.size[b]),
			cmp.Compare(a, b))
	}

	slices.SortFunc(bucket, bySize)
	for len(bucket) > 1 {
		partner := 1 // its position in bucket
		if len(bucket) <= maxCompared {
			smallestUnion := p.unionSize(bucket[0], bucket[1])
			for i := 2; i < len(bucket); i++ {
				if p.size[bucket[i]] >= smallestUnion { // no union with this table or a later one is smaller
					break
				}
				if size := p.unionSize(bucket[0], bucket[i]); size < smallestUnion {
					partner, smallestUnion = i, size
				}
			}
		}

		// The two leave the bucket, and their product takes its place in the sequence of sizes.
		product := p.merge(bucket[0], bucket[partner])
		bucket = slices.Delete(bucket, partner, partner+1)[1:]
		position, _ := slices.BinarySearchFunc(bucket, product, bySize)
		bucket = slices.Insert(bucket, position, product)
	}
}
