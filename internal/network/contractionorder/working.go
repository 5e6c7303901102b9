package contractionorder

// workingTree: a tree under improvement, with the scope and size of every table kept up to date.

import (
	"slices"
)

// none stands for a missing child or parent.
const none = int32(-1)

// workingTree is a tree over a network. Nodes 0 … leafCount−1 are tensors. The other nodes are merges, in no particular sequence. S(v) is
// the scope of the table of node v.
type workingTree struct {
	network             *network
	left, right, parent []int32     // by node; none for a leaf's children and the root's parent
	scope               []uint64    // n.words words per node: S(v) as a bit set, see scopeOf
	size                []log2Fixed // by node: log2 |S(v)|
	unionSize           []log2Fixed // by node v = (a, b): log2 |S(a) ∪ S(b)|; 0 for leaves
	root                int32
	movesSpent          int64 // elementary operations so far
}

// newWorkingTree returns the tree over n with the given merges. Nodes below len(n.edges) are the tensors of n, and merge k, of two nodes,
// is node len(n.edges)+k. The scope of a node is a bit set: index v is bit v%64 of word v/64.
func newWorkingTree(n *network, merges [][2]int) *workingTree {
	nodes := len(n.edges) + len(merges)
	w := &workingTree{
		network:   n,
		left:      make([]int32, nodes),
		right:     make([]int32, nodes),
		parent:    make([]int32, nodes),
		scope:     make([]uint64, nodes*n.words),
		size:      make([]log2Fixed, nodes),
		unionSize: make([]log2Fixed, nodes),
		root:      int32(nodes - 1),
	}
	for v := range w.left {
		w.left[v], w.right[v], w.parent[v] = none, none, none
	}

	// Tensors.
	for t, edge := range n.edges {
		set := w.scopeOf(int32(t))
		for _, v := range edge {
			set[v>>6] |= 1 << (v & 63)
		}
		w.size[t] = n.log2Size(set)
	}

	// Merges.
	for k, merge := range merges {
		v := int32(len(n.edges) + k)
		w.setChildren(v, int32(merge[0]), int32(merge[1]))
	}

	w.computeScopes()
	return w
}

// leafCount returns the number of tensors. Nodes below it are tensors, the others merges.
func (w *workingTree) leafCount() int { return len(w.network.edges) }

// scopeOf returns the scope of a node as a bit set of n.words words, which shares memory with w. The scopes of all nodes are one after the
// other in w.scope.
func (w *workingTree) scopeOf(v int32) []uint64 {
	begin := int(v) * w.network.words
	end := begin + w.network.words
	return w.scope[begin:end:end]
}

// setChildren makes a and b the children of v.
func (w *workingTree) setChildren(v, a, b int32) {
	w.left[v], w.right[v] = a, b
	w.parent[a], w.parent[b] = v, v
}

// computeScopes computes the scope of every merge, its size and the size of the union of its inputs' scopes, from the scopes of the leaves.
// An index stays in the result of a merge as long as another table has it. Scopes are bit sets: bit b of word i stands for index 64·i + b.
func (w *workingTree) computeScopes() {
	tableCount := make([]int32, len(w.network.indexOf)) // by index: the number of tables that have it, at this point of the postorder
	for _, edge := range w.network.edges {
		for _, v := range edge {
			tableCount[v]++
		}
	}

	for _, v := range w.postorder() {
		if w.left[v] == none {
			continue // a leaf
		}

		w.computeScope(v, tableCount)
	}
	w.movesSpent += int64(len(w.left) * (w.network.words + 16)) // for each node, its words and 16 elementary operations for its indices
}

// computeScope computes the scope and the sizes of merge v from the scopes of its inputs. The result has the indices of their union that a
// table outside the merge has, too. tableCount has the number of tables with each index before the merge; afterwards that after it.
func (w *workingTree) computeScope(v int32, tableCount []int32) {
	left, right, result := w.scopeOf(w.left[v]), w.scopeOf(w.right[v]), w.scopeOf(v)
	w.unionSize[v] = 0
	for i := range result { // word by word of the bit sets, and bit by bit of a word: x & (x−1) is x without its lowest bit
		for common := left[i] & right[i]; common != 0; common &= common - 1 { // two tables with the index become one
			tableCount[i<<6+lowestBit(common)]--
		}
		result[i] = 0
		for union := left[i] | right[i]; union != 0; union &= union - 1 {
			bit := lowestBit(union)
			w.unionSize[v] += w.network.log2Dim[i]
			if tableCount[i<<6+bit] > 1 {
				result[i] |= 1 << bit
			}
		}
	}
	w.size[v] = w.network.log2Size(result)
}

// postorder returns all nodes, children before parents, left subtrees first.
func (w *workingTree) postorder() []int32 {
	if w.root < 0 {
		return nil
	}
	nodes := make([]int32, 0, len(w.left))
	stack := []int32{w.root}
	for len(stack) > 0 { // parents before children, right subtrees first; reversed below
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		nodes = append(nodes, v)
		if w.left[v] != none {
			stack = append(stack, w.left[v], w.right[v])
		}
	}
	slices.Reverse(nodes)
	return nodes
}

// merges returns the merges of the tree in the sequence of execution. Each names two tables: numbers below leafCount are tensors, and merge
// k makes table leafCount+k.
func (w *workingTree) merges() [][2]int {
	tableOf := make([]int, len(w.left)) // by node: the number of its table
	var merges [][2]int
	for _, v := range w.postorder() {
		if w.left[v] == none {
			tableOf[v] = int(v)
			continue
		}
		tableOf[v] = w.leafCount() + len(merges)
		merges = append(merges, [2]int{tableOf[w.left[v]], tableOf[w.right[v]]})
	}
	return merges
}

// copyFrom makes w the same tree as source, in the memory of w. The count of moves of w stays.
func (w *workingTree) copyFrom(source *workingTree) {
	w.network, w.root = source.network, source.root
	w.left = append(w.left[:0], source.left...)
	w.right = append(w.right[:0], source.right...)
	w.parent = append(w.parent[:0], source.parent...)
	w.scope = append(w.scope[:0], source.scope...)
	w.size = append(w.size[:0], source.size...)
	w.unionSize = append(w.unionSize[:0], source.unionSize...)
}

// clone returns a copy of w whose count of moves is 0.
func (w *workingTree) clone() *workingTree {
	copied := &workingTree{}
	copied.copyFrom(w)
	return copied
}
