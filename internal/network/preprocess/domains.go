package preprocess

// Domains: arc consistency over the zeros of the tables.
//
// A value of an index is removed when a table has only zeros for it and the values that are left of its
// other indices: all terms with it are 0.
//
// Source: C. Bessière and J.-C. Régin,
// Arc consistency for general constraint networks (IJCAI 1997).

import "github.com/basetensor/basetensor/internal/base/pace"

// position is one value of an index, by its place among those that the expression has.
type position struct{ index, value int }

// domains says which positions of the indices of an expression are alive. It has a trail, so that
// assumptions can be taken back. Between two rules the trail is empty.
type domains struct {
	e     *expression
	pace  *pace.Pace
	alive [][]bool   // by index and position
	sizes []int      // by index: number of positions alive
	trail []position // those removed, in sequence
	queue queue      // tables to be revised
	hit   [][]bool   // scratch of revise: by mode, the positions with support
	spent int        // tuples looked at

	empty   int // index without a position alive, −1 for none
	culprit int // table that took its last one, −1 for an assumption
}

// newDomains returns the domains of e with everything alive.
func newDomains(e *expression, p *pace.Pace) *domains {
	d := &domains{e: e, pace: p, empty: -1, culprit: -1}
	total := 0
	for _, dim := range e.dims {
		total += dim
	}
	all := make([]bool, total)
	for k := range all {
		all[k] = true
	}

	d.sizes = append(d.sizes, e.dims...)
	d.alive = make([][]bool, len(e.dims))
	for i, dim := range e.dims {
		d.alive[i] = all[:dim:dim]
		all = all[dim:]
	}
	return d
}

// propagate removes the values without support, and shrinks the tables of their indices.
func (d *domains) propagate() {
	zeros := &d.e.agenda.zeros
	for zeros.len() > 0 && !d.pace.Over(ruleWork) {
		n := zeros.pop()
		if t := d.e.tables[n]; t != nil && !t.isFull(d.e.dims) {
			d.queue.push(n)
		}
	}
	d.fixpoint()
	d.commit()
}

// remove removes a position and wakes the tables that may lose support by it. remover is the table that
// has no support for it, −1 for an assumption.
func (d *domains) remove(p position, remover int) {
	i := p.index
	d.alive[i][p.value] = false
	d.sizes[i]--
	d.trail = append(d.trail, p)

	if d.sizes[i] == 0 && d.empty < 0 {
		d.empty, d.culprit = i, remover
	}

	d.pace.Over(int64(len(d.e.tablesOf[i])))
	for _, n := range d.e.tablesOf[i] {
		if n != remover && !d.e.tables[n].isFull(d.e.dims) {
			d.queue.push(n)
		}
	}
}

// undo takes all removals on the trail back.
func (d *domains) undo() {
	for _, p := range d.trail {
		d.alive[p.index][p.value] = true
		d.sizes[p.index]++
	}
	d.trail = d.trail[:0]
	d.empty, d.culprit = -1, -1
	for d.queue.len() > 0 {
		d.queue.pop()
	}
}

// fixpoint removes positions without support until none is left to remove, or an index is empty.
func (d *domains) fixpoint() {
	for d.queue.len() > 0 && d.empty < 0 && !d.pace.Over(ruleWork) {
		d.revise(d.queue.pop())
	}
}

// revise removes the positions of table n's indices that none of its non-zero entries has.
func (d *domains) revise(n int) {
	t := d.e.tables[n]
	zeros := t.support(d.e.dims)
	if zeros.hole != nil {
		d.reviseClause(n, zeros.hole)
		return
	}

	missing := 0
	for k, i := range t.scope {
		if k == len(d.hit) {
			d.hit = append(d.hit, nil)
		}
		d.hit[k] = cleared(d.hit[k], d.e.dims[i])
		missing += d.sizes[i]
	}

	arity := len(t.scope)
	d.pace.Over(int64(len(zeros.tuples)))
next:
	for p := 0; p < len(zeros.tuples) && missing > 0; p += arity {
		d.spent++
		tuple := zeros.tuples[p : p+arity]
		for k, x := range tuple {
			if !d.alive[t.scope[k]][x] {
				continue next
			}
		}
		for k, x := range tuple {
			if !d.hit[k][x] {
				d.hit[k][x] = true
				missing--
			}
		}
	}

	if missing == 0 {
		return
	}

	for k, i := range t.scope {
		for x, alive := range d.alive[i] {
			if alive && !d.hit[k][x] {
				d.remove(position{i, x}, n)
			}
		}
	}
}

// reviseClause revises table n with one zero, as a clause has, at the hole. It takes the zero's value from
// all indices if none has another value left, and from the only one that has. All other values have
// support.
func (d *domains) reviseClause(n int, hole []int32) {
	scope := d.e.tables[n].scope
	d.spent += len(scope)
	d.pace.Over(int64(len(scope)))

	first, end := 0, len(scope) // the modes that lose the value
	for k, i := range scope {
		if !d.alive[i][hole[k]] || d.sizes[i] > 1 && end-first < len(scope) {
			return
		}
		if d.sizes[i] > 1 {
			first, end = k, k+1
		}
	}
	for k := first; k < end; k++ {
		d.remove(position{scope[k], int(hole[k])}, n)
	}
}

// cleared returns n times false, in b if that has room.
func cleared(b []bool, n int) []bool {
	if cap(b) < n {
		return make([]bool, n)
	}
	b = b[:n]
	clear(b)
	return b
}

// commit makes the removals on the trail final: indices and tables shrink.
func (d *domains) commit() {
	e := d.e
	if d.empty >= 0 {
		var culprit *source
		if d.culprit >= 0 {
			culprit = e.tables[d.culprit].from
		}
		e.report.Zero = because(d.empty, culprit)
		d.undo()
		return
	}

	if len(d.trail) == 0 {
		return
	}
	e.report.ValuesRemoved += len(d.trail)

	var shrunk, touched []int
	for _, p := range d.trail {
		shrunk = append(shrunk, p.index)
	}
	shrunk = unique(shrunk)
	for _, i := range shrunk {
		touched = append(touched, e.tablesOf[i]...)
	}
	touched = unique(touched)
	for _, n := range touched {
		if d.pace.Over(int64(len(e.tables[n].data))) {
			return
		}
		e.tables[n].restrict(e.dims, d.alive)
	}

	for _, i := range shrunk {
		e.shrink(i, d.alive[i])
		d.alive[i] = d.alive[i][:d.sizes[i]]
		for x := range d.alive[i] {
			d.alive[i][x] = true
		}
	}

	d.trail = d.trail[:0]
	for _, n := range touched {
		e.changed(n)
	}
}
