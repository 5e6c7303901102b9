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

// Plan says how an expression is swept. It depends on shapes only.
type Plan struct {
	Order    []int // the indices of dimension above 1 in the sequence in which they are summed out
	Position []int // by index: its rank in the chain, distinct for the indices of Order; −1 elsewhere
}

// Restrict returns p without the indices of dimension 1: the plan of an expression under a mask.
func (p Plan) Restrict(dims []int) Plan {
	out := Plan{Position: slices.Repeat([]int{-1}, len(dims))}
	for _, i := range p.Order {
		if i >= 0 && i < min(len(dims), len(p.Position)) && dims[i] > 1 {
			out.Order = append(out.Order, i)
			out.Position[i] = p.Position[i]
		}
	}
	return out
}

// positions inverts a chain of n indices.
func positions(chain []int, n int) []int {
	p := slices.Repeat([]int{-1}, n)
	for k, i := range chain {
		p[i] = k
	}
	return p
}

// check says whether p is a plan for h.
func (p Plan) check(h contractionorder.Hypergraph) error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Internal, "%w: %s", ErrPlan, fmt.Sprintf(format, args...))
	}
	if len(p.Position) != len(h.Dims) {
		return bad("%d positions for %d indices", len(p.Position), len(h.Dims))
	}
	if want := len(contractionorder.Restrict(nil, h)); len(p.Order) != want {
		return bad("an order of %d indices, the expression has %d of dimension above 1", len(p.Order), want)
	}
	seen := make([]bool, len(h.Dims))
	places := make(map[int]int, len(p.Order))
	for _, i := range p.Order {
		if i < 0 || i >= len(seen) || h.Dims[i] == 1 || seen[i] {
			return bad("index %d in the order is out of range, of dimension 1, or twice", i)
		}
		seen[i] = true
		if j, taken := places[p.Position[i]]; taken || p.Position[i] < 0 {
			return bad("indices %d and %d have place %d", i, j, p.Position[i])
		}
		places[p.Position[i]] = i
	}
	return nil
}

// others lists the indices of a scope of dimension above 1 other than i.
func others(dims, scope []int, i int) []int {
	out := make([]int, 0, len(scope))
	for _, j := range scope {
		if j != i && dims[j] > 1 {
			out = append(out, j)
		}
	}
	return out
}

// step multiplies tables into the state. All of them have index; their other indices are in the chain, or join it first.
type step struct {
	index  int
	tables []int
	enter  []int // indices that join the chain, by place; index among them if it is new
	last   bool  // index is summed out
}

// growth bounds the factor by which one step may multiply a bond, unless one table alone exceeds it.
const growth = 16

// schedule lists the steps of p on h. Tables of one or two indices go together: their operator has the bond of index. Larger ones join
// them while the operator's bond stays within growth.
func schedule(h contractionorder.Hypergraph, p Plan) (steps []step) {
	at := make([][]int, len(h.Dims)) // tables by index
	for t, e := range h.Edges {
		for _, i := range e {
			at[i] = append(at[i], t)
		}
	}
	used, in := make([]bool, len(h.Edges)), make([]bool, len(h.Dims))
	for _, i := range p.Order {
		var small, large []int
		for _, t := range at[i] {
			switch {
			case used[t]:
			case len(others(h.Dims, h.Edges[t], i)) <= 1:
				small = append(small, t)
			default:
				large = append(large, t)
			}
			used[t] = true
		}
		groups := group(h, p, i, small, large)
		for g, tables := range groups {
			s := step{index: i, tables: tables, last: g == len(groups)-1}
			enter := func(j int) {
				if !in[j] {
					in[j] = true
					s.enter = append(s.enter, j)
				}
			}
			enter(i)
			for _, t := range tables {
				for _, j := range others(h.Dims, h.Edges[t], i) {
					enter(j)
				}
			}
			slices.SortFunc(s.enter, func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
			steps = append(steps, s)
		}
	}
	return steps
}

// group splits the tables of i into those that are multiplied in together.
func group(h contractionorder.Hypergraph, p Plan, i int, small, large []int) (groups [][]int) {
	limit := max(float64(growth), float64(h.Dims[i]))
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

// operatorBond is the largest bond of the operator of some tables of i.
func operatorBond(h contractionorder.Hypergraph, p Plan, i int, tables []int) float64 {
	top := float64(h.Dims[i])
	for _, t := range tables {
		for _, j := range others(h.Dims, h.Edges[t], i) { // a bond's size changes at places of the tables' indices only
			bond := float64(h.Dims[i])
			for _, u := range tables {
				bond *= crossing(h, p, u, i, p.Position[j])
			}
			top = max(top, bond)
		}
	}
	return top
}

// crossing bounds the rank of table t, at a fixed value of i, between the places up to and beyond a place.
func crossing(h contractionorder.Hypergraph, p Plan, t, i, place int) float64 {
	left, right := 1.0, 1.0
	for _, j := range h.Edges[t] {
		switch {
		case j == i:
		case p.Position[j] <= place:
			left *= float64(h.Dims[j])
		default:
			right *= float64(h.Dims[j])
		}
	}
	return min(left, right, hugeBond)
}
