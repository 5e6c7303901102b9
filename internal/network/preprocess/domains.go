package preprocess

// Domains: arc consistency over the zeros of the tables.
//
// Source: C. Bessière and J.-C. Régin,
// Arc consistency for general constraint networks (IJCAI 1997).

// alive is which positions of every index are left,
// with a trail so that assumptions can be taken back.
type alive struct {
	on    [][]bool   // per index and position
	left  []int      // per index: number of remaining values
	trail []position // removed, in sequence
	queue agenda     // tables to be revised
	hit   [][]bool   // scratch of revise: per mode, the positions with support
	spent int        // tuples looked at
	empty int        // index without a value, −1 for none
	by    int        // table that took its last value, −1 for an assumption
}

// position is one value of an index, by its place among those left.
type position struct{ index, value int }

// resize gives index i a number of values, all of them alive.
func (w *work) resize(i, d int) {
	a := &w.alive
	for len(a.on) <= i {
		a.on = append(a.on, nil)
		a.left = append(a.left, 0)
	}
	w.dims[i] = d
	a.left[i] = d
	a.on[i] = make([]bool, d)
	for x := range a.on[i] {
		a.on[i][x] = true
	}
}

// kill removes a position and wakes the tables that may lose support by it.
func (w *work) kill(i, x, by int) {
	a := &w.alive
	a.on[i][x] = false
	a.left[i]--
	a.trail = append(a.trail, position{i, x})

	if a.left[i] == 0 && a.empty < 0 {
		a.empty, a.by = i, by
	}

	w.pace.Over(int64(len(w.at[i])))
	for _, n := range w.at[i] {
		if n != by && !w.tables[n].isFull(w.dims) {
			a.queue.push(n)
		}
	}
}

// undo takes the removals after mark back.
func (a *alive) undo(mark int) {
	for _, p := range a.trail[mark:] {
		a.on[p.index][p.value] = true
		a.left[p.index]++
	}
	a.trail = a.trail[:mark]
	a.empty = -1
	a.by = -1
	for a.queue.len() > 0 {
		a.queue.pop()
	}
}

// fixpoint removes positions without support until none is left to remove, or an index is empty.
func (w *work) fixpoint() {
	a := &w.alive
	for a.queue.len() > 0 && a.empty < 0 && !w.pace.Over(ruleWork) {
		w.revise(a.queue.pop())
	}
}

// revise removes the positions of table n's indices that none of its non-zero entries has.
func (w *work) revise(n int) {
	a := &w.alive
	t := w.tables[n]
	zeros := t.support(w.dims)
	tuples := zeros.tuples
	if zeros.hole != nil {
		a.spent += len(t.scope)
		w.pace.Over(int64(len(t.scope)))
		for from, to := t.lost(a); from < to; from++ {
			w.kill(t.scope[from], int(zeros.hole[from]), n)
		}
		return
	}
	missing := 0
	for k, i := range t.scope {
		if k == len(a.hit) {
			a.hit = append(a.hit, nil)
		}
		a.hit[k] = cleared(a.hit[k], w.dims[i])
		missing += a.left[i]
	}

	arity := len(t.scope)
	w.pace.Over(int64(len(tuples)))
next:
	for p := 0; p < len(tuples) && missing > 0; p += arity {
		a.spent++
		tuple := tuples[p : p+arity]
		for k, x := range tuple {
			if !a.on[t.scope[k]][x] {
				continue next
			}
		}
		for k, x := range tuple {
			if !a.hit[k][x] {
				a.hit[k][x] = true
				missing--
			}
		}
	}

	if missing == 0 {
		return
	}

	for k, i := range t.scope {
		for x, on := range a.on[i] {
			if on && !a.hit[k][x] {
				w.kill(i, x, n)
			}
		}
	}
}

// lost is the range of modes from which a table with one zero, as a clause is, takes the zero's value: of all where no index has another
// one left, of the only one that has. All other values have support.
func (t *table) lost(a *alive) (from, to int) {
	to = len(t.scope)
	for k, i := range t.scope {
		if !a.on[i][t.nonzero.hole[k]] || a.left[i] > 1 && to-from < len(t.scope) {
			return 0, 0
		}
		if a.left[i] > 1 {
			from, to = k, k+1
		}
	}
	return from, to
}

// cleared returns n times false, in b where that has room.
func cleared(b []bool, n int) []bool {
	if cap(b) < n {
		return make([]bool, n)
	}
	b = b[:n]
	clear(b)
	return b
}
