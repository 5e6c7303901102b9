package contractionorder

// The optimal tree over a few tables, by dynamic programming over their subsets.

import (
	"math"
	"math/bits"
)

// maxOptimal is the largest number of tables of one optimal tree: 3^12/2 splits.
const maxOptimal = 12

// optimal finds the cheapest tree over k ≤ maxOptimal tables. Subsets of the tables are bit masks: table j is bit j. The pattern of an
// index is the subset of the tables that have it. Sizes are log2 in fixed point. Let
//
//	H(m) = log2 of the size of the indices that some table of the subset m has
//	I(m) = log2 of the size of those that only tables of m have, so that they are summed within m
//
// Whatever the trees over a and b are, their merge has log2 sizes H(a∪b) − I(a) − I(b) of the union and H(a∪b) − I(a∪b) of the result. So
// every split of a subset is a lookup. There are 3^k/2 splits, and H and I take k·2^k operations. All lists are by subset.
type optimal struct {
	tableCount   int         // k
	unionSize    []log2Fixed // H; before sumOverSubsets: log2 of the size of the indices with exactly this pattern
	closedSize   []log2Fixed // I; before sumOverSubsets: the same, only for indices that no table outside has
	unionPrice   []float64   // 2·2^(H − base): flops of a merge, to be multiplied by the closed factors of its inputs
	closedFactor []float64   // 2^−I
	cost         []float64   // of the optimal tree, relative to 2^base
	firstPart    []uint16    // of the optimal tree: the tables of the root's first input
	movesSpent   int64
}

// reset prepares for the optimal tree over some tables, which have no indices yet. All lists have one entry per subset of the tables. It
// reuses their memory if it suffices.
func (d *optimal) reset(tables int) {
	subsets := 1 << tables
	if cap(d.unionSize) < subsets {
		d.unionSize, d.closedSize = make([]log2Fixed, subsets), make([]log2Fixed, subsets)
		d.unionPrice, d.closedFactor, d.cost = make([]float64, subsets), make([]float64, subsets), make([]float64, subsets)
		d.firstPart = make([]uint16, subsets)
	}

	d.tableCount = tables
	d.unionSize, d.closedSize, d.firstPart = d.unionSize[:subsets], d.closedSize[:subsets], d.firstPart[:subsets]
	d.unionPrice, d.closedFactor, d.cost = d.unionPrice[:subsets], d.closedFactor[:subsets], d.cost[:subsets]

	clear(d.unionSize)
	clear(d.closedSize)
}

// addIndex adds an index of a dimension with the given log2. Table j has the index if bit j of pattern is set. isOpen is true if tables
// outside have it, too, so that no merge sums it.
func (d *optimal) addIndex(pattern int, log2Dim log2Fixed, isOpen bool) {
	d.unionSize[pattern] += log2Dim
	if !isOpen {
		d.closedSize[pattern] += log2Dim
	}
}

// solve finds the optimal tree over all tables and returns its cost, total·2^base. A subset of the tables is a bit mask. For each subset,
// from small to large, it finds the best split into two parts; afterwards firstPart[subset] is the first part. unionSize is log2 of the
// size of all indices of a subset; closedSize is that of the indices that no table outside the subset has, and that are summed within it.
func (d *optimal) solve(o *objective) (total float64, base log2Fixed) {
	d.sumOverSubsets()
	allTables := len(d.unionSize) - 1 // the subset of all tables

	// Powers of 2, so that the price of a split is a product. Relative to 2^base none is above 2^901, which leaves room in float64.
	base = max(d.unionSize[allTables]-900*oneBit, 0)
	for subset := 1; subset <= allTables; subset++ {
		d.unionPrice[subset] = 2 * pow2(d.unionSize[subset]-base)
		d.closedFactor[subset] = pow2(-d.closedSize[subset])
	}

	for subset := 1; subset <= allTables; subset++ {
		d.cost[subset] = 0
		hasTwoTables := subset&(subset-1) != 0
		if hasTwoTables {
			d.findSplit(o, subset, base)
		}
	}
	return d.cost[allTables], base
}

// sumOverSubsets turns sizes by pattern into sizes by subset of the tables. The pattern of an index is the exact set of tables that have
// it. For a subset m, unionSize becomes H(m), log2 of the size of the indices that some table of m has, and closedSize becomes I(m), that
// of the indices that only tables of m have. An open index, one that tables outside the optimal tree have, too, counts in H but not in I:
// addIndex left it out of closedSize. I(m) is the sum over all patterns inside m. H(m) is the sum over all patterns that are not inside
// the complement of m.
func (d *optimal) sumOverSubsets() {
	// Sum over the patterns inside each m. For unionSize this is only a first step. closedSize leaves out open indices from the start.
	subsets := len(d.unionSize)
	for bit := 1; bit < subsets; bit <<= 1 {
		// After this round the entry of m is the sum over all patterns that m becomes by clearing some or none of its bits up to this one.
		for m := range subsets {
			if m&bit != 0 {
				d.unionSize[m] += d.unionSize[m^bit]
				d.closedSize[m] += d.closedSize[m^bit]
			}
		}
	}

	// The total less the sum over the patterns inside m is H of the complement of m. Each round does m and its complement.
	total := d.unionSize[subsets-1]
	for m := range subsets / 2 {
		complement := subsets - 1 - m
		d.unionSize[m], d.unionSize[complement] = total-d.unionSize[complement], total-d.unionSize[m]
	}
	d.movesSpent += int64(4 * d.tableCount * subsets) // 4 elementary operations for each table and subset
}

// findSplit sets cost and firstPart of a subset of two tables or more, m in the formulas: it finds the cheapest split of m into a and b,
//
//	cost(m) = min_{a ∪ b = m} cost(a) + cost(b) + p · (2·2^(H(m) − I(a) − I(b)) + (write − 1)·2^(H(m) − I(m)))
//
// H(m) is log2 of the size of the indices that some table of m has, and I(m) that of the indices that only tables of m have. write is the
// cost to write an entry of a result and read it back, in flops, and p the penalty of a result over the limit. Costs are relative to
// 2^base. Subsets are bit masks. Since a and b may be exchanged, a always has the lowest table of m, and the loop runs over the proper
// subsets of the other tables, which are added to it.
func (d *optimal) findSplit(o *objective, subset int, base log2Fixed) {
	resultSize := d.unionSize[subset] - d.closedSize[subset] // H(m) − I(m)
	penalty := o.penalty(resultSize)
	unionPrice := d.unionPrice[subset] * penalty // p · 2·2^H(m), relative to 2^base

	lowest := subset & -subset
	withoutLowest := subset ^ lowest
	lowestPrice, firstPart := math.Inf(1), lowest
	// part runs over the proper subsets of withoutLowest: (part − 1) & withoutLowest is the next smaller one. b is never empty.
	for part := (withoutLowest - 1) & withoutLowest; ; part = (part - 1) & withoutLowest {
		a, b := part|lowest, withoutLowest^part
		price := d.cost[a] + d.cost[b]
		if price < lowestPrice { // else the merge need not be computed
			price += float64(unionPrice * float64(d.closedFactor[a]*d.closedFactor[b])) // closedFactor is 2^−I
			if price < lowestPrice {
				lowestPrice, firstPart = price, a
			}
		}
		if part == 0 {
			break
		}
	}

	// log2Write is log2(write − 1).
	d.cost[subset] = lowestPrice + float64(penalty*pow2(resultSize+o.log2Write-base))
	d.movesSpent += int64(1) << bits.OnesCount(uint(subset)) // 2 elementary operations for each of the 2^(k−1) splits, k tables
	d.firstPart[subset] = uint16(firstPart)
}
