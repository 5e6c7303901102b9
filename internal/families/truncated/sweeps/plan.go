package sweeps

// Plans: the order in which indices are summed out, and their places in the chain.

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Plan says how an expression is swept. It depends on shapes only.
type Plan struct {
	Order []int // the indices of dimension above 1 in the sequence in which they are summed out
	// Position is, by index, its rank in the chain,
	// distinct for the indices of Order; −1 elsewhere.
	Position []int
}

// Restrict returns the plan over h that agrees with p: indices that h still has keep their sequence
// and their places relative to each other, those that are gone are left out, and those that p does
// not know (hidden indices of stars and chains above all) are placed beside the neighbour that is
// summed out first, in the chain and in the order just before it.
// Deterministic. Time: that of sorting,
// and one pass over the edges per unknown index and neighbour.
func (p Plan) Restrict(h contractionorder.Hypergraph) Plan {
	n := len(h.Dims)
	rank := make([]int, n) // in the order
	for i := range rank {
		rank[i] = -1
	}

	var order, chain []int
	for _, i := range p.Order {
		if i >= 0 && i < n && h.Dims[i] > 1 && rank[i] < 0 && i < len(p.Position) &&
			p.Position[i] >= 0 {
			rank[i] = len(order)
			order = append(order, i)
		}
	}

	chain = slices.Clone(order)
	slices.SortStableFunc(chain,
		func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
	if len(order) < count(h.Dims) {
		order, chain = adopt(h, rank, order, chain)
	}
	return Plan{Order: order, Position: positions(chain, n)}
}

// adopt places the indices that rank does not know, in rounds: those with a known neighbour first.
func adopt(h contractionorder.Hypergraph, rank, order, chain []int) ([]int, []int) {
	near := neighbours(h)
	for {
		host := map[int][]int{} // by known index: unknown ones, ascending
		for i, d := range h.Dims {
			if d == 1 || rank[i] >= 0 {
				continue
			}
			best := -1
			for _, j := range near[i] {
				if rank[j] >= 0 && (best < 0 || rank[j] < rank[best]) {
					best = j
				}
			}
			if best >= 0 {
				host[best] = append(host[best], i)
			}
		}

		if len(host) == 0 {
			break
		}
		order = insertBeside(order, host)
		chain = insertBeside(chain, host)
		for k, i := range order {
			rank[i] = k
		}
	}

	for i, d := range h.Dims {
		if d > 1 && rank[i] < 0 {
			order = append(order, i)
			chain = append(chain, i)
		}
	}
	return order, chain
}

// insertBeside puts what every index of a list hosts just before it.
func insertBeside(list []int, host map[int][]int) []int {
	var out []int
	for _, i := range list {
		out = append(append(out, host[i]...), i)
	}
	return out
}

// neighbours lists, for every index of dimension above 1,
// the others that some edge shares with it, ascending.
func neighbours(h contractionorder.Hypergraph) [][]int {
	near := make([][]int, len(h.Dims))
	for _, e := range h.Edges {
		for _, i := range e {
			for _, j := range e {
				if i != j && h.Dims[i] > 1 && h.Dims[j] > 1 {
					near[i] = append(near[i], j)
				}
			}
		}
	}
	for i := range near {
		slices.Sort(near[i])
		near[i] = slices.Compact(near[i])
	}
	return near
}

// count is the number of indices of dimension above 1.
func count(dims []int) int {
	n := 0
	for _, d := range dims {
		if d > 1 {
			n++
		}
	}
	return n
}

// positions inverts a chain of n indices.
func positions(chain []int, n int) []int {
	p := make([]int, n)
	for i := range p {
		p[i] = -1
	}
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
	if want := count(h.Dims); len(p.Order) != want {
		return bad("an order of %d indices, the expression has %d of dimension above 1",
			len(p.Order), want)
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
