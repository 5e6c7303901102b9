package compiler

// The order that a contraction tree stands for.

import "github.com/basetensor/basetensor/internal/network/contractionorder"

// eliminated lists the indices of h in the order in which the merges of a tree sum them: when the last tensor with an index joins.
func eliminated(h contractionorder.Hypergraph, t contractionorder.Tree) []int {
	tensors := make([]int, len(h.Dims)) // by index: the number of its tensors
	tables := make([]map[int]int, t.Leaves+len(t.Merges))
	var order []int
	for i, scope := range h.Edges {
		tables[i] = map[int]int{}
		for _, v := range scope {
			tensors[v]++
			tables[i][v] = 1
		}
	}
	for k, m := range t.Merges {
		a, b := tables[m[0]], tables[m[1]]
		tables[m[0]], tables[m[1]] = nil, nil
		if len(a) < len(b) {
			a, b = b, a
		}
		for v, n := range b {
			a[v] += n
		}
		var done []int
		for v, n := range a {
			if n == tensors[v] {
				done = append(done, v)
				delete(a, v)
			}
		}
		order = append(order, distinct(done)...)
		tables[t.Leaves+k] = a
	}
	return order
}
