package sweeps

// The steps that a plan stands for.
// They depend on shapes only, so that what they cost is known before any work.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
)

// step multiplies tables into the state.
// All of them have index; their other indices are in the chain, or join it first.
type step struct {
	index  int
	tables []int
	enter  []int // indices that join the chain, by place; index among them if it is new
	last   bool  // index is summed out
}

// growth bounds the factor by which one step may multiply a bond,
// unless one table alone exceeds it.
const growth = 16

// schedule lists the steps of p on h. Tables of one or two indices go together: their operator
// has the bond of index. Larger ones join them while the operator's bond stays within growth.
func schedule(h contractionorder.Hypergraph, p Plan) []step {
	at := make([][]int, len(h.Dims)) // tables by index
	for t, e := range h.Edges {
		for _, i := range e {
			at[i] = append(at[i], t)
		}
	}

	used := make([]bool, len(h.Edges))
	in := make([]bool, len(h.Dims))

	var steps []step
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
			slices.SortFunc(s.enter,
				func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
			steps = append(steps, s)
		}
	}
	return steps
}

// group splits the tables of i into those that are multiplied in together.
func group(h contractionorder.Hypergraph, p Plan, i int, small, large []int) [][]int {
	limit := max(float64(growth), float64(h.Dims[i]))
	var groups [][]int
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
		// a bond's size changes at places of the tables' indices only
		for _, j := range others(h.Dims, h.Edges[t], i) {
			bond := float64(h.Dims[i])
			for _, u := range tables {
				bond *= crossing(h, p, u, i, p.Position[j])
			}
			top = max(top, bond)
		}
	}
	return top
}

// crossing bounds the rank of table t, at a fixed value of i,
// between the places up to and beyond a place.
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
