package preprocess

// Probing: consequences of zeros when an index is assumed to have a value.
//
// A value under which some index has no value left is removed, for all terms with it are 0. So is any
// value of another index that goes under all of them. An index with one value left under every value
// of another follows that.
//
// Source: R. Debruyne and C. Bessière, Some practicable filtering techniques for the constraint
// satisfaction problem (IJCAI 1997), singleton arc consistency; failed literals and equivalences of
// propositional logic.

import "slices"

// prober assumes values. Its cost is counted in entries looked at, and ends with the budget.
type prober struct {
	domains *domains
	budget  int
	common  consequences
}

// probe assumes every value of index i in turn and propagates zeros.
func (p *prober) probe(i int) {
	d := p.domains
	e := d.e
	if e.dims[i] == 1 || p.budget <= 0 || !hasZeros(e, i) {
		return
	}
	begun := d.spent
	p.common.begin(len(e.dims))
	defer p.common.end()
	var failed []position // assumptions under which some index has no value left

	for x := range e.dims[i] {
		if d.pace.Over(0) {
			return
		}
		p.assume(i, x)
		if d.empty >= 0 {
			failed = append(failed, position{i, x})
			d.undo()
			continue
		}

		first := len(failed) == x // of the values that did not fail
		for _, c := range d.trail {
			if c.index != i {
				p.common.add(c, first && d.sizes[c.index] == 1)
			}
		}
		p.common.narrow(d, x)
		d.undo()
	}
	p.budget -= d.spent - begun

	if p.removeFailed(i, failed) {
		return
	}
	best := -1
	for _, j := range p.common.followers {
		if (best < 0 || j < best) && worthFollowing(e, j, i) {
			best = j
		}
	}
	if best >= 0 {
		e.follow(best, i, slices.Clone(p.common.only[best][:e.dims[i]]))
	}
}

// assume propagates the consequences of value x of index i. Its removals are on the trail.
func (p *prober) assume(i, x int) {
	d := p.domains
	d.e.report.Probed++
	for v := range d.e.dims[i] {
		if v != x {
			d.remove(position{i, v}, -1)
		}
	}
	d.fixpoint()
}

// removeFailed removes the values of index i that failed,
// and the values of other indices that go under all that have not. It reports whether there were any.
func (p *prober) removeFailed(i int, failed []position) bool {
	d := p.domains
	possible := d.e.dims[i] - len(failed)
	for _, c := range p.common.order {
		if p.common.removals[c.index][c.value] == possible {
			failed = append(failed, c)
		}
	}
	if len(failed) == 0 {
		return false
	}

	for _, c := range failed {
		d.remove(c, -1)
	}
	d.e.report.ProbedAway += len(failed)
	d.fixpoint()
	d.commit()
	return true
}

// hasZeros reports whether some table of index i has zeros.
func hasZeros(e *expression, i int) bool {
	for _, n := range e.tablesOf[i] {
		if !e.tables[n].isFull(e.dims) {
			return true
		}
	}
	return false
}

// consequences are what the values of one index under probe have in common.
type consequences struct {
	removals  [][]int    // by index and value: number of values of the probed index that remove it
	order     []position // those of removals that are not 0, in the order they came
	only      [][]int    // by follower and value of the probed index: the one value left; scratch of the others
	followers []int      // indices with one value left under every value so far
}

// begin makes room for a number of indices.
func (c *consequences) begin(indices int) {
	for len(c.removals) < indices {
		c.removals = append(c.removals, nil)
		c.only = append(c.only, nil)
	}
}

// end forgets everything.
func (c *consequences) end() {
	for _, p := range c.order {
		c.removals[p.index][p.value] = 0
	}
	c.order, c.followers = c.order[:0], c.followers[:0]
}

// add counts a value that is removed. Its index may be a new follower.
func (c *consequences) add(p position, follower bool) {
	for len(c.removals[p.index]) <= p.value {
		c.removals[p.index] = append(c.removals[p.index], 0)
	}
	n := &c.removals[p.index][p.value]
	if *n++; *n == 1 {
		c.order = append(c.order, p)
	}
	if follower {
		c.followers = append(c.followers, p.index)
	}
}

// narrow notes the one value that every follower has under value x, and drops those that have several.
func (c *consequences) narrow(d *domains, x int) {
	followers := c.followers[:0]
	for _, j := range c.followers {
		if d.sizes[j] > 1 {
			continue
		}
		for len(c.only[j]) <= x {
			c.only[j] = append(c.only[j], 0)
		}
		c.only[j][x] = slices.Index(d.alive[j], true)
		followers = append(followers, j)
	}
	c.followers = followers
}
