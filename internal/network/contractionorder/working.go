package contractionorder

// working: a tree under improvement, with the scope and size of every table kept up to date.

import (
	"slices"
)

// none stands for a missing child or parent.
const none = int32(-1)

// working is a tree over a network.
// Nodes 0 … leaves−1 are tensors, the others merges in no particular sequence.
type working struct {
	n                   *network
	left, right, parent []int32  // by node; none for a leaf's children and the root's parent
	scope               []uint64 // n.words per node
	size                []logs   // log2 |S(v)|
	full                []logs   // log2 |S(a) ∪ S(b)|; of merges alone
	root                int32
	moves               int64 // elementary operations so far
}

// newWorking builds the tables of a tree over n. Merges are as in Tree.
func newWorking(n *network, merges [][2]int) *working {
	nodes := len(n.edges) + len(merges)
	w := &working{
		n:      n,
		left:   make([]int32, nodes),
		right:  make([]int32, nodes),
		parent: make([]int32, nodes),
		scope:  make([]uint64, nodes*n.words),
		size:   make([]logs, nodes),
		full:   make([]logs, nodes),
		root:   int32(nodes - 1),
	}
	for v := range w.left {
		w.left[v], w.right[v], w.parent[v] = none, none, none
	}

	for t, e := range n.edges {
		set := w.set(int32(t))
		for _, v := range e {
			set[v>>6] |= 1 << (v & 63)
		}
		w.size[t] = n.weigh(set)
	}

	for k, m := range merges {
		v := int32(len(n.edges) + k)
		w.join(v, int32(m[0]), int32(m[1]))
	}

	w.rescope()
	return w
}

func (w *working) leaves() int { return len(w.n.edges) }

// set returns the scope of a node as a bit set, a view.
func (w *working) set(v int32) []uint64 {
	k := w.n.words
	return w.scope[int(v)*k : int(v)*k+k : int(v)*k+k]
}

// join makes a and b the children of v.
func (w *working) join(v, a, b int32) {
	w.left[v], w.right[v] = a, b
	w.parent[a], w.parent[b] = v, v
}

// rescope computes every scope from the leaves:
// an index is open as long as some tensor outside has it.
func (w *working) rescope() {
	outside := make([]int32, len(w.n.of)) // tables that have the index and are not merged yet
	for _, e := range w.n.edges {
		for _, v := range e {
			outside[v]++
		}
	}

	for _, v := range w.postorder() {
		if w.left[v] == none {
			continue
		}

		a, b, s := w.set(w.left[v]), w.set(w.right[v]), w.set(v)

		// An index of both is in one table less from here on.
		w.full[v] = 0
		for i := range s {
			for x := a[i] & b[i]; x != 0; x &= x - 1 {
				outside[i<<6+trailing(x)]--
			}
			s[i] = 0
			for x := a[i] | b[i]; x != 0; x &= x - 1 {
				w.full[v] += w.n.log[i]
				if outside[i<<6+trailing(x)] > 1 {
					s[i] |= x & -x
				}
			}
		}

		w.size[v] = w.n.weigh(s)
	}
	w.moves += int64(len(w.left) * (w.n.words + 16))
}

// postorder lists all nodes, children before parents, left subtrees first.
func (w *working) postorder() []int32 {
	if w.root < 0 {
		return nil
	}
	out := make([]int32, 0, len(w.left))
	stack := []int32{w.root}
	for len(stack) > 0 { // parents before children, right subtrees first
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out = append(out, v)
		if w.left[v] != none {
			stack = append(stack, w.left[v], w.right[v])
		}
	}
	slices.Reverse(out)
	return out
}

// merges returns the tree as a Tree's merges.
func (w *working) merges() [][2]int {
	number := make([]int, len(w.left))
	var out [][2]int
	for _, v := range w.postorder() {
		if w.left[v] == none {
			number[v] = int(v)
			continue
		}
		number[v] = w.leaves() + len(out)
		out = append(out, [2]int{number[w.left[v]], number[w.right[v]]})
	}
	return out
}

// copyFrom makes w the same tree as o; the moves of w stay its own.
func (w *working) copyFrom(o *working) {
	w.n, w.root = o.n, o.root
	w.left = append(w.left[:0], o.left...)
	w.right = append(w.right[:0], o.right...)
	w.parent = append(w.parent[:0], o.parent...)
	w.scope = append(w.scope[:0], o.scope...)
	w.size = append(w.size[:0], o.size...)
	w.full = append(w.full[:0], o.full...)
}

func (w *working) clone() *working {
	c := &working{}
	c.copyFrom(w)
	return c
}
