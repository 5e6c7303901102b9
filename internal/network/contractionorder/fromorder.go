package contractionorder

// Elimination orders as trees.

import (
	"cmp"
	"slices"
)

// manyTables bounds the tables of one bucket that are compared with each
// other; beyond, they are merged by size alone.
const manyTables = 64

// betweenLooks is the number of elementary operations between two looks at
// the context: about a millisecond.
const betweenLooks = 1 << 20

// FromOrder returns the tree of eliminating h along order (Restrict is applied to it): the tables
// that have the index are merged two at a time, the smallest with the partner that gives the
// smallest result; tables without an index are multiplied at the end. Where a bucket has k ≤ 64
// tables it takes O(k²) comparisons of scopes. It returns an error that wraps ErrTree for an
// inconsistent hypergraph.
func FromOrder(h Hypergraph, order []int) (Tree, error) {
	if err := h.Validate(); err != nil {
		return Tree{}, err
	}
	n := fromHypergraph(h, nil)
	return NewTree(len(h.Edges), alongOrder(n, Restrict(order, h)).finish())
}

// alongOrder eliminates the indices of n in a sequence of indices of the hypergraph;
// those it does not have are skipped. It stops when the context of n ends.
func alongOrder(n *network, order []int) *pool {
	p := newPool(n)

	most := -1
	for _, v := range n.of {
		most = max(most, v)
	}

	// number[v] is the number that index v of the hypergraph has in n.
	number := slices.Repeat([]int32{none}, most+1)
	for i, v := range n.of {
		if v >= 0 {
			number[v] = int32(i)
		}
	}

	looked := int64(0)
	for _, v := range order {
		if v <= most && number[v] != none {
			p.eliminate(number[v])
		}
		if p.moves-looked > betweenLooks {
			if looked = p.moves; n.over() {
				break
			}
		}
	}
	return p
}

// eliminate merges all tables that have index v.
func (p *pool) eliminate(v int32) {
	bucket := slices.Clone(p.at[v])
	bySize := func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.size[a], p.size[b]),
			cmp.Compare(a, b))
	}

	slices.SortFunc(bucket, bySize)
	for len(bucket) > 1 {
		partner := 1
		if len(bucket) <= manyTables {
			least := p.unionSize(bucket[0], bucket[1])
			for i := 2; i < len(bucket); i++ {
				if p.size[bucket[i]] >= least { // no union with a table that large is smaller
					break
				}
				if s := p.unionSize(bucket[0], bucket[i]); s < least {
					partner, least = i, s
				}
			}
		}

		c := p.merge(bucket[0], bucket[partner])
		bucket = slices.Delete(bucket, partner, partner+1)[1:]
		at, _ := slices.BinarySearchFunc(bucket, c, bySize)
		bucket = slices.Insert(bucket, at, c)
	}
}
