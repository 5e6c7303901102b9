package preprocess

// Tables inside other tables.

import (
	"math"
	"slices"

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

// contains reports whether all of part is in scope.
func contains(scope, part []int) bool {
	if len(part) > len(scope) {
		return false
	}
	for _, i := range part {
		if !slices.Contains(scope, i) {
			return false
		}
	}
	return true
}

// multiply multiplies table n, whose scope is part of table u's,
// into table u. It returns false when a product would leave the range of float64.
func (w *work) multiply(u, n int) bool {
	big, small := w.tables[u], w.tables[n]

	data, ok := times(big.data, small.data, w.shape(big), sumproduct.Along(w.dims, small.scope, big.scope))
	if !ok {
		return false
	}

	exact := big.err == 0 && small.err == 0 && (plain(big.data) || plain(small.data))
	if big.err += small.err; !exact {
		big.err++
	}
	big.data = data
	big.owned = true
	big.from = &source{of: []*source{big.from, small.from}}
	w.drop(n)
	w.changed(u)
	return true
}

// times returns a[x]·b[steps·x] over all x of a shape.
// It returns false when a product that is not 0 is tiny, or infinite.
func times(a, b []float64, shape, steps []int) ([]float64, bool) {
	out := make([]float64, len(a))
	last := len(shape) - 1
	x := make([]int, last+1)

	for from, at := 0, 0; from < len(a); {
		step := steps[last]
		for k := range shape[last] {
			f, g := a[from+k], b[at+k*step]
			p := float64(f * g)
			if (math.Abs(p) < tiny || p-p != 0) && f != 0 && g != 0 {
				return nil, false
			}
			out[from+k] = p
		}
		from += shape[last]
		for k := last - 1; k >= 0; k-- {
			at += steps[k]
			if x[k]++; x[k] < shape[k] {
				break
			}
			at -= x[k] * steps[k]
			x[k] = 0
		}
	}
	return out, true
}

// product returns the product of tables over the indices out,
// summed over the indices sum, which together are all theirs, as data and err of a table:
//
//	data[o] = Σ_s Π_k table_k[o, s]
//
// ok is false when a product that is not 0, or a part of one, is tiny,
// or infinite, and where terms of both signs cancel and were rounded.
func (w *work) product(tables, out, sum []int) (data []float64, err float64, ok bool) {
	axes := append(slices.Clone(out), sum...)
	size := 1
	for _, i := range out {
		size *= w.dims[i]
	}

	inner := 1
	for _, i := range sum {
		inner *= w.dims[i]
	}

	scopes, factors := make([][]int, len(tables)), make([][]float64, len(tables))
	for k, n := range tables {
		scopes[k] = w.tables[n].scope
		factors[k] = w.tables[n].data
		err += w.tables[n].err
	}

	at := sumproduct.NewWalk(w.dims, axes, scopes...)
	data = make([]float64, size)
	sums := sums{given: err, roundings: float64(len(tables) - 1 + inner), signed: w.signed}
	for o := range data {
		s := signed{rounded: err > 0}
		total := 0.0
		for range inner {
			p, least := 1.0, 1.0
			for k, f := range factors {
				p = float64(p * f[at.At[k]])
				least = min(least, math.Abs(p))
			}
			// also on the way: a factor may bring it up again, without its digits
			if (least < tiny || p-p != 0) && (p != 0 || !anyZero(factors, at.At)) {
				return nil, 0, false
			}

			if w.signed {
				s.add(factors, at.At, total, p)
			}
			total += p
			at.Next()
		}

		// Exact factors whose terms cancel are summed once more, rounded once.
		if err == 0 && s.cancels(total) && len(factors) <= maxExactFactors {
			at.Seek(o * inner)
			total = exactSum(at, factors, inner)
			s.size = math.Abs(total) // it is rounded once
			if total != 0 && s.size < tiny {
				return nil, 0, false
			}
		}

		if data[o] = total; total-total != 0 || !sums.take(&s, total) {
			return nil, 0, false
		}
	}
	return data, sums.err(), true
}

// anyZero reports whether one of the factors is 0 at its place.
func anyZero(factors [][]float64, place []int) bool {
	for k, f := range factors {
		if f[place[k]] == 0 {
			return true
		}
	}
	return false
}
