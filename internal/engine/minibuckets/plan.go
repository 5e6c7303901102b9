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

	dims    []int    // by index: the number of its values
	buckets [][]mini // by position in the order: the mini-buckets of the index
	moves   [][]move // by position in the order: the exchanges between its mini-buckets, in their sequence
}

// entryWork and tableWork are the work of Run per entry of a product, and per entry and table of the mini-bucket, flops. Measured (Plan).
const (
	entryWork = 60
	tableWork = 6
)

// drawWork is the work of a draw per table and value, flops. Chosen: about ten nanoseconds.
const drawWork = 30

// moveWork is the work of matching per entry of a product, flops. Measured.
const moveWork = 60

// mini is a mini-bucket of an index: some of its tables, which are multiplied.
type mini struct {
	tables []int // the numbers of the tables
	scope  []int // the indices of their product, the eliminated index last
}

// move is an exchange of functions between some mini-buckets of an index: each gets a factor, and the factors multiply to 1 (Bound.match).
type move struct {
	between []int // the mini-buckets
	shared  []int // the indices that all of them have, on which the factors depend; the eliminated index last
}

// maxMoves is the largest number of earlier mini-buckets with which a mini-bucket exchanges functions pairwise. Chosen.
const maxMoves = 16

// listMoves returns the moves between the mini-buckets of an index. There is a move between every two mini-buckets that share more indices
// than all have in common, but at most maxMoves between a mini-bucket and earlier ones. The last move is between all. lastMini is scratch
// space by index, −1 before and after. A mini-bucket is some of the tables of an index, which are multiplied.
func listMoves(minis []mini, lastMini []int) (moves []move) {
	common := minis[0].scope
	for _, m := range minis[1:] {
		common = intersect(common, m.scope)
	}

	everyMini := []int{0}
	for r := 1; r < len(minis); r++ {
		everyMini = append(everyMini, r)
		for _, j := range minis[r].scope {
			lastMini[j] = r
		}
		pairs := 0 // moves between r and an earlier mini-bucket
		for earlier := 0; earlier < r && pairs < maxMoves; earlier++ {
			sharedIndices := 0
			for _, j := range minis[earlier].scope {
				if lastMini[j] == r {
					sharedIndices++
				}
			}
			if sharedIndices > len(common) {
				moves = append(moves, move{between: []int{earlier, r}, shared: intersect(minis[earlier].scope, minis[r].scope)})
				pairs++
			}
		}
	}

	for _, m := range minis {
		for _, j := range m.scope {
			lastMini[j] = -1
		}
	}
	return append(moves, move{between: everyMini, shared: common})
}

// sweeps returns how often Run goes through the moves of an index: twice, or once if the only move is that between all, which a second one
// would not change.
// Measured: of a three-dimensional glass of 6³ spins, the second takes 7 nats off where products have 256 entries and 3 where they
// have 65,536, for half of the time in addition; 4 times larger products take 3 to 6 off for 2 to 3 times the time.
func sweeps(list []move) int { return min(len(list), 2) }

// intersect returns the indices of a that are in b, too.
func intersect(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(j int) bool { return !slices.Contains(b, j) })
}

// NewPlan divides the tables of every index into mini-buckets, along an order that has every index of several values that is in a table. No
// product has more entries than the limit, unless a single table of the expression has. The tables of an index are taken in the order
// of their sizes, the largest first, and each goes where it adds the fewest entries. Errors: fault.BadInput for an order that lacks an
// index, has one twice, or has one out of range. Cost: the sum over indices of the square of their tables, times their scopes.
func NewPlan(h contractionorder.Hypergraph, order []int, limit float64) (*Plan, error) {
	order, position, err := completeOrder(h, order)
	if err != nil {
		return nil, err
	}
	p := &Plan{Order: order, dims: h.Dims, buckets: make([][]mini, len(order)), moves: make([][]move, len(order))}
	b := &planning{dims: h.Dims, position: position, buckets: make([][]int, len(order))}
	for _, scope := range h.Edges {
		b.addTable(scope)
	}
	lastMini := slices.Repeat([]int{-1}, len(h.Dims)) // scratch of listMoves
	for k, i := range order {
		minis, sizes := b.divide(b.buckets[k], limit)

		// Messages, with the index itself summed out, and the price.
		for r := range minis {
			m := &minis[r]
			m.scope = append(slices.DeleteFunc(m.scope, func(j int) bool { return j == i }), i)
			b.addTable(m.scope[:len(m.scope)-1])
			p.Flops += sizes[r] * float64(entryWork+tableWork*len(m.tables))
			p.Bytes += 8 * sizes[r] / float64(h.Dims[i]) // of the message, in float64
		}
		if len(minis) > 1 {
			p.Split++
			p.moves[k] = listMoves(minis, lastMini)
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

// completeOrder returns a copy of an order with the indices appended that it lacks, and the position of every index in it. The errors are
// those of NewPlan: only indices of no table or of one value may be lacking.
func completeOrder(h contractionorder.Hypergraph, order []int) (complete, position []int, err error) {
	position = slices.Repeat([]int{-1}, len(h.Dims))
	for k, i := range order {
		if i < 0 || i >= len(h.Dims) || position[i] >= 0 {
			return nil, nil, fault.New(fault.BadInput, "minibuckets: the order has index %d of %d twice or out of range", i, len(h.Dims))
		}
		position[i] = k
	}
	for _, scope := range h.Edges {
		for _, i := range scope {
			if position[i] < 0 && h.Dims[i] > 1 {
				return nil, nil, fault.New(fault.BadInput, "minibuckets: the order lacks index %d", i)
			}
		}
	}
	complete = slices.Clone(order)
	// The indices that it lacks are in no table or have one value: any place will do.
	for i := range position {
		if position[i] < 0 {
			position[i] = len(complete)
			complete = append(complete, i)
		}
	}
	return complete, position, nil
}

// planning holds the tables of a plan in the making: those of the expression, then the messages.
type planning struct {
	dims     []int // by index: the number of its values
	position []int // by index: its position in the order
	tables   []plannedTable
	buckets  [][]int // by position in the order: the tables of which the index is the first to be eliminated
}

// plannedTable is a table of the expression, or a message that Run will make.
type plannedTable struct {
	scope   []int
	entries float64 // their number
	bits    uint64  // bit j mod 64 is set for each index j of several values
}

// addTable appends a table over scope to the tables, and to the bucket of that of its indices which is eliminated first.
func (b *planning) addTable(scope []int) {
	t := plannedTable{scope: scope, entries: 1}
	first := len(b.buckets)
	for _, i := range scope {
		t.entries *= float64(b.dims[i])
		t.bits |= bit(i, b.dims) // a quick test of common indices
		first = min(first, b.position[i])
	}
	if first < len(b.buckets) {
		b.buckets[first] = append(b.buckets[first], len(b.tables))
	}
	b.tables = append(b.tables, t)
}

// divide divides the tables of a bucket, which it sorts by size, into mini-buckets whose products have at most limit entries, or as many as
// their largest table. It also returns the number of entries of each product. The scopes are not in order yet. A table's bits have bit i
// mod 64 set for each of its indices i: a table with a bit that a mini-bucket lacks has an index that the mini-bucket lacks. A mini-bucket
// is some of the tables of an index, which are multiplied.
func (b *planning) divide(bucket []int, limit float64) (minis []mini, sizes []float64) {
	slices.SortStableFunc(bucket, func(s, t int) int { return cmp.Compare(b.tables[t].entries, b.tables[s].entries) })
	var bits []uint64 // by mini-bucket: the union of its tables' bits
	for _, t := range bucket {
		table := &b.tables[t]

		// The mini-bucket to which the table adds the fewest entries; a new one if it fits into none.
		best, fewest := -1, math.Inf(1)
		for r := range minis {
			hasOtherIndex := table.bits&^bits[r] != 0
			if 2*sizes[r] > limit && hasOtherIndex {
				continue // no index of two or more values fits any more
			}
			size := unionSize(minis[r].scope, table.scope, b.dims)
			if added := size - sizes[r]; size <= max(limit, sizes[r]) && added < fewest {
				best, fewest = r, added
			}
		}
		if best < 0 {
			best = len(minis)
			minis, sizes, bits = append(minis, mini{}), append(sizes, 1), append(bits, 0)
		}

		m := &minis[best]
		bits[best] |= table.bits
		m.tables = append(m.tables, t)
		for _, j := range table.scope {
			if !slices.Contains(m.scope, j) {
				m.scope = append(m.scope, j)
				sizes[best] *= float64(b.dims[j])
			}
		}
	}
	return minis, sizes
}

// bit returns the bit that stands for index i in plannedTable.bits; 0 if the index has only one value.
func bit(i int, dims []int) uint64 {
	if dims[i] < 2 {
		return 0
	}
	return 1 << (i % 64)
}

// DrawWork estimates the time, in flops, of drawing the indices at positions of the order from first on: for each value of an index,
// drawWork for each table, message and shift of its mini-buckets. A mini-bucket is some of the tables of an index, which are multiplied.
func (p *Plan) DrawWork(first int) (flops float64) {
	for k, minis := range p.buckets[first:] {
		d := float64(p.dims[p.Order[first+k]])
		for r := range minis {
			flops += d * drawWork * float64(2+len(minis[r].tables))
		}
		for _, m := range p.moves[first+k] {
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
