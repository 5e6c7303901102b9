// Package contractionorder plans exact contraction: elimination orders of the hypergraph of a
// tensor network, contraction trees, the indices to slice where a table exceeds the memory budget,
// and their costs. It looks at shapes only, never at entries.
//
// An order is carried out in steps (Walk): all tables with an index are multiplied before the next
// index is looked at. In a tree, tensors are the leaves, and an index is summed at the node where
// its last tensor joins. Indices may be in any number of tensors. FromOrder gives the tree of an
// order.
//
// All work is counted in moves, the elementary operations of the search of about a nanosecond each, and
// never in seconds. Decisions depend on integers and on sums, products and square roots of float64
// only, so that a seed gives the same plan on every machine.
//
// Sources: R. Dechter, Bucket elimination, Artificial Intelligence 113 (1999); U. Kjærulff,
// Triangulation of graphs (1990), for the greedy orders; J. Gray and S. Kourtis, Hyper-optimized
// tensor network contraction, Quantum 5 (2021) 410 (random greedy, recursive bisection, subtree
// reconfiguration, slicing); G. Kalachev, P. Panteleev and M.-H. Yung, Multi-tensor contraction for
// XEB verification of quantum circuits, arXiv:2108.05665 (annealing by local rotations).
package contractionorder

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Hypergraph is the shape of a tensor network without free indices: the dimensions of its indices, and one edge per tensor, which lists the
// indices of the tensor. An index of dimension 1 costs nothing and is in no order.
type Hypergraph struct {
	Dims  []int   // Dims[i] ≥ 1 is the dimension of index i
	Edges [][]int // Edges[t] is the scope of tensor t, without repetition
}

// Equal reports whether two shapes are the same, index by index and scope by scope.
func (h Hypergraph) Equal(other Hypergraph) bool {
	return slices.Equal(h.Dims, other.Dims) && slices.EqualFunc(h.Edges, other.Edges, slices.Equal[[]int])
}

// Digest adds the shape to a digest: the dimensions, then the scope of every tensor.
func (h Hypergraph) Digest(b *digest.Builder) {
	b.Ints(h.Dims)
	for _, edge := range h.Edges {
		b.Ints(edge)
	}
}

// RestrictOrder returns order without indices of dimension 1, indices that do not exist and repetitions. At the end it adds all other
// indices of h with a dimension above 1, ascending. It carries the order of a model over to the same model with evidence, in which
// observed indices have dimension 1. Linear time.
func RestrictOrder(order []int, h Hypergraph) []int {
	isListed := make([]bool, len(h.Dims))
	restricted := make([]int, 0, len(order))
	for _, v := range order {
		if v >= 0 && v < len(h.Dims) && !isListed[v] && h.Dims[v] > 1 {
			isListed[v] = true
			restricted = append(restricted, v)
		}
	}

	for v, d := range h.Dims {
		if d > 1 && !isListed[v] {
			restricted = append(restricted, v)
		}
	}
	return restricted
}

// Validate returns an error (ErrTree, fault.BadInput) if a dimension is below 1 or if an edge names an index twice or an index that does
// not exist.
func (h Hypergraph) Validate() error {
	for v, d := range h.Dims {
		if d < 1 {
			return fault.New(fault.BadInput, "%w: index %d has dimension %d", ErrTree, v, d)
		}
	}
	lastEdge := make([]int, len(h.Dims)) // by index: i+1 if edge i is the last one so far that names it; 0 if none does
	for i, e := range h.Edges {
		for _, v := range e {
			if v < 0 || v >= len(h.Dims) || lastEdge[v] == i+1 {
				return fault.New(fault.BadInput,
					"%w: tensor %d names index %d, which does not exist or is named "+
						"twice", ErrTree, i, v)
			}
			lastEdge[v] = i + 1
		}
	}
	return nil
}
