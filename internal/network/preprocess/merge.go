package preprocess

// Tables inside other tables.

import (
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// inspect looks for simplifications by the entries or the scope of a changed
// table: indices that follow others, a table around it, tables inside it.
func (w *work) inspect(n int) {
	t := w.tables[n]
	if t.gone || w.findAlias(n) {
		return
	}

	if t.wider {
		t.wider = false
		for _, s := range w.inside(n) {
			w.merges.push(s)
		}
	}

	if w.sumFirst(n) {
		return
	}

	u := w.around(t.scope, n)
	if u >= 0 && w.sumFirst(u) {
		w.merges.push(n)
		return
	}

	if u >= 0 && w.multiply(u, n) {
		w.report.TablesMerged++
	}
}

// sumFirst sums out an index that only table n has, before products with others round the terms,
// which may cancel: the terms of an unobserved effect of independent causes cancel to 0. It
// reports whether the table is gone.
func (w *work) sumFirst(n int) bool {
	t := w.tables[n]
	if !w.signed {
		return false
	}
	for _, i := range t.scope {
		if len(w.at[i]) == 1 {
			if w.eliminate(i); t.gone {
				return true
			}
		}
	}
	return false
}

// around returns the smallest table over scope and possibly more, −1 for none; without is not it.
func (w *work) around(scope []int, without int) int {
	rare := scope[0]
	for _, i := range scope {
		if len(w.at[i]) < len(w.at[rare]) {
			rare = i
		}
	}

	best, bits := -1, bitsOf(scope)
	for _, u := range w.at[rare] {
		if w.bits[u]&bits != bits {
			continue
		}
		if o := w.tables[u]; u != without && contains(o.scope, scope) &&
			(best < 0 || len(o.data) < len(w.tables[best].data)) {
			best = u
		}
	}
	return best
}

// inside lists the tables whose scope is part of table n's.
func (w *work) inside(n int) []int {
	common := map[int]int{}
	var found []int
	for _, i := range w.tables[n].scope {
		for _, s := range w.at[i] {
			if common[s]++; s != n && common[s] == len(w.tables[s].scope) {
				found = append(found, s)
			}
		}
	}
	return found
}

// multiply multiplies table n, whose scope is part of table u's,
// into table u. It returns false when a product would leave the range of float64.
func (w *work) multiply(u, n int) bool {
	big, small := w.tables[u], w.tables[n]

	data, ok := times(big.data, small.data, big.shape(w.dims), sumproduct.Along(w.dims, small.scope, big.scope))
	if !ok {
		return false
	}

	exact := big.err == 0 && small.err == 0 && (plain(big.data) || plain(small.data))
	if big.err += small.err; !exact {
		big.err++
	}
	big.data = data
	big.owned = true
	big.from = merged([]*table{big, small})
	w.drop(n)
	w.changed(u)
	return true
}
