package contractionorder

// The optimal tree over a few tables, by dynamic programming over their subsets.

import (
	"math"
	"math/bits"
)

// maxOptimal is the largest number of tables of one optimal tree: 3^12/2 splits.
const maxOptimal = 12

// optimal finds the cheapest tree over k ≤ maxOptimal tables. Subsets of the tables are bit masks: table j is bit j. The pattern of an
// index is the subset of the tables that have it. Let
//
//	H(m) = log2 of the size of the indices that some table of the subset m has
//	I(m) = log2 of the size of those that only tables of m have, so that they are summed within m
//
// Whatever the trees over a and b are, their merge has log2 sizes H(a∪b) − I(a) − I(b) of the union and H(a∪b) − I(a∪b) of the result. So
// every split of a subset is a lookup. There are 3^k/2 splits, and H and I take k·2^k operations. All lists are by subset.
type optimal struct {
	tableCount   int       // k
	unionSize    []logs    // H; before sumOverSubsets: log2 of the size of the indices with exactly this pattern
	closedSize   []logs    // I; before sumOverSubsets: the same, only for indices that no table outside has
	unionPrice   []float64 // 2·2^(H − base): flops of a merge, to be multiplied by the closed factors of its inputs
	closedFactor []float64 // 2^−I
	cost         []float64 // of the optimal tree, relative to 2^base
	firstPart    []uint16  // of the optimal tree: the tables of the root's first input
	moves        int64
}

// reset prepares for a number of tables that have no indices yet. It reuses memory.
func (d *optimal) reset(tables int) {
	subsets := 1 << tables
	if cap(d.unionSize) < subsets {
		d.unionSize, d.closedSize = make([]logs, subsets), make([]logs, subsets)
		d.unionPrice, d.closedFactor, d.cost = make([]float64, subsets), make([]float64, subsets), make([]float64, subsets)
		d.firstPart = make([]uint16, subsets)
	}

	d.tableCount = tables
	d.unionSize, d.closedSize, d.firstPart = d.unionSize[:subsets], d.closedSize[:subsets], d.firstPart[:subsets]
	d.unionPrice, d.closedFactor, d.cost = d.unionPrice[:subsets], d.closedFactor[:subsets], d.cost[:subsets]

	clear(d.unionSize)
	clear(d.closedSize)
}

// addIndex adds an index with the given log2 of its dimension, which the tables of pattern have. isOpen: tables outside have it, too.
func (d *optimal) addIndex(pattern int, weight logs, isOpen bool) {
	d.unionSize[pattern] += weight
	if !isOpen {
		d.closedSize[pattern] += weight
	}
}

// solve finds the optimal tree, which firstPart then describes. Its cost is total·2^base.
func (d *optimal) solve(o *objective) (total float64, base logs) {
	d.sumOverSubsets()
	all := len(d.unionSize) - 1

	base = max(d.unionSize[all]-900*oneBit, 0)
	for subset := 1; subset <= all; subset++ {
		d.unionPrice[subset] = 2 * pow2(d.unionSize[subset]-base)
		d.closedFactor[subset] = pow2(-d.closedSize[subset])
	}

	for subset := 1; subset <= all; subset++ {
		d.cost[subset] = 0
		if subset&(subset-1) != 0 {
			d.bestSplit(o, subset, base)
		}
	}
	return d.cost[all], base
}

// sumOverSubsets turns the sizes by pattern into H and I. I(m) is the sum over all patterns inside m. H(m) is the sum over all patterns
// except those inside the complement of m.
func (d *optimal) sumOverSubsets() {
	subsets := len(d.unionSize)
	for bit := 1; bit < subsets; bit <<= 1 {
		// Afterwards m has the sum over m and the patterns that lack some of its bits up to this one.
		for m := range subsets {
			if m&bit != 0 {
				d.unionSize[m] += d.unionSize[m^bit]
				d.closedSize[m] += d.closedSize[m^bit]
			}
		}
	}

	// Now unionSize[m] is the sum over the patterns inside m. The total less that sum is H of the complement of m.
	all := d.unionSize[subsets-1]
	for m := range subsets / 2 {
		complement := subsets - 1 - m
		d.unionSize[m], d.unionSize[complement] = all-d.unionSize[complement], all-d.unionSize[m]
	}
	d.moves += int64(4 * d.tableCount * subsets)
}

// bestSplit finds the cheapest split of a subset m, of two tables or more, into a and b, and its cost:
//
//	cost(m) = min_{a ∪ b = m} cost(a) + cost(b) + p · (2·2^(H(m) − I(a) − I(b)) + write·2^(H(m) − I(m)))
//
// p is the penalty of a result over the limit. Costs are relative to 2^base. The loop runs over the subsets of m that contain its lowest
// table, since a and b may be exchanged.
func (d *optimal) bestSplit(o *objective, subset int, base logs) {
	result := d.unionSize[subset] - d.closedSize[subset]
	penalty := o.penalty(result)
	union := d.unionPrice[subset] * penalty

	lowest := subset & -subset // always in a
	remaining := subset ^ lowest
	best, first := math.Inf(1), lowest
	for part := (remaining - 1) & remaining; ; part = (part - 1) & remaining {
		a, b := part|lowest, remaining^part
		price := d.cost[a] + d.cost[b]
		if price < best {
			if price += float64(union * float64(d.closedFactor[a]*d.closedFactor[b])); price < best {
				best, first = price, a
			}
		}
		if part == 0 {
			break
		}
	}

	d.moves += int64(1) << bits.OnesCount(uint(subset))
	d.cost[subset] = best + float64(penalty*pow2(result+o.log2Write-base))
	d.firstPart[subset] = uint16(first)
}
