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

// prober assumes values of indices, one at a time, and draws conclusions from the zeros that follow.
type prober struct {
	domains *domains
	budget  int          // entries that may still be looked at
	common  consequences // of the values of the index under probe
}

// probe assumes every value of index i in turn and finds out which values of other indices meet only zeros then. A value of i fails if
// some index has no value left under it. Then probe removes two kinds of values: those of i that failed, and those of other indices that
// meet only zeros under every value of i that did not fail. If there are none, it looks for followers: indices that have one value left
// under every value of i. It replaces the first follower for which no table becomes larger by a function of i.
func (p *prober) probe(i int) {
	d := p.domains
	e := d.expression
	if e.dims[i] == 1 || p.budget <= 0 || !hasZeros(e, i) { // without zeros in the tables of i no value of another index is removed
		return
	}
	readBefore := d.entriesRead
	p.common.reserve(len(e.dims))
	defer p.common.reset()
	failed, ok := p.assumeEach(i)
	if !ok {
		return // the context has ended
	}
	p.budget -= d.entriesRead - readBefore // the budget is a number of entries to look at

	if hasRemoved := p.removeImpossible(i, failed); hasRemoved {
		return
	}
	follower := -1 // the lowest follower for which no table becomes larger
	for _, j := range p.common.followers {
		if (follower < 0 || j < follower) && isWorthReplacing(e, j, i) {
			follower = j
		}
	}
	if follower >= 0 {
		function := slices.Clone(p.common.followerValue[follower][:e.dims[i]]) // a copy, since p.common reuses the list
		e.replaceIndex(follower, i, function)
	}
}

// assumeEach assumes each value of index i in turn. It returns the values that failed, under which some index has no value left, and
// records in p.common what follows from every other value. ok is false if the context ends.
func (p *prober) assumeEach(i int) (failed []position, ok bool) {
	d := p.domains
	for x := range d.expression.dims[i] {
		if d.pace.Over(0) { // 0, since assume counts its own work
			return nil, false
		}
		p.assume(i, x)
		hasFailed := d.emptyIndex >= 0 // an index has no value left
		if hasFailed {
			failed = append(failed, position{i, x})
			d.undo()
			continue
		}

		// The trail has the values that are removed under x. A follower has one value left under every value of i that did not fail, so it
		// is already found under the first of them.
		isFirst := len(failed) == x // all values before x failed
		for _, removal := range d.trail {
			if removal.index != i {
				mayFollow := isFirst && d.aliveCount[removal.index] == 1
				p.common.addRemoval(removal, mayFollow)
			}
		}
		p.common.updateFollowers(d, x)
		d.undo()
	}
	return failed, true
}

// assume removes all values of index i but x, and then all values that meet only zeros as a consequence. p.domains notes the removals, in
// its trail, so that the caller can undo them.
func (p *prober) assume(i, x int) {
	d := p.domains
	d.expression.report.Probed++
	const assumption = -1 // in place of the table that causes a removal
	for v := range d.expression.dims[i] {
		if v != x {
			d.remove(position{i, v}, assumption)
		}
	}
	d.runToFixpoint()
}

// removeImpossible removes values that meet only zeros, for good. These are the values of index i that failed when they were assumed, and
// the values of other indices that were removed under each value of i that did not fail. It reports whether there were any.
func (p *prober) removeImpossible(i int, failed []position) bool {
	d := p.domains
	impossible := failed
	possibleCount := d.expression.dims[i] - len(failed)
	for _, c := range p.common.removed {
		if p.common.removalCount[c.index][c.value] == possibleCount {
			impossible = append(impossible, c)
		}
	}
	if len(impossible) == 0 {
		return false
	}

	const noTable = -1 // no single table is the cause of a removal
	for _, c := range impossible {
		d.remove(c, noTable)
	}
	d.expression.report.ProbedAway += len(impossible)
	d.runToFixpoint()
	d.commit()
	return true
}

// hasZeros reports whether some table of index i has an entry that is 0.
func hasZeros(e *expression, i int) bool {
	for _, n := range e.tablesOf[i] {
		if !e.tables[n].isFull(e.dims) {
			return true
		}
	}
	return false
}

// consequences records what the values of one index, the probed one, have in common when each is assumed in turn.
type consequences struct {
	removalCount  [][]int    // by index and value: the number of values of the probed index under which it is removed
	removed       []position // the values with a count above 0, in the order of their first removals
	followers     []int      // indices that have one value left under every value of the probed index so far
	followerValue [][]int    // by follower and value of the probed index: the one value left; scratch of other indices
}

// reserve makes room for the given number of indices.
func (c *consequences) reserve(indexCount int) {
	for len(c.removalCount) < indexCount {
		c.removalCount = append(c.removalCount, nil)
		c.followerValue = append(c.followerValue, nil)
	}
}

// reset forgets all consequences, and keeps the memory.
func (c *consequences) reset() {
	for _, p := range c.removed {
		c.removalCount[p.index][p.value] = 0
	}
	c.removed, c.followers = c.removed[:0], c.followers[:0]
}

// addRemoval counts that the value p is removed under one more value of the probed index. removed lists the values that were counted at
// least once. isFollower tells that the index of p has one value left, so that it may be a function of the probed index; then addRemoval
// adds it to the followers.
func (c *consequences) addRemoval(p position, isFollower bool) {
	for len(c.removalCount[p.index]) <= p.value { // make the list long enough
		c.removalCount[p.index] = append(c.removalCount[p.index], 0)
	}
	count := &c.removalCount[p.index][p.value]
	*count++
	if *count == 1 {
		c.removed = append(c.removed, p)
	}
	if isFollower {
		c.followers = append(c.followers, p.index)
	}
}

// updateFollowers records the one value that every follower has left under value x of the probed index. d has the domains under that
// value. An index with several values left is no follower any more.
func (c *consequences) updateFollowers(d *domains, x int) {
	followers := c.followers[:0]
	for _, j := range c.followers {
		if d.aliveCount[j] > 1 {
			continue
		}
		for len(c.followerValue[j]) <= x { // make the list long enough; values x that failed keep 0
			c.followerValue[j] = append(c.followerValue[j], 0)
		}
		c.followerValue[j][x] = slices.Index(d.isAlive[j], true)
		followers = append(followers, j)
	}
	c.followers = followers
}
