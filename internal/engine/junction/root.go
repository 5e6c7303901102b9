package junction

// The choice of a tree's root: a run computes the tables between the evidence and the root.

import "github.com/basetensor/basetensor/internal/network/contractionorder"

// unrooted is a contraction tree without a root: a leaf has one neighbour, the output of a merge three.
type unrooted struct {
	leaves     int       // tables 0 to leaves−1 are leaves
	neighbours [][]int   // by table
	flops      []float64 // by table: of the merge that makes it
	variables  []float64 // by table: the number of variables whose weights it has, 0 unless it is a leaf
}

// branch is what a cut of the edge between two neighbours leaves on one end: a table and all tables behind it.
type branch struct {
	variables float64 // the number of variables whose weights its leaves have
	cost      float64 // Σ over its merges: flops · the variables of the leaves below the merge
}

// reroot returns the tree with the root at another edge: runs under evidence on one variable cost least there, on average over the
// variables. Such a run computes all merges between the variable's leaf and the root. flops has, by table, the flops of the merge that
// makes it, which hardly depend on the root.
func reroot(tree contractionorder.Tree, flops []float64, leaves []leaf) contractionorder.Tree {
	if len(tree.Merges) < 2 {
		return tree
	}

	// Join neighbours: each output with its two inputs. The inputs of the last merge become neighbours, and its output vanishes.
	u := &unrooted{leaves: tree.Leaves, neighbours: make([][]int, tree.Leaves+len(tree.Merges)), flops: flops}
	u.variables = make([]float64, len(u.neighbours))
	for k := range tree.Leaves {
		u.variables[k] = float64(len(leaves[k].weighted))
	}
	last := len(tree.Merges) - 1
	for k, m := range tree.Merges {
		output := tree.Leaves + k
		if k == last {
			u.join(m[0], m[1])
			continue
		}
		u.join(output, m[0])
		u.join(output, m[1])
	}

	// List the merges again, towards the best edge from both of its ends.
	root := u.cheapestEdge(tree.Merges[last])
	r := &rooting{unrooted: u, tree: contractionorder.Tree{Leaves: tree.Leaves}}
	left, right := r.addBranch(root[0], root[1]), r.addBranch(root[1], root[0])
	r.addMerge(left, right)
	return r.tree
}

// join makes two tables neighbours.
func (u *unrooted) join(a, b int) {
	u.neighbours[a] = append(u.neighbours[a], b)
	u.neighbours[b] = append(u.neighbours[b], a)
}

// cheapestEdge returns the edge whose two branches together have the least cost. It visits all edges, from the edge start outwards.
func (u *unrooted) cheapestEdge(start [2]int) [2]int {
	branches := map[[2]int]branch{} // by {table, neighbour towards start}
	first := u.addBranches(start[0], start[1], branches)
	second := u.addBranches(start[1], start[0], branches)
	edge, least := start, first.cost+second.cost

	// descend compares the edges behind table, seen from its neighbour parent. above is the branch of parent, seen from table.
	var descend func(table, parent int, above branch)
	descend = func(table, parent int, above branch) {
		for _, child := range u.neighbours[table] {
			if child == parent {
				continue
			}
			beyond := above // becomes the branch of table, seen from child
			for _, sibling := range u.neighbours[table] {
				if sibling != parent && sibling != child {
					s := branches[[2]int{sibling, table}]
					beyond = branch{beyond.variables + s.variables, beyond.cost + s.cost}
				}
			}
			beyond.cost += u.flops[table] * beyond.variables
			if cost := beyond.cost + branches[[2]int{child, table}].cost; cost < least {
				edge, least = [2]int{child, table}, cost
			}
			descend(child, table, beyond)
		}
	}
	descend(start[0], start[1], second)
	descend(start[1], start[0], first)
	return edge
}

// addBranches returns the branch of a table, seen from its neighbour parent: the table and all tables behind it. A branch has the number of
// variables whose weights are in its leaves. Its cost is Σ over its merges of flops · variables below the merge, since evidence on each of
// these variables repeats the merge. It stores this branch, and those of all tables behind the table, in branches under the keys {table,
// parent}.
func (u *unrooted) addBranches(table, parent int, branches map[[2]int]branch) branch {
	b := branch{variables: u.variables[table]}
	for _, child := range u.neighbours[table] {
		if child != parent {
			below := u.addBranches(child, table, branches)
			b.variables += below.variables
			b.cost += below.cost
		}
	}
	if table >= u.leaves { // the output of a merge
		b.cost += u.flops[table] * b.variables
	}
	branches[[2]int{table, parent}] = b
	return b
}

// rooting is a new contraction tree, made from an unrooted one merge by merge.
type rooting struct {
	*unrooted
	tree contractionorder.Tree
}

// addBranch adds the merges of a table's branch, seen from its neighbour parent, and returns the number of the table in the new tree.
func (r *rooting) addBranch(table, parent int) int {
	if table < r.leaves {
		return table
	}
	var inputs []int
	for _, child := range r.neighbours[table] {
		if child != parent {
			inputs = append(inputs, r.addBranch(child, table))
		}
	}
	return r.addMerge(inputs[0], inputs[1])
}

// addMerge adds a merge of two tables and returns the number of its output.
func (r *rooting) addMerge(left, right int) int {
	r.tree.Merges = append(r.tree.Merges, [2]int{left, right})
	return r.leaves + len(r.tree.Merges) - 1
}
