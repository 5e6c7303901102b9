package sweeps

// Plans: the order in which indices are summed out, their places in the chain, and the steps of a sweep, which depend on shapes only, so
// that the cost is known before any work.

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// ErrPlan is wrapped by the errors of plans that do not fit their expression.
var ErrPlan = errors.New("sweeps: invalid plan")

// Plan states how an expression is swept. It depends on shapes only.
type Plan struct {
	Order    []int // the indices of dimension above 1 in the sequence in which they are summed out
	Position []int // by index: its place in the chain, distinct for the indices of Order; −1 for all other indices
}

// Restrict returns p without the indices whose dimension in dims is 1: the plan of the same expression under a mask. A mask is evidence as
// weights of the values of indices; an index with one value left gets dimension 1.
func (p Plan) Restrict(dims []int) Plan {
	restricted := Plan{Position: slices.Repeat([]int{-1}, len(dims))}
	for _, i := range p.Order {
		isInRange := i >= 0 && i < min(len(dims), len(p.Position))
		if isInRange && dims[i] > 1 {
			restricted.Order = append(restricted.Order, i)
			restricted.Position[i] = p.Position[i]
		}
	}
	return restricted
}

// positions returns for each index below n its place in a sequence of indices, or −1 if it is not there.
func positions(sequence []int, n int) []int {
	places := slices.Repeat([]int{-1}, n)
	for k, i := range sequence {
		places[i] = k
	}
	return places
}

// check returns ErrPlan if p is no plan for h: its order has to have every index of dimension above 1 once, each with a position of its own
// that is not negative.
func (p Plan) check(h contractionorder.Hypergraph) error {
	planError := func(format string, args ...any) error {
		return fault.New(fault.Internal, "%w: %s", ErrPlan, fmt.Sprintf(format, args...))
	}
	if len(p.Position) != len(h.Dims) {
		return planError("%d positions for %d indices", len(p.Position), len(h.Dims))
	}
	// RestrictOrder adds the indices of dimension above 1 that an order lacks: for no order, all of them.
	if n := len(contractionorder.RestrictOrder(nil, h)); len(p.Order) != n {
		return planError("an order of %d indices, the expression has %d of dimension above 1", len(p.Order), n)
	}
	isInOrder := make([]bool, len(h.Dims))
	indexAt := make(map[int]int, len(p.Order)) // by position
	for _, i := range p.Order {
		if i < 0 || i >= len(isInOrder) || h.Dims[i] == 1 || isInOrder[i] {
			return planError("index %d in the order is out of range, of dimension 1, or twice", i)
		}
		isInOrder[i] = true
		position := p.Position[i]
		if position < 0 {
			return planError("index %d in the order has place %d", i, position)
		}
		if j, isTaken := indexAt[position]; isTaken {
			return planError("indices %d and %d have place %d", i, j, position)
		}
		indexAt[position] = i
	}
	return nil
}

// otherIndices returns the indices of a scope that are not i and have a dimension above 1, in their sequence, in a new list.
func otherIndices(dims, scope []int, i int) []int {
	indices := make([]int, 0, len(scope))
	for _, j := range scope {
		if j != i && dims[j] > 1 {
			indices = append(indices, j)
		}
	}
	return indices
}

// step multiplies some tables of one index into the state. An index has one step or more, one after the other.
type step struct {
	index  int
	tables []int // all of them have the index
	enter  []int // the indices of the tables that enter the chain before the step, by position; the step's index among them if it is new
	isLast bool  // it is the last step of the index, which is summed out then
}

// maxGrowth bounds the factor by which one step may multiply a bond. It may be exceeded by one table, or by the dimension of the index.
const maxGrowth = 16

// scheduleSteps returns the steps of plan p. The steps of an index multiply in its tables that no earlier step has multiplied in; new
// indices of the tables enter the chain before. All tables of one or two indices are in one step, since the bond of their operator is the
// dimension of the index. Larger tables are in the same step as long as the operator's bond stays within maxGrowth.
func scheduleSteps(h contractionorder.Hypergraph, p Plan) (steps []step) {
	tablesOf := make([][]int, len(h.Dims)) // by index
	for t, e := range h.Edges {
		for _, i := range e {
			tablesOf[i] = append(tablesOf[i], t)
		}
	}
	isUsed, isInChain := make([]bool, len(h.Edges)), make([]bool, len(h.Dims))
	for _, i := range p.Order {
		// Divide the tables of the index that no earlier step has used into small ones, of one or two indices, and large ones.
		var small, large []int
		for _, t := range tablesOf[i] {
			switch {
			case isUsed[t]:
			case len(otherIndices(h.Dims, h.Edges[t], i)) <= 1:
				small = append(small, t)
			default:
				large = append(large, t)
			}
			isUsed[t] = true
		}

		groups := groupTables(h, p, i, small, large) // each is a step
		for g, tables := range groups {
			isLast := g == len(groups)-1
			steps = append(steps, step{index: i, tables: tables, isLast: isLast, enter: enteringIndices(h, p, i, tables, isInChain)})
		}
	}
	return steps
}

// enteringIndices returns the indices of some tables of index i, and i itself, that are not in the chain yet, by position. It marks them as
// in the chain.
func enteringIndices(h contractionorder.Hypergraph, p Plan, i int, tables []int, isInChain []bool) (enter []int) {
	add := func(j int) {
		if !isInChain[j] {
			isInChain[j] = true
			enter = append(enter, j)
		}
	}
	add(i)
	for _, t := range tables {
		for _, j := range otherIndices(h.Dims, h.Edges[t], i) {
			add(j)
		}
	}
	slices.SortFunc(enter, func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
	return enter
}

// groupTables divides the tables of index i into groups, each of which one step multiplies into the chain by an operator. small are the
// tables of one or two indices, large all others. The first group begins with all small tables. A large table joins the present group if
// the bond of the operator stays within maxGrowth, and begins a new one otherwise. There is at least one group, which is empty if there are
// no tables.
func groupTables(h contractionorder.Hypergraph, p Plan, i int, small, large []int) (groups [][]int) {
	limit := max(float64(maxGrowth), float64(h.Dims[i]))
	current := small
	for _, t := range large {
		joined := append(slices.Clone(current), t)
		if len(current) > 0 && operatorBond(h, p, i, joined) > limit {
			groups = append(groups, current)
			joined = []int{t}
		}
		current = joined
	}
	return append(groups, current)
}

// operatorBond returns an upper bound of the largest bond of the operator that multiplies in some tables of index i. A bond has, for each
// value of i, the product of the ranks of the tables that cross it.
func operatorBond(h contractionorder.Hypergraph, p Plan, i int, tables []int) float64 {
	// Bonds change only at positions of the tables' indices.
	largest := float64(h.Dims[i])
	for _, t := range tables {
		for _, j := range otherIndices(h.Dims, h.Edges[t], i) {
			bond := float64(h.Dims[i])
			for _, u := range tables {
				bond *= rankBound(h, p, u, i, p.Position[j])
			}
			largest = max(largest, bond)
		}
	}
	return largest
}

// rankBound returns an upper bound of the rank of table t at a fixed value of index i. The table is taken as a matrix: its other indices up
// to a position in the chain are the rows, those beyond it the columns. The bound is the smaller number of rows or columns, at most
// hugeBond. An index that is not in the plan has dimension 1.
func rankBound(h contractionorder.Hypergraph, p Plan, t, i, position int) float64 {
	left, right := 1.0, 1.0 // rows and columns
	for _, j := range h.Edges[t] {
		switch {
		case j == i:
		case p.Position[j] <= position:
			left *= float64(h.Dims[j])
		default:
			right *= float64(h.Dims[j])
		}
	}
	return min(left, right, hugeBond)
}
