package contractionorder

// The optimal tree over a few tables, by dynamic programming over their subsets.

import (
	"math"
	"math/bits"
)

// maxOptimal is the largest number of tables of one optimal tree: 3^12/2 splits.
const maxOptimal = 12

// optimal finds the cheapest tree over k tables.
// An index counts by its pattern, the set of tables that have it. With
//
//	H(m)   log2 of the indices that some table of the subset m has
//	I(m)   log2 of the dimensions of the ones that no other table has, neither inside nor outside
//
// a merge of subsets a and b has a union of size H(a∪b) − I(a) − I(b) and a result of size H(a∪b) −
// I(a∪b), for all trees below. So every split is a lookup: 3^k/2 of them, and k·2^k for the tables
// H and I.
type optimal struct {
	k       int       // tables
	hit     []logs    // H(m)
	closed  []logs    // I(m)
	hitExp  []float64 // 2·2^(H − base), the multiplications and additions
	closExp []float64 // 2^−I
	cost    []float64 // of the optimal tree over a subset
	split   []uint16  // its first part
	moves   int64
}

// reset prepares for k tables without indices.
func (d *optimal) reset(k int) {
	n := 1 << k
	if cap(d.hit) < n {
		d.hit, d.closed = make([]logs, n), make([]logs, n)
		d.hitExp, d.closExp, d.cost = make([]float64, n), make([]float64, n), make([]float64, n)
		d.split = make([]uint16, n)
	}

	d.k = k
	d.hit, d.closed, d.split = d.hit[:n], d.closed[:n], d.split[:n]
	d.hitExp, d.closExp, d.cost = d.hitExp[:n], d.closExp[:n], d.cost[:n]

	clear(d.hit)
	clear(d.closed)
}

// add enters an index of the given log2 dimension
// that the tables in pattern have, and others if open.
func (d *optimal) add(pattern int, weight logs, open bool) {
	d.hit[pattern] += weight
	if !open {
		d.closed[pattern] += weight
	}
}

// solve finds the optimal tree, all costs relative to 2^base, and returns its cost.
func (d *optimal) solve(o *objective) (total float64, base logs) {
	d.transform()
	all := len(d.hit) - 1

	base = max(d.hit[all]-900*oneBit, 0)
	for m := 1; m <= all; m++ {
		d.hitExp[m] = 2 * pow2(d.hit[m]-base)
		d.closExp[m] = pow2(-d.closed[m])
	}

	for m := 1; m <= all; m++ {
		d.cost[m] = 0
		if m&(m-1) != 0 {
			d.bestSplit(o, m, base)
		}
	}
	return d.cost[all], base
}

// transform turns the weights by pattern into H and I: sums over the patterns inside a subset.
// A subset hits all patterns except those inside its complement.
func (d *optimal) transform() {
	n := len(d.hit)
	for bit := 1; bit < n; bit <<= 1 {
		for m := range n {
			if m&bit != 0 {
				d.hit[m] += d.hit[m^bit]
				d.closed[m] += d.closed[m^bit]
			}
		}
	}

	// The complement of m has the indices that m does not.
	all := d.hit[n-1]
	for m := range n / 2 {
		c := n - 1 - m
		d.hit[m], d.hit[c] = all-d.hit[c], all-d.hit[m]
	}
	d.moves += int64(4 * d.k * n)
}

// bestSplit finds the cheapest split of subset m into a and b:
//
//	cost(m) = min_{a ∪ b = m} cost(a) + cost(b) + 2 |H(m)| / (|I(a)| |I(b)|) + write |H(m)| / |I(m)|
//
// times the penalty of a result over the limit; sizes are relative to 2^base.
func (d *optimal) bestSplit(o *objective, m int, base logs) {
	size := d.hit[m] - d.closed[m]
	penalty := o.penalty(size)
	hit := d.hitExp[m] * penalty

	low := m & -m // in the first part, since the parts are not ordered
	rest := m ^ low
	best, first := math.Inf(1), low
	for s := (rest - 1) & rest; ; s = (s - 1) & rest {
		a, b := s|low, rest^s
		c := d.cost[a] + d.cost[b]
		if c < best {
			if c += float64(hit * float64(d.closExp[a]*d.closExp[b])); c < best {
				best, first = c, a
			}
		}
		if s == 0 {
			break
		}
	}

	d.moves += int64(1) << bits.OnesCount(uint(m))
	d.cost[m] = best + float64(penalty*pow2(size+o.write-base))
	d.split[m] = uint16(first)
}
