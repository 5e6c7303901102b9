package junction

// Where a tree has its root: a run computes the tables between the evidence and the root.

import "github.com/basetensor/basetensor/internal/network/contractionorder"

// unrooted is a tree without a root: a leaf has one neighbour, a merge three.
type unrooted struct {
	leaves     int
	neighbours [][]int
	price      []float64 // of a merge, by table
	hosted     []float64 // variables whose weights a leaf has, by table
}

// side is the part of an unrooted tree at one end of an edge, seen from the other.
type side struct {
	hosted float64
	cost   float64 // Σ over its merges of price · variables below it
}

// reroot returns the tree with the root where a run under evidence on one variable, any of them, takes least on average. The price of a
// merge, with which a table of the tree is made, does not depend on the root.
func reroot(tree contractionorder.Tree, price []float64, leaves []leaf) contractionorder.Tree {
	if len(tree.Merges) < 2 {
		return tree
	}
	u := &unrooted{leaves: tree.Leaves, neighbours: make([][]int, tree.Leaves+len(tree.Merges)), price: price}
	u.hosted = make([]float64, len(u.neighbours))
	for k := range tree.Leaves {
		u.hosted[k] = float64(len(leaves[k].hosted))
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

func (u *unrooted) join(a, b int) {
	u.neighbours[a] = append(u.neighbours[a], b)
	u.neighbours[b] = append(u.neighbours[b], a)
}

// best returns the edge with the least cost of both its sides. The edge from is one of the tree.
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
			rest := above // of what is beyond table, seen from child
			for _, other := range u.neighbours[table] {
				if other != parent && other != child {
					s := sides[[2]int{other, table}]
					rest = side{rest.hosted + s.hosted, rest.cost + s.cost}
				}
			}
			rest.cost += u.price[table] * rest.hosted
			if cost := rest.cost + sides[[2]int{child, table}].cost; cost < least {
				best, least = [2]int{child, table}, cost
			}
			descend(child, table, rest)
		}
	}
	descend(from[0], from[1], below[1])
	descend(from[1], from[0], below[0])
	return best
}

// side computes the side of a table, seen from a neighbour, and all sides within.
func (u *unrooted) side(table, from int, sides map[[2]int]side) side {
	s := side{hosted: u.hosted[table]}
	for _, next := range u.neighbours[table] {
		if next != from {
			below := u.side(next, table, sides)
			s.hosted += below.hosted
			s.cost += below.cost
		}
	}
	if table >= u.leaves {
		s.cost += u.price[table] * s.hosted
	}
	sides[[2]int{table, from}] = s
	return s
}

// rooting lists the merges of an unrooted tree towards a root.
type rooting struct {
	*unrooted
	tree contractionorder.Tree
}

// add lists the merges of a table's side, seen from a neighbour, and returns the number of the table in the list.
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

func (r *rooting) merge(left, right int) int {
	r.tree.Merges = append(r.tree.Merges, [2]int{left, right})
	return r.leaves + len(r.tree.Merges) - 1
}
