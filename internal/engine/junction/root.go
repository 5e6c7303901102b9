package junction

// The choice of a tree's root: a run computes the tables between the evidence and the root.

import "github.com/basetensor/basetensor/internal/network/contractionorder"

// unrooted is a tree without a root: a leaf has one neighbour, a merge three.
type unrooted struct {
	leaves     int
	neighbours [][]int   // by table
	price      []float64 // of a merge, by table
	weighted   []float64 // variables whose weights a leaf has, by table
}

// side is the part of an unrooted tree at one end of an edge: the tables that a cut of the edge separates from the other end.
type side struct {
	weighted float64
	cost     float64 // Σ over its merges of price · variables below it
}

// reroot returns the tree with the root on the edge for which runs under evidence on a single variable cost least, on average over the
// variables. price has, by table, the price of the merge that makes it, which does not depend on the root.
func reroot(tree contractionorder.Tree, price []float64, leaves []leaf) contractionorder.Tree {
	if len(tree.Merges) < 2 {
		return tree
	}
	u := &unrooted{leaves: tree.Leaves, neighbours: make([][]int, tree.Leaves+len(tree.Merges)), price: price}
	u.weighted = make([]float64, len(u.neighbours))
	for k := range tree.Leaves {
		u.weighted[k] = float64(len(leaves[k].weighted))
	}
	last := len(tree.Merges) - 1
	for k, m := range tree.Merges {
		at := tree.Leaves + k
		if k == last {
			u.join(m[0], m[1])
			continue
		}
		u.join(at, m[0])
		u.join(at, m[1])
	}
	root := u.best(tree.Merges[last])
	r := &rooting{unrooted: u, tree: contractionorder.Tree{Leaves: tree.Leaves}}
	left, right := r.add(root[0], root[1]), r.add(root[1], root[0])
	r.merge(left, right)
	return r.tree
}

// join makes two tables neighbours.
func (u *unrooted) join(a, b int) {
	u.neighbours[a] = append(u.neighbours[a], b)
	u.neighbours[b] = append(u.neighbours[b], a)
}

// best returns the edge whose two sides cost least together. It begins at an edge from of the tree and descends into both of its sides.
// While it descends, above is the side beyond the current table, as its child sees it.
func (u *unrooted) best(from [2]int) [2]int {
	sides := map[[2]int]side{}
	below := [2]side{u.side(from[0], from[1], sides), u.side(from[1], from[0], sides)}
	best, least := from, below[0].cost+below[1].cost
	var descend func(table, parent int, above side)
	descend = func(table, parent int, above side) {
		for _, child := range u.neighbours[table] {
			if child == parent {
				continue
			}
			beyond := above // the side of table, seen from child: without child's own side
			for _, other := range u.neighbours[table] {
				if other != parent && other != child {
					s := sides[[2]int{other, table}]
					beyond = side{beyond.weighted + s.weighted, beyond.cost + s.cost}
				}
			}
			beyond.cost += u.price[table] * beyond.weighted
			if cost := beyond.cost + sides[[2]int{child, table}].cost; cost < least {
				best, least = [2]int{child, table}, cost
			}
			descend(child, table, beyond)
		}
	}
	descend(from[0], from[1], below[1])
	descend(from[1], from[0], below[0])
	return best
}

// side returns the side of a table, seen from the neighbour from. It stores that side, and all sides within it, in sides, under the keys
// {table, neighbour}.
func (u *unrooted) side(table, from int, sides map[[2]int]side) side {
	s := side{weighted: u.weighted[table]}
	for _, next := range u.neighbours[table] {
		if next != from {
			below := u.side(next, table, sides)
			s.weighted += below.weighted
			s.cost += below.cost
		}
	}
	if table >= u.leaves {
		s.cost += u.price[table] * s.weighted
	}
	sides[[2]int{table, from}] = s
	return s
}

// rooting lists the merges of an unrooted tree towards a root.
type rooting struct {
	*unrooted
	tree contractionorder.Tree
}

// add lists the merges of a table's side, seen from the neighbour from, and returns the number of the table in the new tree.
func (r *rooting) add(table, from int) int {
	if table < r.leaves {
		return table
	}
	var below []int
	for _, next := range r.neighbours[table] {
		if next != from {
			below = append(below, r.add(next, table))
		}
	}
	return r.merge(below[0], below[1])
}

// merge adds a merge of two tables and returns the number of its output.
func (r *rooting) merge(left, right int) int {
	r.tree.Merges = append(r.tree.Merges, [2]int{left, right})
	return r.leaves + len(r.tree.Merges) - 1
}
