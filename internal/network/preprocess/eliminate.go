package preprocess

// Indices summed out.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// eliminate sums index i out where that costs nothing: it is in no table or in one, or the table
// that comes out of its tables is no larger than one of them, or lies inside another table. An
// index to be kept is summed out where its marginal can be found from one other index's.
func (w *work) eliminate(i int) {
	if w.alias[i].into != itself || w.dims[i] == 1 || w.options.Terms {
		return
	}
	tables := slices.Clone(w.at[i])
	if len(tables) > 1 && (w.keep[i] || w.options.NoElimination) {
		return
	}

	gone := alias{into: summed}
	if len(tables) == 1 {
		var ok bool
		if gone, ok = w.conditional(i); !ok && w.keep[i] {
			return
		}
	}

	if len(tables) == 0 {
		gone.given = w.spread(i, slices.Repeat([]float64{1 / float64(w.dims[i])}, w.dims[i]))
		w.scale = w.scale.Mul(scaled.FromFloat(float64(w.dims[i])))
		w.sumOut(i, gone)
		return
	}

	out, ok := w.union(i)
	if !ok {
		return
	}

	var factors []*table
	var from []*source
	for _, n := range tables {
		factors = append(factors, w.tables[n])
		from = append(from, w.tables[n].from)
	}
	data, rounding, ok := product(w.dims, factors, out, []int{i}, w.signed)
	if !ok {
		return
	}

	for _, n := range tables {
		w.drop(n)
	}
	t := &table{scope: out, data: data, owned: true, wider: len(tables) > 1, err: rounding, from: merged(from)}

	w.sumOut(i, gone)
	w.add(t)
}

// sumOut notes that index i is gone, and its relation to other indices.
func (w *work) sumOut(i int, gone alias) {
	if gone.into >= 0 {
		w.keep[gone.into] = w.keep[gone.into] || w.keep[i]
	}

	w.alias[i] = gone
	w.left = append(w.left, i)
	w.resize(i, w.values[i][:1])
	w.report.SummedOut++
}

// wellConditioned is the least ratio of a divisor that is a sum to the sum of
// its terms' absolute values.
const wellConditioned = 1.0 / 16

// conditional returns P(i | j) for an index whose only table is over
// itself and at most one other index j, and whether there is one.
func (w *work) conditional(i int) (alias, bool) {
	none := alias{into: summed}
	t := w.tables[w.at[i][0]]
	if len(t.scope) > 2 {
		return none, false
	}
	own := sumproduct.Along(w.dims, t.scope, []int{i})[0]
	rows := 1
	other := 0

	gone := none
	for _, j := range t.scope {
		if j != i {
			gone.into = j
			rows = w.dims[j]
			other = sumproduct.Along(w.dims, t.scope, []int{j})[0]
		}
	}

	// P(i = x | j = v) = T[x, v] / Σ_x T[x, v]; a row of zeros stays one.
	var given []float64
	for v := range rows {
		sum, size := 0.0, 0.0
		for x := range w.dims[i] {
			p := t.data[v*other+x*own]
			sum = sum + p
			size = size + math.Abs(p)
		}
		if size > 0 && math.Abs(sum) < wellConditioned*size {
			return none, false
		}

		for x := range w.dims[i] {
			p := t.data[v*other+x*own]
			if size > 0 {
				p /= sum
			}
			given = append(given, p)
		}
	}

	if gone.into < 0 {
		gone.given = w.spread(i, given)
		return gone, true
	}

	gone.given = make([]float64, w.first[gone.into]*w.first[i])
	for p, v := range w.values[gone.into] {
		copy(gone.given[v*w.first[i]:], w.spread(i, given[p*w.dims[i]:][:w.dims[i]]))
	}
	return gone, true
}

// spread returns a list over the remaining values of index i as one over its values in the expression given.
func (w *work) spread(i int, list []float64) []float64 {
	out := make([]float64, w.first[i])
	for p, v := range w.values[i] {
		out[v] = list[p]
	}
	return out
}

// union returns the other indices of the tables of index i,
// and whether a table over them is worth having.
func (w *work) union(i int) ([]int, bool) {
	limit := 0
	for _, n := range w.at[i] {
		limit = max(limit, len(w.tables[n].data))
	}

	var out []int
	size := 1
	for _, n := range w.at[i] {
		for _, j := range w.tables[n].scope {
			if j == i || slices.Contains(out, j) {
				continue
			}
			out = append(out, j)
			if size *= w.dims[j]; size > limit && size > w.options.MaxEntries {
				return nil, false
			}
		}
	}

	switch {
	case len(w.at[i]) == 1:
		return out, true
	case size > w.options.MaxEntries:
		return nil, false
	}
	return out, size <= limit || w.around(out, -1) >= 0
}
