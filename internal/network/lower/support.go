package lower

// Support: excludes values of indices that only zeros have.

import "slices"

// removeUnsupportedValues excludes values of indices that meet only zeros. Afterwards every value that is left, a living one, has in every
// table of its index an entry that is not 0 and whose other values are living, too. Z stays the same, since only zeros are left out. It
// sets isZero if an index has no living value any more. The queue has the tables with zeros; a table is put into it again when one of its
// indices loses values. Cost: the size of the tables that have zeros, each time one of their indices loses values.
func (l *layout) removeUnsupportedValues() {
	queue, ok := l.tablesWithZeros()
	if !ok || len(queue) == 0 {
		return
	}

	l.isAlive = make([][]bool, len(l.parent))
	tablesOf := l.tablesByRoot(queue)
	for _, t := range queue {
		t.isQueued = true
	}

	for len(queue) > 0 && !l.isZero && !l.pace.Over(tableWork) {
		t := queue[0]
		queue = queue[1:]
		t.isQueued = false

		for _, root := range l.excludeUnsupported(t) {
			for _, neighbour := range tablesOf[root] {
				if neighbour != t && !neighbour.isQueued {
					neighbour.isQueued = true
					queue = append(queue, neighbour)
				}
			}
		}

		if len(t.nodes) == 0 && t.data[0] == 0 { // a table without indices is a factor of Z
			l.isZero = true
		}
	}
}

// excludeUnsupported excludes the values of the indices of t that have no support: that meet only zeros and excluded values in t. It
// returns the roots of the indices that lost values. It sets isZero if an index has no value left.
func (l *layout) excludeUnsupported(t *rawTable) (changedRoots []int) {
	isSupported := l.supportedValues(t) // the values of mode 0, then those of mode 1, and so on
	for k, node := range t.nodes {
		root := l.root(node)
		var inMode []bool
		inMode, isSupported = isSupported[:t.dims[k]], isSupported[t.dims[k]:]
		if hasChanged := l.intersectAlive(root, inMode); hasChanged {
			changedRoots = append(changedRoots, root)
		}
	}
	return changedRoots
}

// tablesByRoot returns for every root, the node that stands for an index, which of the given tables have that index; a table is listed once
// for each mode with the index. All lists share one allocation.
func (l *layout) tablesByRoot(tables []*rawTable) [][]*rawTable {
	count, total := make([]int, len(l.parent)), 0
	for _, t := range tables {
		for _, node := range t.nodes {
			count[l.root(node)]++
			total++
		}
	}
	tablesOf, memory := make([][]*rawTable, len(l.parent)), make([]*rawTable, total)
	for root, n := range count {
		tablesOf[root], memory = memory[:0:n], memory[n:]
	}
	for _, t := range tables {
		for _, node := range t.nodes {
			root := l.root(node)
			tablesOf[root] = append(tablesOf[root], t)
		}
	}
	return tablesOf
}

// tablesWithZeros returns the tables of the expression that have an entry 0. Absorbed tables are not part of it. ok is false if the context
// has ended.
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

// intersectAlive excludes those values of the index of a root that are not supported, and reports whether any of them was alive before. It
// sets l.isZero if no value is alive any more. isAlive[root] is nil as long as all values are alive.
func (l *layout) intersectAlive(root int, isSupported []bool) (hasChanged bool) {
	if l.isAlive[root] == nil { // all values are alive
		if !slices.Contains(isSupported, false) {
			return false
		}
		l.isAlive[root] = slices.Repeat([]bool{true}, l.dims[root])
	}

	livingCount := 0
	for x, supported := range isSupported {
		if l.isAlive[root][x] && !supported {
			l.isAlive[root][x] = false
			hasChanged = true
		}
		if l.isAlive[root][x] {
			livingCount++
		}
	}
	l.isZero = l.isZero || livingCount == 0
	return hasChanged
}

// supportedValues returns, for every value of every mode of t, whether the value has support: whether t has an entry with this value that
// is not 0 and whose other values are all alive. The result is one list: the values of mode 0, then those of mode 1, and so on. It is
// valid until the next call, and incomplete if the context has ended.
func (l *layout) supportedValues(t *rawTable) []bool {
	valueCount := 0
	for _, d := range t.dims {
		valueCount += d
	}
	l.supportBuffer = slices.Grow(l.supportBuffer[:0], valueCount)[:valueCount]
	clear(l.supportBuffer)
	if l.isPlain(t) {
		l.markPlainSupport(t)
	} else {
		l.markLivingSupport(t)
	}
	return l.supportBuffer
}

// markPlainSupport marks the values of all entries of t that are not 0 in supportBuffer, which has the values of mode 0, then those of mode
// 1, and so on. All values of t are alive. It computes the value of every mode from the position of an entry: position 5 of a 2×3 table has
// the values 5 % 3 = 2 of mode 1 and 5 / 3 = 1 of mode 0.
func (l *layout) markPlainSupport(t *rawTable) {
	for position, x := range t.data {
		if l.pace.Over(1) {
			return
		}
		if x == 0 {
			continue
		}
		end := len(l.supportBuffer) // of the values of mode k
		for k := len(t.dims) - 1; k >= 0; k-- {
			d := t.dims[k]
			l.supportBuffer[end-d+position%d] = true
			position /= d
			end -= d
		}
	}
}

// markLivingSupport looks for the entries of t that are not 0 and whose values are all alive, and marks their values in supportBuffer.
// This list has the values of mode 0, then those of mode 1, and so on. t may be any table. If the context ends, the marks are incomplete.
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
				value := grid.axes[a].value[position[a]]
				l.supportBuffer[begin+value] = true
				begin += t.dims[k]
			}
		}
		if hasNext := grid.advance(position); !hasNext {
			return
		}
	}
}

// isComplete reports whether no value of the index of a root is excluded.
func (l *layout) isComplete(root int) bool { return l.isAlive == nil || l.isAlive[root] == nil }

// livingValues returns the values of the index of a root that are not excluded.
func (l *layout) livingValues(root int) []int {
	values := make([]int, 0, l.dims[root])
	for x := range l.dims[root] {
		if l.isComplete(root) || l.isAlive[root][x] {
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

// offset returns the offset of an entry in the table's data. position has a coordinate per axis, which is the number of a living value; the
// offsets of all axes add up.
func (g *grid) offset(position []int) int {
	offset := 0
	for a, coordinate := range position {
		offset += g.axes[a].offset[coordinate]
	}
	return offset
}

// advance moves position to the next entry, the last axis fastest, and returns true. After the last entry it returns false, and position is
// that of the first entry again.
func (g *grid) advance(position []int) bool {
	for a := len(position) - 1; a >= 0; a-- {
		if position[a]++; position[a] < len(g.axes[a].offset) {
			return true
		}
		position[a] = 0
	}
	return false
}

// livingGrid returns the grid of t, which addresses its entries over living values. It has one axis per index. The offsets of modes that
// share an axis add up: in a 3×3 table over one index, coordinate i has the offset 3i + i.
func (l *layout) livingGrid(t *rawTable) grid {
	g := grid{axisOf: make([]int, len(t.nodes))}
	stride := make([]int, len(t.nodes)) // by mode
	for k, size := len(t.nodes)-1, 1; k >= 0; k-- {
		stride[k] = size
		size *= t.dims[k]
	}

	for k, node := range t.nodes {
		root := l.root(node)
		a := slices.IndexFunc(g.axes, func(a axis) bool { return a.root == root })
		if isNew := a < 0; isNew {
			a = len(g.axes)
			values := l.livingValues(root)
			g.axes = append(g.axes, axis{root: root, value: values, offset: make([]int, len(values))})
		}
		g.axisOf[k] = a
		for coordinate, x := range g.axes[a].value {
			g.axes[a].offset[coordinate] += x * stride[k]
		}
	}
	return g
}
