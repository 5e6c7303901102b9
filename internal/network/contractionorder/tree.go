package contractionorder

// Tree: a contraction tree as a list of merges.

import (
	"errors"
	"fmt"
)

// ErrTree is wrapped by the errors of trees that contradict
// themselves or the hypergraph they are used with.
var ErrTree = errors.New("contractionorder: invalid tree")

// Tree is a binary contraction tree in static single assignment form: tables 0 … Leaves−1 are the
// edges of the hypergraph in their order, and Merges[k] = {i, j} makes table Leaves+k out of tables
// i and j, which exist by then and are consumed. Leaves−1 merges leave one table, which has no
// index left. The sequence of the merges is the sequence of execution, and i is multiplied with j
// in this order.
type Tree struct {
	Leaves int
	Merges [][2]int
}

// NewTree returns the tree of the given merges, which it keeps. The error, which wraps ErrTree, states why they are no tree. Linear time.
func NewTree(leaves int, merges [][2]int) (Tree, error) {
	t := Tree{Leaves: leaves, Merges: merges}
	return t, t.Validate()
}

// Validate returns an error, which wraps ErrTree, if t is no tree. Tables 0 … Leaves−1 are the tensors, and merge k makes table Leaves+k of
// two tables. In a tree every table except the last is consumed exactly once, by a merge after it was made. No tensors and no merges are a
// tree, too: the empty product.
func (t Tree) Validate() error {
	if t.Leaves < 0 || len(t.Merges) != max(t.Leaves-1, 0) {
		return fmt.Errorf("%w: %d tensors and %d merges", ErrTree, t.Leaves, len(t.Merges))
	}
	isConsumed := make([]bool, t.Leaves+len(t.Merges)) // by table
	for k, inputs := range t.Merges {
		for _, i := range inputs {
			switch {
			case i < 0 || i >= t.Leaves+k:
				return fmt.Errorf("%w: merge %d names table %d, tables 0 to %d exist by then",
					ErrTree, k, i, t.Leaves+k-1)
			case isConsumed[i]:
				return fmt.Errorf("%w: merge %d names table %d, which is consumed already",
					ErrTree, k, i)
			}
			isConsumed[i] = true
		}
	}
	return nil
}

// Canonical returns the same tree in a form that depends on its shape alone. Of the two inputs of a merge, the one whose subtree has the
// smallest leaf is first, and its merges come first. Two trees contract the same subsets of tensors if and only if their canonical forms
// are equal. t must be valid. Linear time.
func (t Tree) Canonical() Tree {
	// By table: the smallest leaf of its subtree. Tables 0 … Leaves−1 are leaves, and merge k makes table Leaves+k.
	smallestLeaf := make([]int, t.Leaves+len(t.Merges))
	for i := range t.Leaves {
		smallestLeaf[i] = i
	}
	for k, inputs := range t.Merges {
		smallestLeaf[t.Leaves+k] = min(smallestLeaf[inputs[0]], smallestLeaf[inputs[1]])
	}
	return t.depthFirst(func(i, j int) bool { return smallestLeaf[i] < smallestLeaf[j] })
}

// depthFirst returns the same tree with its merges in a depth-first sequence: first all merges below one input of a merge, then all below
// the other input, then the merge itself. The input i comes before the input j if comesFirst(i, j). Tables 0 … Leaves−1 are leaves, and
// merge k makes table Leaves+k. The last merge makes the root.
func (t Tree) depthFirst(comesFirst func(i, j int) bool) Tree {
	arranged := Tree{Leaves: t.Leaves, Merges: make([][2]int, 0, len(t.Merges))}
	if len(t.Merges) == 0 {
		return arranged
	}

	newNumber := make([]int, t.Leaves+len(t.Merges)) // by table of t: its number in the arranged tree
	for i := range t.Leaves {
		newNumber[i] = i
	}
	type visit struct {
		table     int
		hasInputs bool // both inputs are made, so that this merge is next
	}

	// A merge is visited twice, and its inputs are put in order each time: the first visit puts the inputs on the stack; the second one,
	// after them, adds the merge to the arranged tree. The stack begins with the root.
	stack := []visit{{table: len(newNumber) - 1}}
	for len(stack) > 0 {
		v := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if v.table < t.Leaves {
			continue // a leaf is not made
		}

		inputs := t.Merges[v.table-t.Leaves] // a copy, so that t does not change
		if !comesFirst(inputs[0], inputs[1]) {
			inputs[0], inputs[1] = inputs[1], inputs[0]
		}
		if !v.hasInputs {
			stack = append(stack, visit{table: v.table, hasInputs: true}, visit{table: inputs[1]}, visit{table: inputs[0]})
			continue
		}

		newNumber[v.table] = t.Leaves + len(arranged.Merges)
		arranged.Merges = append(arranged.Merges, [2]int{newNumber[inputs[0]], newNumber[inputs[1]]})
	}
	return arranged
}
