package preprocess

import "slices"

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
	c := &w.probed
	c.begin(w.dims)
	defer c.end()
	var failed []position // assumptions under which some index has no value left

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
			if p.index != i {
				c.add(p, first && a.left[p.index] == 1)
			}
		}
		c.narrow(a, x)
		a.undo(0)
	}
	w.probing += a.spent - begun

	if w.removeProbed(i, failed) {
		return
	}
	best := -1
	for _, j := range c.followers {
		if (best < 0 || j < best) && w.worthFollowing(j, i) {
			best = j
		}
	}
	if best >= 0 {
		w.follow(best, i, slices.Clone(c.only[best][:w.dims[i]]))
	}
}

// consequences are what the values of one index under probe have in common.
type consequences struct {
	gone      [][]int    // per index and value: number of values of the probed index that remove it
	order     []position // those of gone that are not 0, in the order they came
	only      [][]int    // per follower, by value of the probed index: the one value left; scratch of the others
	followers []int      // indices with one value left under every value so far
}

// begin makes room for the indices.
func (c *consequences) begin(dims []int) {
	for len(c.gone) < len(dims) {
		c.gone = append(c.gone, nil)
		c.only = append(c.only, nil)
	}
}

// end forgets everything.
func (c *consequences) end() {
	for _, p := range c.order {
		c.gone[p.index][p.value] = 0
	}
	c.order, c.followers = c.order[:0], c.followers[:0]
}

// add counts a value that is removed. Its index may be a new follower.
func (c *consequences) add(p position, follower bool) {
	for len(c.gone[p.index]) <= p.value {
		c.gone[p.index] = append(c.gone[p.index], 0)
	}
	n := &c.gone[p.index][p.value]
	if *n++; *n == 1 {
		c.order = append(c.order, p)
	}
	if follower {
		c.followers = append(c.followers, p.index)
	}
}

// narrow notes the one value that every follower has under value x, and drops those that have several.
func (c *consequences) narrow(a *alive, x int) {
	kept := c.followers[:0]
	for _, j := range c.followers {
		if a.left[j] > 1 {
			continue
		}
		for len(c.only[j]) <= x {
			c.only[j] = append(c.only[j], 0)
		}
		c.only[j][x] = slices.Index(a.on[j], true)
		kept = append(kept, j)
	}
	c.followers = kept
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

// removeProbed removes the values of index i that failed,
// and the values of other indices that go under all that have not. It says whether there were any.
func (w *work) removeProbed(i int, failed []position) bool {
	possible := w.dims[i] - len(failed)
	for _, p := range w.probed.order {
		if w.probed.gone[p.index][p.value] == possible {
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

// hasZeros says whether some table of index i has zeros.
func (w *work) hasZeros(i int) bool {
	for _, n := range w.at[i] {
		if !w.tables[n].isFull(w.dims) {
			return true
		}
	}
	return false
}
