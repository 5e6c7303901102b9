package preprocess

// Indices summed out.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// eliminate sums index i out where that costs nothing: it is in no table or in one, or the table that comes out of its
// tables is no larger than one of them, or lies inside another table.
func (w *work) eliminate(i int) {
	if w.keep[i] || w.alias[i].into != itself || w.dims[i] == 1 {
		return
	}
	tables := w.at[i]
	if len(tables) == 0 {
		w.scale = w.scale.Mul(scaled.FromFloat(float64(w.dims[i])))
		w.sumOut(i)
		return
	}
	if len(tables) > 1 && w.options.NoElimination {
		return
	}
	out, ok := w.union(i)
	if !ok {
		return
	}
	data, ok := w.product(tables, out, []int{i})
	if !ok {
		return
	}
	t := &table{scope: out, data: data, owned: true, wider: len(tables) > 1}
	for _, n := range slices.Clone(tables) {
		t.from = append(t.from, w.tables[n].from...)
		w.drop(n)
	}
	t.from = unique(t.from)
	w.sumOut(i)
	w.add(t)
}

func (w *work) sumOut(i int) {
	w.alias[i].into = summed
	w.resize(i, w.values[i][:1])
	w.report.SummedOut++
}

// union returns the other indices of the tables of index i, and whether a table over them is worth having.
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
