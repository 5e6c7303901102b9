package lower

// Support: excludes values of indices that only zeros have.

import "slices"

// removeUnsupportedValues excludes values of indices until every living value of every index has, in every table of it, a non-zero entry
// over living values. Z stays the same, since only zeros are left out. It sets isZero if an index has no living value any more. Tables with
// zeros wait in a queue; a table waits again if an index of it loses values. Cost: the size of the tables that have zeros, each time one of
// their indices loses values.
func (l *layout) removeUnsupportedValues() {
	queue, ok := l.tablesWithZeros()
	if !ok || len(queue) == 0 {
		return
	}

	l.alive = make([][]bool, len(l.parent))
	tablesOf := l.tablesByRoot(queue)
	for _, t := range queue {
		t.isQueued = true
	}

	for len(queue) > 0 && !l.isZero && !l.pace.Over(tableWork) {
		t := queue[0]
		queue = queue[1:]
		t.isQueued = false

		supported := l.supportedValues(t)
		for k, v := range t.nodes {
			r := l.root(v)
			var ofMode []bool
			ofMode, supported = supported[:t.dims[k]], supported[t.dims[k]:]
			if !l.intersectAlive(r, ofMode) {
				continue
			}
			for _, neighbour := range tablesOf[r] {
				if neighbour != t && !neighbour.isQueued {
					neighbour.isQueued = true
					queue = append(queue, neighbour)
				}
			}
		}

		if len(t.nodes) == 0 && t.data[0] == 0 {
			l.isZero = true
		}
	}
}

// tablesByRoot lists, by root, the tables that have its index, once per mode. All lists share one allocation.
func (l *layout) tablesByRoot(tables []*rawTable) [][]*rawTable {
	count, total := make([]int, len(l.parent)), 0
	for _, t := range tables {
		for _, v := range t.nodes {
			count[l.root(v)]++
			total++
		}
	}
	lists, memory := make([][]*rawTable, len(l.parent)), make([]*rawTable, total)
	for r, n := range count {
		lists[r], memory = memory[:0:n], memory[n:]
	}
	for _, t := range tables {
		for _, v := range t.nodes {
			r := l.root(v)
			lists[r] = append(lists[r], t)
		}
	}
	return lists
}

// tablesWithZeros lists the tables that have an entry 0 and are not absorbed. It returns false if the context has ended.
func (l *layout) tablesWithZeros() (tables []*rawTable, ok bool) {
	for _, t := range l.tables {
		if l.pace.Over(int64(len(t.data))) {
			return nil, false
		}
		if !t.isAbsorbed && hasZero(t.data) {
			tables = append(tables, t)
		}
	}
	return tables, true
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

// intersectAlive excludes the values of root r that are not supported, and reports whether any of them was alive before. It sets isZero if
// no value is alive any more.
func (l *layout) intersectAlive(r int, supported []bool) (hasChanged bool) {
	if l.alive[r] == nil {
		if !slices.Contains(supported, false) {
			return false
		}
		l.alive[r] = slices.Repeat([]bool{true}, l.dims[r])
	}

	living := 0
	for x, isSupported := range supported {
		if l.alive[r][x] && !isSupported {
			l.alive[r][x] = false
			hasChanged = true
		}
		if l.alive[r][x] {
			living++
		}
	}
	l.isZero = l.isZero || living == 0
	return hasChanged
}

// supportedValues reports for every value of every mode of t whether it has a non-zero entry over living values. The result is one list:
// the values of mode 0, then those of mode 1, and so on. It is valid until the next call, and incomplete if the context has ended.
func (l *layout) supportedValues(t *rawTable) []bool {
	values := 0
	for _, d := range t.dims {
		values += d
	}
	l.supported = slices.Grow(l.supported[:0], values)[:values]
	clear(l.supported)
	if l.isPlain(t) {
		l.markPlainSupport(t)
	} else {
		l.markLivingSupport(t)
	}
	return l.supported
}

// markPlainSupport marks, for supportedValues, the values of all non-zero entries of a plain table. It reads the value of every mode off
// the place of an entry: place 5 of a 2×3 table has the values 5 % 3 = 2 of mode 1 and 5 / 3 = 1 of mode 0.
func (l *layout) markPlainSupport(t *rawTable) {
	for place, x := range t.data {
		if l.pace.Over(1) {
			return
		}
		if x == 0 {
			continue
		}
		end := len(l.supported) // of the values of mode k
		for k := len(t.dims) - 1; k >= 0; k-- {
			d := t.dims[k]
			l.supported[end-d+place%d] = true
			place /= d
			end -= d
		}
	}
}

// markLivingSupport marks, for supportedValues, the values of the non-zero entries over living values. t may be any table.
func (l *layout) markLivingSupport(t *rawTable) {
	grid := l.livingGrid(t)
	position := make([]int, len(grid.axes))
	for {
		if l.pace.Over(1) {
			return
		}
		if t.data[grid.offset(position)] != 0 {
			begin := 0 // of the values of mode k
			for k, a := range grid.axisOf {
				l.supported[begin+grid.axes[a].value[position[a]]] = true
				begin += t.dims[k]
			}
		}
		if !grid.advance(position) {
			return
		}
	}
}

// isComplete reports whether no value of root r is excluded.
func (l *layout) isComplete(r int) bool { return l.alive == nil || l.alive[r] == nil }

// livingValues lists the values of root r that are not excluded.
func (l *layout) livingValues(r int) []int {
	values := make([]int, 0, l.dims[r])
	for x := range l.dims[r] {
		if l.isComplete(r) || l.alive[r][x] {
			values = append(values, x)
		}
	}
	return values
}

// grid addresses the entries of a raw table over living values. It has one axis per index; modes of the same index share an axis, so that
// only the diagonal over them is addressed. A position has one coordinate per axis: coordinate i of an axis is its i-th living value.
type grid struct {
	axes   []axis
	axisOf []int // by mode: its axis
}

// axis is one index of a raw table with its living values.
type axis struct {
	root   int
	value  []int // by coordinate: the living value
	offset []int // by coordinate: its share of an entry's offset in the data
}

// offset returns where in the table's data the entry at a position is.
func (g *grid) offset(position []int) int {
	offset := 0
	for a, i := range position {
		offset += g.axes[a].offset[i]
	}
	return offset
}

// advance moves position to the next entry, the last axis fastest. After the last entry it returns false and position is the first again.
func (g *grid) advance(position []int) bool {
	for a := len(position) - 1; a >= 0; a-- {
		if position[a]++; position[a] < len(g.axes[a].offset) {
			return true
		}
		position[a] = 0
	}
	return false
}

// livingGrid returns the grid of t. The offsets of modes that share an axis add up: in a 3×3 table over one index, coordinate i has the
// offset 3i + i.
func (l *layout) livingGrid(t *rawTable) grid {
	g := grid{axisOf: make([]int, len(t.nodes))}
	stride := make([]int, len(t.nodes))
	for k, s := len(t.nodes)-1, 1; k >= 0; k-- {
		stride[k] = s
		s *= t.dims[k]
	}

	for k, v := range t.nodes {
		r := l.root(v)
		a := slices.IndexFunc(g.axes, func(a axis) bool { return a.root == r })
		if a < 0 {
			a = len(g.axes)
			values := l.livingValues(r)
			g.axes = append(g.axes, axis{root: r, value: values, offset: make([]int, len(values))})
		}
		g.axisOf[k] = a
		for i, x := range g.axes[a].value {
			g.axes[a].offset[i] += x * stride[k]
		}
	}
	return g
}
