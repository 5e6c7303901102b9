package preprocess

// Merging: a table inside another one is multiplied into that.
//
// It applies when the scope of one is part of the other's, so that no table grows, and when no product
// leaves the range of float64.

import "github.com/basetensor/basetensor/internal/network/sumproduct"

// merge multiplies table n into the smallest table whose scope contains that of table n, if there is one. If entries may be below 0, it
// first sums out an index that only table n has, or only that other table. The sum comes before the product since the product would round
// the terms of the sum, which may cancel. If table n has a new scope, the tables whose scopes are part of it are listed on the agenda for
// this rule, since they can be merged into it.
func merge(e *expression, n int, sums elimination) {
	t := e.tables[n]
	if t == nil {
		return
	}

	if t.hasNewScope {
		t.hasNewScope = false
		for _, s := range e.tablesInside(n) {
			e.agenda.merges.push(s)
		}
	}

	isReplaced := sumPrivateIndices(e, n, sums) // table n is gone then
	if isReplaced {
		return
	}

	container := e.smallestTableWith(t.scope, n)
	if container < 0 {
		return
	}
	isReplaced = sumPrivateIndices(e, container, sums)
	if isReplaced { // by a table with another scope: table n needs a new container
		e.agenda.merges.push(n)
		return
	}
	multiplyInto(e, container, n)
}

// sumPrivateIndices looks for an index that only table n has, and sums it out if entries of the expression may be below 0 and if eliminate
// finds that this costs nothing. Then a smaller table replaces table n, and it returns true. The sum comes before products with other
// tables, since these would round its terms, and the rounding errors of terms that cancel would remain. In an unobserved effect of
// independent causes, for example, such terms cancel to exactly 0.
func sumPrivateIndices(e *expression, n int, sums elimination) (isReplaced bool) {
	if !e.isSigned {
		return false
	}
	for _, i := range e.tables[n].scope {
		isPrivate := len(e.tablesOf[i]) == 1
		if !isPrivate {
			continue
		}
		sums.eliminate(e, i) // which may do nothing
		if e.tables[n] == nil {
			return true
		}
	}
	return false
}

// multiplyInto multiplies table container by table n, whose scope is part of the container's, and removes table n. It does nothing if a
// product would leave the range of float64. err bounds the relative error of a table's entries, in units of 2^-53: the errors of the two
// tables add up, and the product adds one rounding. A product with a power of two is not rounded.
func multiplyInto(e *expression, container, n int) {
	big, small := e.tables[container], e.tables[n]
	data, ok := multiplyEntries(big.data, small.data, big.shape(e.dims), sumproduct.AxisStrides(e.dims, small.scope, big.scope))
	if !ok {
		return
	}

	// If an earlier rounding is in the tables, one more is counted anyhow.
	isExact := big.err == 0 && small.err == 0 && (arePowersOfTwo(big.data) || arePowersOfTwo(small.data))
	big.err += small.err
	if !isExact {
		big.err++
	}
	big.data = data
	big.ownsData = true
	big.source = mergeSources([]*table{big, small}) // the given tables that are in it, for reports
	e.report.TablesMerged++
	e.removeTable(n)
	e.noteChange(container)
}
