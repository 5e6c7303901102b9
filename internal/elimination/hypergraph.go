// Package elimination plans exact contraction: elimination orders of the hypergraph of a tensor network, the pairwise
// steps an order stands for, and what they cost. It looks at shapes only, never at entries.
//
// Source: R. Dechter, Bucket elimination, Artificial Intelligence 113 (1999); the orders are the greedy ones of
// U. Kjærulff, Triangulation of graphs (1990).
package elimination

// Hypergraph is the shape of a tensor network without free indices: indices with their dimensions, and one edge, the
// list of its indices, per tensor. An index of dimension 1 costs nothing and takes no part in orders.
type Hypergraph struct {
	Dims  []int   // Dims[i] ≥ 1 is the dimension of index i
	Edges [][]int // Edges[t] is the scope of tensor t, without repetition
}

// Restrict returns the order over h that agrees with order: indices that h has with dimension above 1, in the
// sequence of order, each once; those that order does not name follow by number. It carries the order of a model over
// to the same model with evidence, where observed indices have dimension 1. Linear time.
func Restrict(order []int, h Hypergraph) []int {
	seen := make([]bool, len(h.Dims))
	out := make([]int, 0, len(order))
	for _, v := range order {
		if v >= 0 && v < len(h.Dims) && !seen[v] && h.Dims[v] > 1 {
			seen[v] = true
			out = append(out, v)
		}
	}
	for v, d := range h.Dims {
		if d > 1 && !seen[v] {
			out = append(out, v)
		}
	}
	return out
}
