package preprocess

// Domains: arc consistency over the zeros of the tables.
//
// A value of an index is removed when a table has only zeros for it and the values that are left of its
// other indices: all terms with it are 0.
//
// Source: C. Bessière and J.-C. Régin,
// Arc consistency for general constraint networks (IJCAI 1997).

import "github.com/basetensor/basetensor/internal/base/pace"

// position is a value of an index, by its position among the values that the expression still has.
type position struct{ index, value int }

// domains records which values of the indices of an expression are alive: not known to meet only zeros. A removal is only noted on a trail
// at first, so that it can be undone. Between two rules the trail is empty.
type domains struct {
	expression  *expression
	pace        *pace.Pace
	isAlive     [][]bool   // by index and value
	aliveCount  []int      // by index: the number of its values that are alive
	trail       []position // removals that are not final, in sequence
	queue       queue      // tables to be revised
	hasSupport  [][]bool   // scratch of revise: by mode and value
	entriesRead int        // entries looked at so far

	emptyIndex    int // an index whose values are all removed, −1 for none
	emptyingTable int // the table for which its last value was removed, −1 for an assumption
}

// newDomains returns the domains of e, in which all values are alive.
func newDomains(e *expression, p *pace.Pace) *domains {
	d := &domains{expression: e, pace: p, emptyIndex: -1, emptyingTable: -1}
	total := 0
	for _, dim := range e.dims {
		total += dim
	}
	memory := make([]bool, total) // of the lists of all indices
	for k := range memory {
		memory[k] = true
	}

	d.aliveCount = append(d.aliveCount, e.dims...)
	d.isAlive = make([][]bool, len(e.dims))
	for i, dim := range e.dims {
		d.isAlive[i] = memory[:dim:dim]
		memory = memory[dim:]
	}
	return d
}

// propagate removes all values that meet only zeros in some table, and then the entries of these values from the tables of their indices.
// It begins with the tables that the agenda lists for this rule and that have zeros; a table that was removed meanwhile is nil.
func (d *domains) propagate() {
	zeros := &d.expression.agenda.zeros
	for zeros.len() > 0 && !d.pace.Over(ruleWork) {
		n := zeros.pop()
		if t := d.expression.tables[n]; t != nil && !t.isFull(d.expression.dims) {
			d.queue.push(n)
		}
	}
	d.runToFixpoint()
	d.commit()
}

// remove removes a value of an index from the domains, the lists of the values that are left. The trail notes the removal, so that it can
// be undone. remove queues the tables with zeros in which other values may now meet only zeros. remover is the table in which the value
// meets only zeros, or −1 if the removal is an assumption; that table need not be looked at again. The first index that loses its last
// value becomes emptyIndex. The work is only counted here (pace); the loop that looks at the queue checks the context.
func (d *domains) remove(p position, remover int) {
	i := p.index
	d.isAlive[i][p.value] = false
	d.aliveCount[i]--
	d.trail = append(d.trail, p)

	isFirstEmpty := d.aliveCount[i] == 0 && d.emptyIndex < 0
	if isFirstEmpty {
		d.emptyIndex, d.emptyingTable = i, remover
	}

	d.pace.Over(int64(len(d.expression.tablesOf[i])))
	for _, n := range d.expression.tablesOf[i] {
		if n != remover && !d.expression.tables[n].isFull(d.expression.dims) {
			d.queue.push(n)
		}
	}
}

// undo takes back all removals that are not final yet, those on the trail, and empties the queue of tables to look at.
func (d *domains) undo() {
	for _, p := range d.trail {
		d.isAlive[p.index][p.value] = true
		d.aliveCount[p.index]++
	}
	d.trail = d.trail[:0]
	d.emptyIndex, d.emptyingTable = -1, -1
	for d.queue.len() > 0 {
		d.queue.pop()
	}
}

// runToFixpoint revises the queued tables until no more value is removed, or an index has no value left.
func (d *domains) runToFixpoint() {
	for d.queue.len() > 0 && d.emptyIndex < 0 && !d.pace.Over(ruleWork) {
		d.revise(d.queue.pop())
	}
}

// revise removes the values of table n's indices that have no support. A value of an index has support if the table has an entry that is
// not 0, at that value and at living values of its other indices. A removal queues the other tables of the index. The work is only counted
// here (pace); the loop that calls revise checks whether it may go on.
func (d *domains) revise(n int) {
	t := d.expression.tables[n]
	support := t.support(d.expression.dims)
	if support.onlyZero != nil { // the table has one zero only
		d.reviseClause(n, support.onlyZero)
		return
	}
	if allSupported := d.findSupported(t, support.tuples); allSupported { // it sets d.hasSupport, by mode and value
		return
	}
	for k, i := range t.scope {
		for x, alive := range d.isAlive[i] {
			if alive && !d.hasSupport[k][x] {
				d.remove(position{i, x}, n)
			}
		}
	}
}

// findSupported sets hasSupport[k][x] for every value x of the k-th index of t that has support. tuples has, one after the other, the
// values of the indices at every entry of t that is not 0. It returns true as soon as all living values have support.
func (d *domains) findSupported(t *table, tuples []int32) (allSupported bool) {
	missing := 0 // number of living values for which no support was found yet
	for k, i := range t.scope {
		if k == len(d.hasSupport) {
			d.hasSupport = append(d.hasSupport, nil)
		}
		d.hasSupport[k] = clearedBools(d.hasSupport[k], d.expression.dims[i])
		missing += d.aliveCount[i]
	}

	arity := len(t.scope) // the length of a tuple
	d.pace.Over(int64(len(tuples)))
	for begin := 0; begin < len(tuples) && missing > 0; begin += arity {
		d.entriesRead++
		tuple := tuples[begin : begin+arity]
		if !d.areAlive(t.scope, tuple) {
			continue
		}
		for k, x := range tuple {
			if !d.hasSupport[k][x] {
				d.hasSupport[k][x] = true
				missing--
			}
		}
	}
	return missing == 0
}

// areAlive reports whether every value of a tuple is alive: value tuple[k] of index scope[k].
func (d *domains) areAlive(scope []int, tuple []int32) bool {
	for k, x := range tuple {
		if !d.isAlive[scope[k]][x] {
			return false
		}
	}
	return true
}

// reviseClause revises table n, which is 0 for one combination of values only, onlyZero, as a clause is (a disjunction of conditions on
// single variables). All values but those of onlyZero have support. Three cases:
//
// If a value of onlyZero is not alive, or if two indices have other values alive, every living value has support: nothing is removed.
//
// If exactly one index has other values alive, its value in onlyZero meets only the zero: it is removed.
//
// If no index has other values alive, the zero is the only living entry: all values of onlyZero are removed.
func (d *domains) reviseClause(n int, onlyZero []int32) {
	scope := d.expression.tables[n].scope
	d.entriesRead += len(scope)
	d.pace.Over(int64(len(scope)))

	begin, end := 0, len(scope) // the range of modes whose value is removed: all, or the one with other values
	for k, i := range scope {
		hasOthers := d.aliveCount[i] > 1
		isSecond := hasOthers && end-begin < len(scope) // the range was narrowed before
		if !d.isAlive[i][onlyZero[k]] || isSecond {
			return
		}
		if hasOthers {
			begin, end = k, k+1
		}
	}
	for k := begin; k < end; k++ {
		d.remove(position{scope[k], int(onlyZero[k])}, n)
	}
}

// clearedBools returns a list of n times false, in the memory of b if it suffices.
func clearedBools(b []bool, n int) []bool {
	if cap(b) < n {
		return make([]bool, n)
	}
	b = b[:n]
	clear(b)
	return b
}

// commit makes the removals since the last commit or undo (the trail) final: the indices lose these values, and their tables the entries
// at these values. If an index has no value left, the expression is 0; then commit reports that and takes the removals back. If the
// context ends, the expression is of no use any more.
func (d *domains) commit() {
	switch {
	case d.emptyIndex >= 0:
		d.reportZero()
		d.undo()
	case len(d.trail) > 0:
		d.expression.report.ValuesRemoved += len(d.trail)
		d.shrinkExpression()
	}
}

// reportZero reports that the expression is 0 because emptyIndex has no value left.
func (d *domains) reportZero() {
	e := d.expression
	var culprit *source       // the tables of the given expression that took its last value
	if d.emptyingTable >= 0 { // else an assumption or several tables took it
		culprit = e.tables[d.emptyingTable].source
	}
	e.report.Zero = newReason(d.emptyIndex, culprit)
}

// shrinkExpression removes the values on the trail, those whose removal is not final yet, from the indices of the expression and from
// their tables, and empties the trail. It returns in the middle of that if the context ends.
func (d *domains) shrinkExpression() {
	e := d.expression
	var shrunk, touched []int // indices that lose values, and their tables
	for _, p := range d.trail {
		shrunk = append(shrunk, p.index)
	}
	shrunk = sortedUnique(shrunk)
	for _, i := range shrunk {
		touched = append(touched, e.tablesOf[i]...)
	}
	touched = sortedUnique(touched)
	for _, n := range touched {
		if d.pace.Over(int64(len(e.tables[n].data))) {
			return
		}
		e.tables[n].keepAlive(e.dims, d.isAlive)
	}

	// The indices come second, since keepAlive reads the old dimensions. All values that are left are alive.
	for _, i := range shrunk {
		e.shrinkIndex(i, d.isAlive[i])
		d.isAlive[i] = d.isAlive[i][:d.aliveCount[i]]
		for x := range d.isAlive[i] {
			d.isAlive[i][x] = true
		}
	}

	d.trail = d.trail[:0]
	for _, n := range touched {
		e.noteChange(n)
	}
}
