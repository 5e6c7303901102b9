package contractionorder

// The objective of a search.

// objective prices a merge by the size |U| of the union of the inputs' scopes and the size |S| of the result:
//
//	2 |U| + (write − 1) |S|
//
// These are the flops, 2 |U| − |S|, and the cost to write the result and read it back, in flops. If |S| exceeds the limit, the price is
// multiplied by 2^(steepness · (log2 |S| − limit)). This penalty stands for the slices that a table over the limit would need; with
// steepness 1 they multiply all the work of the merge.
type objective struct {
	log2Write log2Fixed // log2 (write − 1)
	limit     log2Fixed // log2 of the entries that a result may have without penalty
	steepness log2Fixed // in units of 2^−16: 1<<16 is the steepness 1
}

// noLimit is above the size of every table.
const noLimit = log2Fixed(1) << 60

// log2Price returns log2 of the price of a merge, 2 |U| + (write − 1) |S| times the penalty of a result over the limit. union is log2 of
// |U|, the entries of a table over the indices of both inputs. result is log2 of |S|, the entries of the result.
func (o *objective) log2Price(union, result log2Fixed) log2Fixed {
	price := logAdd(union+oneBit, result+o.log2Write)
	if result > o.limit {
		price += (result - o.limit) * o.steepness >> fractionBits
	}
	return price
}

// relativePrice returns the price of a merge, 2 |U| + (write − 1) |S| times the penalty of a result over the limit, divided by 2^base.
// union is log2 of |U|, the entries of a table over the indices of both inputs. result is log2 of |S|, the entries of the result.
func (o *objective) relativePrice(union, result, base log2Fixed) float64 {
	return (2*pow2(union-base) + pow2(result+o.log2Write-base)) * o.penalty(result)
}

// penalty returns the factor of the price of a merge whose result has 2^result entries: 1 up to the limit, and beyond it
// 2^(steepness · (result − limit)).
func (o *objective) penalty(result log2Fixed) float64 {
	if result <= o.limit {
		return 1
	}
	return pow2((result - o.limit) * o.steepness >> fractionBits)
}

// totalPrice returns the price of all merges of the tree divided by 2^base. Nodes from leafCount on are merges.
func (w *workingTree) totalPrice(o *objective, base log2Fixed) float64 {
	sum := 0.0
	for v := w.leafCount(); v < len(w.left); v++ {
		sum += float64(o.relativePrice(w.unionSize[v], w.size[v], base))
	}
	w.movesSpent += int64(4 * len(w.left)) // 4 elementary operations for each node
	return sum
}

// log2TotalPrice returns log2 of the price of all merges, for prices beyond float64, too. It sums prices divided by 2^base, where base
// makes that of the most expensive merge at most 2^900. Nodes from leafCount on are merges.
func (w *workingTree) log2TotalPrice(o *objective) log2Fixed {
	highest := log2Fixed(0)
	for v := w.leafCount(); v < len(w.left); v++ {
		highest = max(highest, o.log2Price(w.unionSize[v], w.size[v]))
	}

	base := max(highest-900*oneBit, 0)                     // in bits; 2^900 leaves room in float64 for the sum of all merges
	return base + log2Float(max(w.totalPrice(o, base), 1)) // 1 in place of the price 0 of a tree without merges
}

// log2Largest returns log2 of the entries of the largest result of a merge. Nodes from leafCount on are merges.
func (w *workingTree) log2Largest() log2Fixed {
	largest := log2Fixed(0)
	for v := w.leafCount(); v < len(w.left); v++ {
		largest = max(largest, w.size[v])
	}
	return largest
}
