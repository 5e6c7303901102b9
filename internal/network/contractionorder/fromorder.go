package contractionorder

// Elimination orders as trees.

import (
	"cmp"
	"slices"
)

// maxCompared is the largest number of tables of one index whose unions are compared. More tables are merged by their sizes only.
const maxCompared = 64

// movesPerLook is the number of moves between two looks at the context: about a millisecond.
const movesPerLook = 1 << 20

// FromOrder returns the tree that eliminates the indices of h along order (Restrict is applied to it). To eliminate an index, it merges the
// tables that have it two at a time: the smallest with the partner that gives the smallest result. It multiplies tables without an index at
// the end. For an index with k ≤ 64 tables it takes O(k²) comparisons of scopes. For an inconsistent hypergraph it returns an error that
// wraps ErrTree.
func FromOrder(h Hypergraph, order []int) (Tree, error) {
	if err := h.Validate(); err != nil {
		return Tree{}, err
	}
	n := newSlicedNetwork(h, nil)
	return NewTree(len(h.Edges), eliminateInOrder(n, Restrict(order, h)).mergeRemaining())
}

// eliminateInOrder returns a pool of the tables of n after the indices in order, which are those of the hypergraph, are eliminated. It
// skips indices that n does not have. It stops early if the context of n ends.
func eliminateInOrder(n *network, order []int) *pool {
	p := newPool(n)

	largest := -1
	for _, v := range n.indexOf {
		largest = max(largest, v)
	}

	// number[v] is the number that index v of the hypergraph has in n.
	number := slices.Repeat([]int32{none}, largest+1)
	for i, v := range n.indexOf {
		if v >= 0 {
			number[v] = int32(i)
		}
	}

	movesAtLook := int64(0)
	for _, v := range order {
		if v <= largest && number[v] != none {
			p.eliminate(number[v])
		}
		if p.moves-movesAtLook > movesPerLook {
			if movesAtLook = p.moves; n.hasEnded() {
				break
			}
		}
	}
	return p
}

// eliminate merges all tables that have index v: over and over the smallest with the partner that gives the smallest result.
func (p *pool) eliminate(v int32) {
	bucket := slices.Clone(p.tablesWith[v]) // ascending by size
	bySize := func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.size[a], p.size[b]),
			cmp.Compare(a, b))
	}

	slices.SortFunc(bucket, bySize)
	for len(bucket) > 1 {
		partner := 1
		if len(bucket) <= maxCompared {
			smallest := p.unionSize(bucket[0], bucket[1])
			for i := 2; i < len(bucket); i++ {
				if p.size[bucket[i]] >= smallest { // no union with a table that large is smaller
					break
				}
				if size := p.unionSize(bucket[0], bucket[i]); size < smallest {
					partner, smallest = i, size
				}
			}
		}

		product := p.merge(bucket[0], bucket[partner])
		bucket = slices.Delete(bucket, partner, partner+1)[1:]
		position, _ := slices.BinarySearchFunc(bucket, product, bySize)
		bucket = slices.Insert(bucket, position, product)
	}
}
