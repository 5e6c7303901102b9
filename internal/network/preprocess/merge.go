package preprocess

// Merging: a table inside another one is multiplied into that.
//
// It applies when the scope of one is part of the other's, so that no table grows, and when no product
// leaves the range of float64.

import "github.com/basetensor/basetensor/internal/network/sumproduct"

// merge multiplies table n into a table around it. If its scope is new, it puts the tables inside it on the
// agenda. If terms may cancel, indices that only one of the two tables has are summed out instead.
func merge(e *expression, n int, sums elimination) {
	t := e.tables[n]
	if t == nil {
		return
	}

	if t.wider {
		t.wider = false
		for _, s := range e.inside(n) {
			e.agenda.merges.push(s)
		}
	}

	if sumFirst(e, n, sums) {
		return
	}

	u := e.around(t.scope, n)
	if u < 0 {
		return
	}
	if sumFirst(e, u, sums) {
		e.agenda.merges.push(n)
		return
	}
	multiply(e, u, n)
}

// sumFirst sums out an index that only table n has if entries may be below 0: before products with others
// round the terms, which may cancel. Those of an unobserved effect of independent causes cancel to 0.
// It reports whether the table is gone.
func sumFirst(e *expression, n int, sums elimination) bool {
	if !e.signed {
		return false
	}
	for _, i := range e.tables[n].scope {
		if len(e.tablesOf[i]) == 1 {
			if sums.eliminate(e, i); e.tables[n] == nil {
				return true
			}
		}
	}
	return false
}

// multiply multiplies table n, whose scope is part of table u's, into table u, unless a product would
// leave the range of float64.
func multiply(e *expression, u, n int) {
	big, small := e.tables[u], e.tables[n]
	data, ok := times(big.data, small.data, big.shape(e.dims), sumproduct.Along(e.dims, small.scope, big.scope))
	if !ok {
		return
	}

	exact := big.err == 0 && small.err == 0 && (plain(big.data) || plain(small.data))
	if big.err += small.err; !exact {
		big.err++
	}
	big.data = data
	big.owned = true
	big.from = merged([]*table{big, small})
	e.report.TablesMerged++
	e.drop(n)
	e.changed(u)
}
