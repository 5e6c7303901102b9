package formula

// Zeros of a table as few and short clauses: a cover of the cells that are 0 by boxes.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// coverWork is the largest number of comparisons spent on the boxes of one table. Each cell that is not covered by then
// becomes a clause.
const coverWork = 1 << 24

// largeTable is the number of entries from which a table's zeros are refused if they are no logic:
// if their clauses have more literals than the table has entries. In mildew's tables of up to
// 2^17 entries with a zero in five these are 2.7 to one; the tables of functions, and of pairs
// with few compatible values, are below one.
const largeTable = 1 << 12

// box is a set of cells: those whose values of some modes are each in a set of values of that mode.
type box struct {
	modes  []int
	values [][]bool // by position in modes and by value: it is in the set
}

// cover is the state of covering the zeros of a table by boxes.
type cover struct {
	dims, strides []int
	data          []float64
	positive      [][]int32 // the values of each mode of the cells that are not 0
	boxesOf       []int32   // by cell: the number of boxes that contain it
	work          int       // comparisons so far
}

// excludeZeros adds clauses that exclude exactly those cells of a table that are 0. A box is a set of cells: those with certain values on
// some modes (axes). Each clause states that an assignment is outside of a box of zeros (clauseOutside). A search in bounded work makes
// boxes large: over few variables first, then with more values. Boxes whose cells are all in other boxes are left out.
func (b *builder) excludeZeros(scope, dims []int, data []float64) {
	if !slices.Contains(data, 0) {
		return
	}

	c := newCover(dims, data)
	boxes, ok := b.coverZeros(c, data)
	if !ok {
		return
	}
	literals := 0 // of all clauses
	for _, zeroBox := range c.withoutCovered(boxes) {
		if b.isOver(1) {
			return
		}
		clause := b.clauseOutside(scope, zeroBox)
		if literals += len(clause); literals > len(data) && len(data) > largeTable {
			b.fail(fault.New(fault.Unsupported,
				"formula: %s: its zeros are no logic: their clauses have more literals than it has entries", b.factorName))
			return
		}
		b.addClause(clause)
	}
}

// coverZeros returns boxes of zeros that contain all zeros of a table: of one mode first, then of two, then of any number, since boxes of
// few modes have short clauses. c.boxesOf counts the boxes of each cell. ok is false after an error of the builder.
func (b *builder) coverZeros(c *cover, data []float64) (boxes []box, ok bool) {
	values := make([]int32, len(c.dims)) // of the present cell
	for modeLimit := 1; modeLimit <= anyModes; modeLimit++ {
		for cell, x := range data {
			if isCovered := c.boxesOf[cell] > 0; x != 0 || isCovered {
				continue
			}
			c.writeValues(cell, values)
			workBefore := c.work
			if zeroBox, ok := c.growBox(values, modeLimit); ok {
				boxes = append(boxes, zeroBox)
				c.countCells(zeroBox, 1)
			}
			if b.isOver(c.work - workBefore) {
				return nil, false
			}
		}
	}
	return boxes, true
}

// clauseOutside returns the clause that an assignment is outside of a box: for some variable v of the box, its value is not in the box's
// set S_v. That is the literal X_v ≠ a if S_v = {a}, and otherwise the literals X_v = b for each b that is not in S_v. scope has the
// variable of each mode.
func (b *builder) clauseOutside(scope []int, x box) []Literal {
	c := []Literal{}
	for k, mode := range x.modes {
		v := scope[mode]
		if members, first := countTrue(x.values[k]); members == 1 {
			c = append(c, b.isNot(v, first))
			continue
		}
		for a, isMember := range x.values[k] {
			if !isMember {
				c = append(c, b.is(v, a))
			}
		}
	}
	return c
}

// newCover returns a cover of the zeros of a table that has no boxes yet. If the table is so large that a search for boxes would take too
// much work, the work counts as done from the start.
func newCover(dims []int, data []float64) *cover {
	c := &cover{dims: dims, data: data, strides: make([]int, len(dims)), boxesOf: make([]int32, len(data))}
	stride := 1
	for k := len(dims) - 1; k >= 0; k-- {
		c.strides[k] = stride
		stride *= dims[k]
	}
	if len(data) > coverWork/8/len(dims) { // to look 8 times at every value of every cell would take more
		c.work = coverWork + 1
		return c
	}
	for cell, x := range data {
		if x != 0 {
			values := make([]int32, len(dims))
			c.writeValues(cell, values)
			c.positive = append(c.positive, values)
		}
	}
	return c
}

// writeValues writes to values[k] the value of mode k at a cell, which is given by its index in the table.
func (c *cover) writeValues(cell int, values []int32) {
	for k := range values {
		values[k] = int32(cell / c.strides[k] % c.dims[k])
	}
}

// anyModes as a limit of modes allows any number of them.
const anyModes = 3

// growBox returns a box of zeros that contains the given cell, an entry of the table that is 0. The cell is given by its value of each mode
// (axis). A box names some modes, at most modeLimit of them (anyModes: any number), and a set of values for each. It consists of all cells
// with such values on these modes. ok is false if no such box is found. If coverWork is used up, the box is the cell alone; since that
// names all modes, ok is then false unless modeLimit is anyModes.
func (c *cover) growBox(cell []int32, modeLimit int) (x box, ok bool) {
	if c.work > coverWork {
		modes := make([]int, len(cell))
		for k := range modes {
			modes[k] = k
		}
		return c.boxAround(cell, modes), modeLimit == anyModes
	}
	modes, ok := c.separatingModes(cell, modeLimit)
	if !ok {
		return box{}, false
	}
	x = c.boxAround(cell, modes)
	for k := range x.modes {
		c.widen(&x, k)
	}
	return x, true
}

// boxAround returns the box of all cells that have the same values as the given cell on the given modes.
func (c *cover) boxAround(cell []int32, modes []int) box {
	x := box{modes: modes}
	for _, k := range modes {
		values := make([]bool, c.dims[k])
		values[cell[k]] = true
		x.values = append(x.values, values)
	}
	return x
}

// separatingModes returns modes such that each positive cell of the table differs in at least one of them from the given cell, which is
// 0. It tries one mode, then two if modeLimit allows that, and then any number (hittingSet) if modeLimit is anyModes. ok is false if it
// finds no modes within modeLimit.
func (c *cover) separatingModes(cell []int32, modeLimit int) (modes []int, ok bool) {
	// Sets of modes as bits. A table has at most 62 modes of two values or more.
	c.work += len(c.positive) * len(cell)
	differ := make([]uint64, len(c.positive)) // by positive cell: the modes in which it differs
	common := ^uint64(0)                      // the modes in which all positive cells differ
	for i, p := range c.positive {
		for k, a := range p {
			if a != cell[k] {
				differ[i] |= 1 << k
			}
		}
		common &= differ[i]
	}
	if len(c.positive) == 0 { // the whole table is 0
		return nil, true
	}

	for k := range cell { // one mode: a mode in which all positive cells differ
		if common>>k&1 != 0 {
			return []int{k}, true
		}
	}
	for k := range cell { // two modes
		for j := range k {
			if modeLimit > 1 && c.hitsAll(differ, 1<<k|1<<j) {
				return []int{j, k}, true
			}
		}
	}
	if modeLimit < anyModes {
		return nil, false
	}
	return c.hittingSet(differ), true
}

// hittingSet returns modes (axes of a table) that hit all given sets of modes: each set has at least one of them. Bit k of a set stands for
// mode k. No set may be empty. It chooses the mode that is in most of the sets not yet hit, until all are hit. Then it leaves out each mode
// that is not needed to hit all sets. c.work counts the sets that are looked at.
func (c *cover) hittingSet(sets []uint64) (modes []int) {
	var chosen uint64 // set of modes
	for !c.hitsAll(sets, chosen) {
		chosen |= 1 << c.mostFrequent(sets, chosen)
	}

	// Leave out superfluous modes.
	for k := range c.dims {
		if chosen>>k&1 == 0 {
			continue
		}
		if c.hitsAll(sets, chosen&^(1<<k)) {
			chosen &^= 1 << k
		} else {
			modes = append(modes, k)
		}
	}
	return modes
}

// mostFrequent returns the mode that is in most of the sets that have no mode in common with chosen, the first one of equals.
func (c *cover) mostFrequent(sets []uint64, chosen uint64) (mode int) {
	highest := -1 // number of such sets with the mode
	for k := range c.dims {
		n := 0
		for _, s := range sets {
			if s&chosen == 0 && s>>k&1 != 0 {
				n++
			}
		}
		c.work += len(sets)
		if n > highest {
			mode, highest = k, n
		}
	}
	return mode
}

// hitsAll reports whether every set has a member in common with chosen. Bit k of a set stands for its member k.
func (c *cover) hitsAll(sets []uint64, chosen uint64) bool {
	for i, s := range sets {
		if s&chosen == 0 {
			c.work += i
			return false
		}
	}
	c.work += len(sets)
	return true
}

// widen replaces the values of the box's k-th mode by all values with which the box still has no positive cell. It does so only if the
// clause of the widened box has at most as many literals as all clauses of the boxes that have one of these values each.
func (c *cover) widen(x *box, k int) {
	values := c.zeroValues(x, k)

	// otherLiterals are the literals about the box's other modes. With n of d values of the mode, the clause has otherLiterals + d − n
	// literals. One clause for each value would take n·(otherLiterals + 1).
	otherLiterals := 0
	for j, m := range x.modes {
		if n, _ := countTrue(x.values[j]); j != k && n == 1 {
			otherLiterals++
		} else if j != k {
			otherLiterals += c.dims[m] - n
		}
	}
	if n, _ := countTrue(values); otherLiterals+c.dims[x.modes[k]]-n <= n*(otherLiterals+1) {
		x.values[k] = values
	}
}

// zeroValues reports for each value of the box's k-th mode whether the box would have no positive cell if it had that value there.
func (c *cover) zeroValues(x *box, k int) []bool {
	mode := x.modes[k]
	areZero := slices.Repeat([]bool{true}, c.dims[mode])
	c.work += len(c.positive) * len(x.modes)
	for _, p := range c.positive {
		isInBox := true // on all modes but the k-th
		for j, m := range x.modes {
			isInBox = isInBox && (j == k || x.values[j][p[m]])
		}
		if isInBox {
			areZero[p[mode]] = false
		}
	}
	return areZero
}

// countTrue returns the number of true entries of a list, and the position of the first one, −1 if there is none.
func countTrue(list []bool) (n, first int) {
	first = -1
	for i, x := range list {
		if x {
			if n++; first < 0 {
				first = i
			}
		}
	}
	return n, first
}

// forEachCell calls f with the index of each cell of a box, until f returns false. It reports whether f has always returned true.
func (c *cover) forEachCell(x box, f func(cell int) bool) bool {
	var walk func(k, cell int) bool // cell is the index by the values of the modes before k
	walk = func(k, cell int) bool {
		if k == len(c.dims) {
			c.work++
			return f(cell)
		}
		i := slices.Index(x.modes, k) // −1: the box allows all values
		for a := range c.dims[k] {
			isInBox := i < 0 || x.values[i][a]
			if isInBox && !walk(k+1, cell+a*c.strides[k]) {
				return false
			}
		}
		return true
	}
	return walk(0, 0)
}

// countCells adds change to the number of boxes that contain each cell of box x: 1 if the box is added, −1 if it is removed.
func (c *cover) countCells(x box, change int32) {
	c.forEachCell(x, func(cell int) bool {
		c.boxesOf[cell] += change
		return true
	})
}

// withoutCovered returns the boxes that are needed to cover all cells: it leaves out boxes whose cells are all in other boxes. It does so
// until the work reaches twice coverWork, the limit of growing boxes before. Boxes with long clauses are left out first. A box with a
// clause of one literal stays: it excludes a value, which propagation uses at once.
func (c *cover) withoutCovered(boxes []box) []box {
	longestFirst := make([]int, len(boxes)) // numbers of boxes
	for i := range longestFirst {
		longestFirst[i] = i
	}
	slices.SortStableFunc(longestFirst, func(i, j int) int { return c.clauseLength(boxes[j]) - c.clauseLength(boxes[i]) })

	// Leave out a box if each of its cells is in another box that remains: boxesOf counts the remaining boxes of a cell.
	isCovered := make([]bool, len(boxes)) // by other boxes
	for _, i := range longestFirst {
		if c.work > 2*coverWork || c.clauseLength(boxes[i]) == 1 { // all that follow have one literal, too
			break
		}
		isCovered[i] = c.forEachCell(boxes[i], func(cell int) bool { return c.boxesOf[cell] > 1 })
		if isCovered[i] {
			c.countCells(boxes[i], -1)
		}
	}

	var remaining []box
	for i, x := range boxes {
		if !isCovered[i] {
			remaining = append(remaining, x)
		}
	}
	return remaining
}

// clauseLength returns the number of literals of the clause that states that an assignment is outside of a box. The clause has one literal
// for a mode of which the box has one value. For another mode it has a literal for each value that the box does not have.
func (c *cover) clauseLength(x box) (n int) {
	for k, m := range x.modes {
		if members, _ := countTrue(x.values[k]); members == 1 {
			n++
		} else {
			n += c.dims[m] - members
		}
	}
	return n
}
