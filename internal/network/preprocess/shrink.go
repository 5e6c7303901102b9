package preprocess

// Values without support are taken out of indices and tables.

import (
	"slices"
)

// propagate does the tables on the agenda to the fixpoint,
// and shrinks the tables of indices that have lost values.
func (w *work) propagate() {
	for w.domains.len() > 0 && !w.pace.Over(ruleWork) {
		if n := w.domains.pop(); !w.tables[n].gone && !w.tables[n].isFull(w) {
			w.alive.queue.push(n)
		}
	}
	w.fixpoint()
	w.commit()
}

// commit makes the removals on the trail final.
func (w *work) commit() {
	a := &w.alive
	if a.empty >= 0 {
		r := &Reason{Index: a.empty, Table: -1}
		if a.by >= 0 {
			r.Tables = w.tables[a.by].from.list()
			r.Table = r.Tables[0]
		}
		w.zero = r
		a.undo(0)
		return
	}

	if len(a.trail) == 0 {
		return
	}
	w.report.ValuesRemoved += len(a.trail)

	var shrunk, touched []int
	for _, p := range a.trail {
		shrunk = append(shrunk, p.index)
	}
	shrunk = unique(shrunk)
	for _, i := range shrunk {
		touched = append(touched, w.at[i]...)
	}
	touched = unique(touched)
	for _, n := range touched {
		if w.pace.Over(int64(len(w.tables[n].data))) {
			return
		}
		w.restrict(w.tables[n])
	}

	// The tables have shrunk already: from here on the indices have fewer values.
	for _, i := range shrunk {
		var values []int
		for x, v := range w.values[i] {
			if a.on[i][x] {
				values = append(values, v)
			}
		}
		w.resize(i, values)
		if len(values) == 1 {
			w.report.Fixed++
		}
		w.indices.push(i)
	}

	a.trail = a.trail[:0]
	for _, n := range touched {
		w.changed(n)
	}
}

// unique sorts a list and drops repetitions.
func unique(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// restrict keeps the entries of t whose positions are alive.
func (w *work) restrict(t *table) {
	offsets := make([][]int, len(t.scope))
	for k, s := len(t.scope)-1, 1; k >= 0; k-- {
		i := t.scope[k]
		for x, on := range w.alive.on[i] {
			if on {
				offsets[k] = append(offsets[k], x*s)
			}
		}
		s *= w.dims[i]
	}
	t.data = gather(t.data, offsets)
	t.owned = true
}

// gather returns data[Σ_k offsets[k][x_k]] for all x in row-major order.
func gather(data []float64, offsets [][]int) []float64 {
	size := 1
	for _, o := range offsets {
		size *= len(o)
	}
	out := make([]float64, 0, size)

	if len(offsets) == 0 {
		return append(out, data[0])
	}

	last := offsets[len(offsets)-1]
	x := make([]int, len(offsets)-1)
	for len(out) < size {
		base := 0
		for k, v := range x {
			base += offsets[k][v]
		}
		for _, o := range last {
			out = append(out, data[base+o])
		}
		for k := len(x) - 1; k >= 0; k-- {
			if x[k]++; x[k] < len(offsets[k]) {
				break
			}
			x[k] = 0
		}
	}
	return out
}
