package preprocess

// Probing: consequences of zeros when an index is assumed to have a value.
//
// Source: R. Debruyne and C. Bessière, Some practicable filtering techniques for the constraint
// satisfaction problem (IJCAI 1997), singleton arc consistency; failed literals and equivalences of
// propositional logic.

// probe assumes every value of index i in turn and propagates zeros. A value under which some index
// has no value left is removed; so is any value of another index that goes under all of them. An
// index with one value left under every value of i follows i. Its cost is counted in entries looked
// at, and ends with the budget.
func (w *work) probe(i int) {
	a := &w.alive
	if w.dims[i] == 1 || w.probing >= w.options.Probes || !w.hasZeros(i) {
		return
	}
	begun := a.spent
	gone := map[position]int{} // number of values of i that remove it
	follows := map[int][]int{} // candidates: the value left under each value of i so far
	var order []position       // keys of gone in the order they came
	var failed []position      // assumptions under which some index has no value left

	for x := range w.dims[i] {
		if w.pace.Over(0) {
			return
		}
		w.assume(i, x)
		if a.empty >= 0 {
			failed = append(failed, position{i, x})
			a.undo(0)
			continue
		}

		first := len(failed) == x
		for _, p := range a.trail {
			if p.index == i {
				continue
			}
			if gone[p]++; gone[p] == 1 {
				order = append(order, p)
			}
			if a.left[p.index] == 1 && first {
				follows[p.index] = nil
			}
		}
		a.narrow(follows, x)
		a.undo(0)
	}
	w.probing += a.spent - begun

	if w.removeProbed(i, gone, order, failed) {
		return
	}
	best := -1
	for j := range follows {
		if (best < 0 || j < best) && w.worthFollowing(j, i) {
			best = j
		}
	}
	if best >= 0 {
		w.follow(best, i, follows[best])
	}
}

// assume propagates the consequences of value x of index i. Its removals are on the trail.
func (w *work) assume(i, x int) {
	w.report.Probed++
	for v := range w.dims[i] {
		if v != x {
			w.kill(i, v, -1)
		}
	}
	w.fixpoint()
}

// narrow notes the one value that every candidate has under value x,
// and drops those that have several.
func (a *alive) narrow(follows map[int][]int, x int) {
	for j := range follows {
		if a.left[j] > 1 {
			delete(follows, j)
		} else if f := follows[j]; len(f) < x+1 {
			follows[j] = append(f, make([]int, x+1-len(f))...)
			follows[j][x] = only(a.on[j])
		}
	}
}

// removeProbed removes the values of index i that failed,
// and the values of other indices that go under all that have not. It says whether there were any.
func (w *work) removeProbed(
	i int, gone map[position]int, order, failed []position,
) bool {
	possible := w.dims[i] - len(failed)
	for _, p := range order {
		if gone[p] == possible {
			failed = append(failed, p)
		}
	}
	if len(failed) == 0 {
		return false
	}

	for _, p := range failed {
		w.kill(p.index, p.value, -1)
	}
	w.report.ProbedAway += len(failed)
	w.fixpoint()
	w.commit()
	return true
}

// only returns the first position that is on.
func only(on []bool) int {
	for x, b := range on {
		if b {
			return x
		}
	}
	return -1
}

// hasZeros says whether some table of index i has zeros.
func (w *work) hasZeros(i int) bool {
	for _, n := range w.at[i] {
		if !w.tables[n].isFull(w) {
			return true
		}
	}
	return false
}
