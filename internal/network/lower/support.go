package lower

// Support: values of indices that no non-zero term has.

import "slices"

// support removes values from indices until every remaining value of every index has, in every
// table, a non-zero entry over remaining values. Exact: only zeros are left out. It sets zero when
// an index has no value left.
// Cost: the size of the tables that have zeros, for each time one of their indices shrinks.
func (l *layout) support() {
	queue, ok := l.withZeros()
	if !ok || len(queue) == 0 {
		return
	}

	l.alive = make([][]bool, len(l.parent))
	tables := l.byRoot(queue)
	for _, t := range queue {
		t.waiting = true
	}

	for len(queue) > 0 && !l.zero && !l.pace.Over(tableWork) {
		t := queue[0]
		queue = queue[1:]
		t.waiting = false

		hit := l.hits(t)
		for k, v := range t.nodes {
			r := l.find(v)
			var modeHits []bool
			modeHits, hit = hit[:t.dims[k]], hit[t.dims[k]:]
			if !l.shrink(r, modeHits) {
				continue
			}
			for _, o := range tables[r] {
				if o != t && !o.waiting {
					o.waiting = true
					queue = append(queue, o)
				}
			}
		}

		if len(t.nodes) == 0 && t.data[0] == 0 {
			l.zero = true
		}
	}
}

// byRoot lists the tables that have an index, by its root.
func (l *layout) byRoot(tables []*raw) [][]*raw {
	count, all := make([]int, len(l.parent)), 0
	for _, t := range tables {
		for _, v := range t.nodes {
			count[l.find(v)]++
			all++
		}
	}
	lists, room := make([][]*raw, len(l.parent)), make([]*raw, all)
	for r, n := range count {
		lists[r], room = room[:0:n], room[n:]
	}
	for _, t := range tables {
		for _, v := range t.nodes {
			r := l.find(v)
			lists[r] = append(lists[r], t)
		}
	}
	return lists
}

// withZeros lists the tables that have zeros; false where the time is over.
func (l *layout) withZeros() (list []*raw, ok bool) {
	for _, t := range l.tables {
		if l.pace.Over(int64(len(t.data))) {
			return nil, false
		}
		if !t.gone && hasZero(t.data) {
			list = append(list, t)
		}
	}
	return list, true
}

// hasZero reports whether an entry is 0.
func hasZero(data []float64) bool {
	for _, x := range data {
		if x == 0 {
			return true
		}
	}
	return false
}

// shrink keeps the values of root r that hit names, and says whether any was removed.
func (l *layout) shrink(r int, hit []bool) bool {
	if l.alive[r] == nil {
		all := true
		for _, h := range hit {
			all = all && h
		}
		if all {
			return false
		}
		l.alive[r] = make([]bool, l.dims[r])
		for x := range l.alive[r] {
			l.alive[r][x] = true
		}
	}

	alive, changed := 0, false
	for x, h := range hit {
		if l.alive[r][x] && !h {
			l.alive[r][x] = false
			changed = true
		}
		if l.alive[r][x] {
			alive++
		}
	}
	l.zero = l.zero || alive == 0
	return changed
}

// hits says of the values of every mode, mode after mode, which have a non-zero entry over values that are alive. The list is good until
// the next call.
func (l *layout) hits(t *raw) []bool {
	values := 0
	for _, d := range t.dims {
		values += d
	}
	l.hit = slices.Grow(l.hit[:0], values)[:values]
	clear(l.hit)
	if l.plain(t) {
		l.hitsOfAll(t)
	} else {
		l.hitsOfSome(t)
	}
	return l.hit
}

// hitsOfAll is hits of a table whose modes are different indices, all values of which are alive.
func (l *layout) hitsOfAll(t *raw) {
	for place, x := range t.data {
		if l.pace.Over(1) {
			return
		}
		if x == 0 {
			continue
		}
		end := len(l.hit)
		for k := len(t.dims) - 1; k >= 0; k-- {
			d := t.dims[k]
			l.hit[end-d+place%d] = true
			place /= d
			end -= d
		}
	}
}

// hitsOfSome is hits of any table: every entry over values that are alive, the last axis fastest.
func (l *layout) hitsOfSome(t *raw) {
	g := l.gather(t)
	x := make([]int, len(g.axes))
	for {
		place := 0
		for a, i := range x {
			place += g.axes[a].offset[i]
		}

		if l.pace.Over(1) {
			return
		}
		if t.data[place] != 0 {
			begin := 0
			for k, a := range g.axis {
				l.hit[begin+g.axes[a].value[x[a]]] = true
				begin += t.dims[k]
			}
		}

		a := len(x) - 1
		for ; a >= 0; a-- {
			if x[a]++; x[a] < len(g.axes[a].offset) {
				break
			}
			x[a] = 0
		}
		if a < 0 {
			return
		}
	}
}

// whole reports whether no value of root r was excluded.
func (l *layout) whole(r int) bool { return l.alive == nil || l.alive[r] == nil }

// values lists the values of root r that are alive.
func (l *layout) values(r int) []int {
	out := make([]int, 0, l.dims[r])
	for x := range l.dims[r] {
		if l.whole(r) || l.alive[r][x] {
			out = append(out, x)
		}
	}
	return out
}

// axis is one index of a raw table restricted to its living values: their places in the data.
type axis struct {
	node   int // root
	value  []int
	offset []int
}

// gathering is a raw table as axes: one per index, modes of one index together (a diagonal).
type gathering struct {
	axes []axis
	axis []int // mode → axis
}

// gather returns the axes of a table: modes of one index share an axis, whose offsets add up.
func (l *layout) gather(t *raw) gathering {
	g := gathering{axis: make([]int, len(t.nodes))}
	stride := make([]int, len(t.nodes))
	for k, s := len(t.nodes)-1, 1; k >= 0; k-- {
		stride[k] = s
		s *= t.dims[k]
	}

	for k, v := range t.nodes {
		r := l.find(v)
		g.axis[k] = -1
		for j, a := range g.axes {
			if a.node == r {
				g.axis[k] = j
				for i, x := range a.value {
					g.axes[j].offset[i] += x * stride[k]
				}
			}
		}

		if g.axis[k] < 0 {
			a := axis{node: r, value: l.values(r)}
			for _, x := range a.value {
				a.offset = append(a.offset, x*stride[k])
			}
			g.axis[k] = len(g.axes)
			g.axes = append(g.axes, a)
		}
	}
	return g
}
