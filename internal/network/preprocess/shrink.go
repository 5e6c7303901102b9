package preprocess

// Values without support are taken out of indices and tables.

// propagate does the tables on the agenda to the fixpoint,
// and shrinks the tables of indices that have lost values.
func (w *work) propagate() {
	for w.domains.len() > 0 && !w.pace.Over(ruleWork) {
		if n := w.domains.pop(); !w.tables[n].gone && !w.tables[n].isFull(w.dims) {
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
		w.tables[n].restrict(w.dims, w.alive.on)
	}

	// The tables have shrunk already: from here on the indices have fewer values.
	for _, i := range shrunk {
		w.origins.restrict(i, a.on[i])
		w.resize(i, a.left[i])
		if w.dims[i] == 1 {
			w.report.Fixed++
		}
		w.indices.push(i)
	}

	a.trail = a.trail[:0]
	for _, n := range touched {
		w.changed(n)
	}
}
