package lower

// Support: values of indices that no non-zero term has.

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
	at := map[int][]*raw{} // by root
	waiting := map[*raw]bool{}
	for _, t := range queue {
		for _, v := range t.nodes {
			r := l.find(v)
			at[r] = append(at[r], t)
		}
		waiting[t] = true
	}

	for len(queue) > 0 && !l.zero && !l.pace.Over(tableWork) {
		t := queue[0]
		queue = queue[1:]
		waiting[t] = false

		hit := l.hits(t)
		for k, v := range t.nodes {
			r := l.find(v)
			if !l.shrink(r, hit[k]) {
				continue
			}
			for _, o := range at[r] {
				if o != t && !waiting[o] {
					waiting[o] = true
					queue = append(queue, o)
				}
			}
		}

		if len(t.nodes) == 0 && t.data[0] == 0 {
			l.zero = true
		}
	}
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

	left, changed := 0, false
	for x, h := range hit {
		if l.alive[r][x] && !h {
			l.alive[r][x] = false
			changed = true
		}
		if l.alive[r][x] {
			left++
		}
	}
	l.zero = l.zero || left == 0
	return changed
}

// hits returns, per mode, the values that have a non-zero entry over values that are alive.
func (l *layout) hits(t *raw) [][]bool {
	hit := make([][]bool, len(t.nodes))
	for k, d := range t.dims {
		hit[k] = make([]bool, d)
	}

	// Every entry over values that are alive, the last axis fastest.
	g := l.gather(t)
	x := make([]int, len(g.axes))
	for {
		at := 0
		for a, i := range x {
			at += g.axes[a].offset[i]
		}

		if l.pace.Over(1) {
			return hit
		}
		if t.data[at] != 0 {
			for k, a := range g.axis {
				hit[k][g.axes[a].value[x[a]]] = true
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
			return hit
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
