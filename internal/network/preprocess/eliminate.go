package preprocess

// Elimination: an index is summed out of the product of its tables.
//
// It applies when that costs nothing: the index is in no table or in one, or the table that comes out
// of its tables is no larger than one of them, or lies inside another table. It is exact because the
// sum over an index may be moved behind the tables that do not have it.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// wellConditioned is the least ratio of a divisor that is a sum to the sum of
// its terms' absolute values.
const wellConditioned = 1.0 / 16

// eliminate sums index i out if that costs nothing. If its marginal is needed, it must follow from one
// other index's.
func (w *work) eliminate(i int) {
	if w.origins.isGone(i) || w.dims[i] == 1 || w.options.Terms {
		return
	}
	tables := slices.Clone(w.at[i])
	if len(tables) > 1 && (w.origins.needed[i] || w.options.NoElimination) {
		return
	}

	if len(tables) == 0 {
		d := float64(w.dims[i])
		w.scale = w.scale.Mul(scaled.FromFloat(d))
		w.sumOut(i, -1, slices.Repeat([]float64{1 / d}, w.dims[i]))
		return
	}

	parent, given := -1, []float64(nil)
	if len(tables) == 1 {
		var ok bool
		if parent, given, ok = conditional(w.dims, w.tables[tables[0]], i); !ok && w.origins.needed[i] {
			return
		}
	}

	out, ok := w.union(i)
	if !ok {
		return
	}

	var factors []*table
	for _, n := range tables {
		factors = append(factors, w.tables[n])
	}
	data, rounding, ok := product(w.dims, factors, out, []int{i}, w.signed)
	if !ok {
		return
	}

	t := &table{scope: out, data: data, owned: true, wider: len(tables) > 1, err: rounding, from: merged(factors)}
	for _, n := range tables {
		w.drop(n)
	}
	w.sumOut(i, parent, given)
	w.add(t)
}

// sumOut notes that index i is gone, and P(i | parent).
func (w *work) sumOut(i, parent int, given []float64) {
	w.origins.sumOut(i, parent, given)
	w.resize(i, 1)
	w.report.SummedOut++
}

// conditional returns P(i | parent) for an index i whose only table t is over i and at most one other
// index: a row for every value of the parent, one row for −1. ok is false when there are more, and when
// a row of terms of both signs cancels.
func conditional(dims []int, t *table, i int) (parent int, given []float64, ok bool) {
	if len(t.scope) > 2 {
		return -1, nil, false
	}
	strides := sumproduct.Along(dims, t.scope, t.scope)
	parent = -1
	rows, row, entry := 1, 0, 0 // the number of rows, and the strides between rows and their entries
	for k, j := range t.scope {
		if j == i {
			entry = strides[k]
		} else {
			parent, rows, row = j, dims[j], strides[k]
		}
	}

	// P(i = x | parent = v) = T[x, v] / Σ_x T[x, v]; a row of zeros stays one.
	for v := range rows {
		sum, size := 0.0, 0.0
		for x := range dims[i] {
			p := t.data[v*row+x*entry]
			sum = sum + p
			size = size + math.Abs(p)
		}
		if size > 0 && math.Abs(sum) < wellConditioned*size {
			return -1, nil, false
		}

		for x := range dims[i] {
			p := t.data[v*row+x*entry]
			if size > 0 {
				p /= sum
			}
			given = append(given, p)
		}
	}
	return parent, given, true
}

// union returns the other indices of the tables of index i. ok says whether a table over them is worth
// having.
func (w *work) union(i int) (scope []int, ok bool) {
	limit := 0
	for _, n := range w.at[i] {
		limit = max(limit, len(w.tables[n].data))
	}

	size := 1
	for _, n := range w.at[i] {
		for _, j := range w.tables[n].scope {
			if j == i || slices.Contains(scope, j) {
				continue
			}
			scope = append(scope, j)
			if size *= w.dims[j]; size > limit && size > w.options.MaxEntries {
				return nil, false
			}
		}
	}

	switch {
	case len(w.at[i]) == 1:
		return scope, true
	case size > w.options.MaxEntries:
		return nil, false
	}
	return scope, size <= limit || w.around(scope, -1) >= 0
}
