package branching

// Open nodes: branches that the search has not looked into, the most promising first.

import (
	"cmp"
)

// decision is a decision about variable x: it has one of values, or, if removes is set, none of them.
type decision struct {
	x       int32
	removes bool
	values  []int32
}

// openDecision is a decision of a dive whose opposite is not searched yet.
type openDecision struct {
	pathLength int   // number of steps before the decision
	bound      int64 // of the node before the decision
	opposite   decision
}

// node is an open node: its subtree is not searched yet.
type node struct {
	bound  int64      // no assignment in the subtree costs less
	serial int64      // number of the node in the order of creation
	path   []decision // decisions from the root
}

// openNodes is a heap of open nodes: the lowest bound first, of equal ones the longest path, then the oldest node.
type openNodes []*node

// Len implements heap.Interface.
func (o openNodes) Len() int { return len(o) }

// Less implements heap.Interface: it reports whether node i is to be searched before node j: its bound is lower, or else its path longer,
// or else it is older.
func (o openNodes) Less(i, j int) bool {
	a, b := o[i], o[j]
	return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.serial, b.serial)) < 0
}

// Swap implements heap.Interface.
func (o openNodes) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

// Push implements heap.Interface: it appends a node, which heap.Push then moves to its place.
func (o *openNodes) Push(x any) { *o = append(*o, x.(*node)) }

// Pop implements heap.Interface: it removes the last node, to which heap.Pop has moved the first one, and returns it.
func (o *openNodes) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// maxDive limits the backtracks of a dive. The limit of the next dive is doubled if more than a tenth of the nodes are restored ones, and
// halved if less than a twentieth is.
const maxDive = 1 << 14
