// Package trees contracts an expression approximately along a tree of dense tensors with
// truncated wires: exact where no wire is larger than the bond, and otherwise the Frobenius-optimal
// replacement of one wire after the other.
//
// Sources: J. Gray and G. K.-L. Chan, Hyperoptimized approximate contraction of tensor
// networks with arbitrary geometry, Phys. Rev. X 14 (2024) 011009, arXiv:2206.07044.
package trees

// Plan: what is contracted with what.

import (
	"errors"

	"github.com/basetensor/basetensor/pkg/fault"
)

// ErrPlan is wrapped by the errors of plans that contradict
// themselves or the expression they are used with.
var ErrPlan = errors.New("trees: invalid plan")

// Plan is a network of tensors joined by wires and the sequence of its merges. Nodes are numbered:
// the tables of the expression, then one copy tensor δ(i, j, k) per entry of Copies, then the
// results of the merges. It depends on the scopes of an expression only, and fits others whose
// dimensions are smaller; an index of dimension 1 may be missing from scopes that had it.
//
// A copy tensor two of whose wires lead to the two nodes of a merge, or to its result,
// takes part in the merge and is gone: an index of both that is still needed costs nothing extra.
type Plan struct {
	Tables int      // of the expression
	Hosts  []int    // by table: the table it is multiplied into, for tables of one index; −1
	Copies []int    // by copy tensor: its index
	Wires  [][3]int // index, node, node; −1 for the second node of an index that one table has
	Merges [][2]int // every connected part ends as one node without wires
}

func planError(format string, args ...any) error {
	return fault.New(fault.BadInput, "%w: "+format, append([]any{ErrPlan}, args...)...)
}
