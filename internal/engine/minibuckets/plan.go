// Package minibuckets bounds a sum of products of tables that are at least 0 from above and from below, within a limit on the size of a
// table, and draws states whose weights are bounded by the upper bound: weighted mini-buckets.
//
// Indices are eliminated one by one. Where the tables of an index do not fit together they are divided into mini-buckets f_r, and the sum
// over the index is bounded by Hölder's inequality: Σ_x Π_r f_r(x) ≤ Π_r (Σ_x f_r(x)^{1/w_r})^{w_r} for weights above 0 that add up to 1;
// the inequality is reversed where one is above 1 and all others are below 0. Dechter and Rish, Mini-buckets, 2003; Liu and Ihler,
// Bounding the partition function using Hölder's inequality, 2011; Liu, Fisher, Ihler, Probabilistic variational bounds for graphical
// models, 2015.
package minibuckets

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Plan is a division of the tables of every index into mini-buckets. It depends only on the shape, and serves any tables of this shape.
type Plan struct {
	Order []int
	// Flops is the time of Run, in flops at 3e9 a second, measured on complete models of 40 spins. Matching is the additional time for a
	// bound from above. Bytes is the memory of all messages and shifts.
	Flops, Matching, Bytes float64
	// Split is the number of indices with more than one mini-bucket. If it is 0, both bounds are Z.
	Split int
	// Draw is about the time of a draw in flops.
	Draw float64
	// Maximal has, by index, whether Run maximises over it, for a bound from above without draws; nil: over none.
	Maximal []bool

	dims    []int
	buckets [][]mini // by position in the order
	moves   [][]move // by position in the order
}

// drawWork is the work of a draw per table and value, flops. Chosen: about ten nanoseconds.
const drawWork = 30

// moveWork is the work of matching per entry of a product, flops. Measured.
const moveWork = 60

// mini is a mini-bucket of an index.
type mini struct {
	tables []int // that are multiplied
	scope  []int // of the product, the index itself last
}

// move is an exchange of functions between some mini-buckets of an index, by match.
type move struct {
	between []int // the mini-buckets
	shared  []int // the indices that all of them have, of which the functions are; the index itself last
}

// maxMoves is the largest number of earlier mini-buckets with which a mini-bucket exchanges functions pairwise. Chosen.
const maxMoves = 16

// listMoves returns a move between every two mini-buckets that share more indices than all do, and as the last one a move between all. last
// is scratch space by index, −1 before and after.
func listMoves(minis []mini, last []int) (list []move) {
	common := minis[0].scope
	for _, m := range minis[1:] {
		common = intersect(common, m.scope)
	}
	all := []int{0}
	for r := 1; r < len(minis); r++ {
		all = append(all, r)
		for _, j := range minis[r].scope {
			last[j] = r
		}
		for q, n := 0, 0; q < r && n < maxMoves; q++ {
			shared := 0
			for _, j := range minis[q].scope {
				if last[j] == r {
					shared++
				}
			}
			if shared > len(common) {
				list = append(list, move{[]int{q, r}, intersect(minis[q].scope, minis[r].scope)})
				n++
			}
		}
	}
	for _, m := range minis {
		for _, j := range m.scope {
			last[j] = -1
		}
	}
	return append(list, move{all, common})
}

// sweeps returns how often a list of moves is made: twice, or once if the only move is that between all, after which nothing is left to do.
// Measured: of a three-dimensional glass of 6³ spins, the second takes 7 nats off where products have 256 entries and 3 where they
// have 65,536, for half of the time in addition; 4 times larger products take 3 to 6 off for 2 to 3 times the time.
func sweeps(list []move) int { return min(len(list), 2) }

// intersect returns the indices of a that are in b, too.
func intersect(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(j int) bool { return !slices.Contains(b, j) })
}

// message is a table of the expression, or one that Run will make.
type message struct {
	scope   []int
	entries float64
	bits    uint64 // bit j mod 64 is set for the indices j of several values
}

// NewPlan divides the tables of every index into mini-buckets, along an order that has every index of several values that is in a table. No
// product has more entries than the limit, unless a single table of the expression has. The tables of an index are taken in the order
// of their sizes, the largest first, and each goes where it adds the fewest entries. Errors: fault.BadInput for an order that lacks an
// index, has one twice, or has one out of range. Cost: the sum over indices of the square of their tables, times their scopes.
func NewPlan(h contractionorder.Hypergraph, order []int, limit float64) (*Plan, error) {
	position := make([]int, len(h.Dims))
	for i := range position {
		position[i] = -1
	}
	for k, i := range order {
		if i < 0 || i >= len(h.Dims) || position[i] >= 0 {
			return nil, fault.New(fault.BadInput, "minibuckets: the order has index %d of %d twice or out of range", i, len(h.Dims))
		}
		position[i] = k
	}
	for _, e := range h.Edges {
		for _, i := range e {
			if position[i] < 0 && h.Dims[i] > 1 {
				return nil, fault.New(fault.BadInput, "minibuckets: the order lacks index %d", i)
			}
		}
	}
	order = slices.Clone(order)
	for i := range position { // indices of no table or of one value
		if position[i] < 0 {
			position[i] = len(order)
			order = append(order, i)
		}
	}

	p := &Plan{Order: order, dims: h.Dims, buckets: make([][]mini, len(order)), moves: make([][]move, len(order))}
	tables := make([]message, 0, len(h.Edges))
	last := slices.Repeat([]int{-1}, len(h.Dims))
	bucket := make([][]int, len(order)) // tables by the first of their indices to be eliminated
	add := func(scope []int) {
		m := message{scope: scope, entries: 1}
		first := len(order)
		for _, i := range scope {
			m.entries *= float64(h.Dims[i])
			m.bits |= bit(i, h.Dims)
			first = min(first, position[i])
		}
		if first < len(order) {
			bucket[first] = append(bucket[first], len(tables))
		}
		tables = append(tables, m)
	}
	for _, e := range h.Edges {
		add(e)
	}
	for k, i := range order {
		slices.SortStableFunc(bucket[k], func(a, b int) int { return cmp.Compare(tables[b].entries, tables[a].entries) })
		var minis []mini
		var sizes []float64
		var bits []uint64
		for _, t := range bucket[k] {
			best, fewest := -1, math.Inf(1)
			for r := range minis {
				if 2*sizes[r] > limit && tables[t].bits&^bits[r] != 0 {
					continue // it is full, and the table has another index
				}
				size := unionSize(minis[r].scope, tables[t].scope, h.Dims)
				if added := size - sizes[r]; size <= max(limit, sizes[r]) && added < fewest {
					best, fewest = r, added
				}
			}
			if best < 0 {
				best = len(minis)
				minis, sizes, bits = append(minis, mini{}), append(sizes, 1), append(bits, 0)
			}
			m := &minis[best]
			bits[best] |= tables[t].bits
			m.tables = append(m.tables, t)
			for _, j := range tables[t].scope {
				if !slices.Contains(m.scope, j) {
					m.scope = append(m.scope, j)
					sizes[best] *= float64(h.Dims[j])
				}
			}
		}
		for r := range minis {
			m := &minis[r]
			m.scope = append(slices.DeleteFunc(m.scope, func(j int) bool { return j == i }), i)
			add(m.scope[:len(m.scope)-1])
			p.Flops += sizes[r] * float64(60+6*len(m.tables))
			p.Bytes += 8 * sizes[r] / float64(h.Dims[i])
		}
		if len(minis) > 1 {
			p.Split++
			p.moves[k] = listMoves(minis, last)
			for _, m := range p.moves[k] {
				for _, r := range m.between {
					p.Matching += moveWork * sizes[r] * float64(sweeps(p.moves[k]))
				}
				p.Bytes += 8 * float64(sumproduct.Size(h.Dims, m.shared)*len(m.between))
			}
		}
		p.buckets[k] = minis
	}
	p.Draw = p.DrawWork(0)
	return p, nil
}

// bit returns the bit that stands for index i in message.bits; 0 if the index has only one value.
func bit(i int, dims []int) uint64 {
	if dims[i] < 2 {
		return 0
	}
	return 1 << (i % 64)
}

// DrawWork estimates the time, in flops, of drawing the indices at the positions ≥ from of the order.
func (p *Plan) DrawWork(from int) (flops float64) {
	for k, minis := range p.buckets[from:] {
		d := float64(p.dims[p.Order[from+k]])
		for r := range minis {
			flops += d * drawWork * float64(2+len(minis[r].tables))
		}
		for _, m := range p.moves[from+k] {
			flops += d * drawWork * float64(len(m.between))
		}
	}
	return flops
}

// unionSize returns the number of entries of a table over the union of two scopes.
func unionSize(a, b, dims []int) float64 {
	n := 1.0
	for _, i := range a {
		n *= float64(dims[i])
	}
	for _, i := range b {
		if !slices.Contains(a, i) {
			n *= float64(dims[i])
		}
	}
	return n
}
