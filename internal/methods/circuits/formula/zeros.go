package formula

// Zeros of a table as few and short clauses: a cover of the cells that are 0 by boxes.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// coverWork bounds the comparisons spent on the boxes of one table. Each cell still uncovered
// becomes a clause.
const coverWork = 1 << 24

// largeTable is the size in entries from which a table's zeros are refused if they are no logic:
// where their clauses have more literals than the table has entries. In mildew's tables of up to
// 2^17 entries with a zero in five these are 2.7 to one; the tables of functions, and of pairs
// with few compatible values, are below one.
const largeTable = 1 << 12

// box is a set of cells: for some of the variables, the values that are in it.
type box struct {
	modes  []int
	values [][]bool // by place in modes
}

// cover is the state of covering the zeros of a table.
type cover struct {
	dims, strides []int
	data          []float64
	positive      [][]int32 // the digits of cells that are not 0
	times         []int32   // by cell: boxes that have it
	work          int
}

// zeros adds clauses that exclude just those cells of a table that are 0. A clause says that a box of zeros is left: x_v ∉ S_v for a
// variable v of the box, which is the literal X_v ≠ a where S_v = {a}, and X_v = b for every b that is not in S_v otherwise. Every box
// is as large as a search in bounded work makes it (few variables first, then more values); boxes that others cover together are left
// out.
func (b *builder) zeros(scope, dims []int, data []float64) {
	if !slices.Contains(data, 0) {
		return
	}
	c := newCover(dims, data)
	var boxes []box
	digits := make([]int32, len(dims))
	for most := range 3 { // boxes of one variable first, then of two: their clauses are the shortest
		for cell, x := range data {
			if x != 0 || c.times[cell] > 0 {
				continue
			}
			c.digits(cell, digits)
			before := c.work
			if found, ok := c.grow(digits, most+1); ok {
				boxes = append(boxes, found)
				c.mark(found, 1)
			}
			if b.over(c.work - before) {
				return
			}
		}
	}

	literals := 0
	for _, found := range c.needed(boxes) {
		if b.over(1) {
			return
		}
		clause := b.leaves(scope, dims, found)
		if literals += len(clause); literals > len(data) && len(data) > largeTable {
			b.fail(fault.New(fault.Unsupported,
				"formula: %s: its zeros are no logic: their clauses have more literals than it has entries", b.name))
			return
		}
		b.clause(clause)
	}
}

// leaves is the clause that says that a box is left.
func (b *builder) leaves(scope, dims []int, x box) []Literal {
	c := []Literal{}
	for k, mode := range x.modes {
		v := scope[mode]
		if n, first := count(x.values[k]); n == 1 {
			c = append(c, b.not(v, first))
			continue
		}
		for a, in := range x.values[k] {
			if !in {
				c = append(c, b.is(v, a))
			}
		}
	}
	return c
}

func newCover(dims []int, data []float64) *cover {
	c := &cover{dims: dims, data: data, strides: make([]int, len(dims)), times: make([]int32, len(data))}
	step := 1
	for k := len(dims) - 1; k >= 0; k-- {
		c.strides[k] = step
		step *= dims[k]
	}
	if len(data) > coverWork/8/len(dims) {
		c.work = coverWork + 1
		return c
	}
	for cell, x := range data {
		if x != 0 {
			d := make([]int32, len(dims))
			c.digits(cell, d)
			c.positive = append(c.positive, d)
		}
	}
	return c
}

// digits writes a cell's values.
func (c *cover) digits(cell int, into []int32) {
	for k := range into {
		into[k] = int32(cell / c.strides[k] % c.dims[k])
	}
}

// grow returns a box of zeros around a cell, of at most that many variables; any number where that is 3.
func (c *cover) grow(at []int32, most int) (box, bool) {
	if c.work > coverWork {
		modes := make([]int, len(at))
		for k := range modes {
			modes[k] = k
		}
		return c.single(at, modes), most == 3
	}
	modes, ok := c.few(at, most)
	if !ok {
		return box{}, false
	}
	x := c.single(at, modes)
	for k := range x.modes {
		c.raise(&x, k)
	}
	return x, true
}

// single is the box of the cells that agree with one on some variables.
func (c *cover) single(at []int32, modes []int) box {
	x := box{modes: modes}
	for _, k := range modes {
		values := make([]bool, c.dims[k])
		values[at[k]] = true
		x.values = append(x.values, values)
	}
	return x
}

// few returns few variables on which no positive cell agrees with a zero one: one or two where that
// suffices, else a greedy hitting set of the differences, less its superfluous members. It reports
// whether at most that many do.
func (c *cover) few(at []int32, most int) ([]int, bool) {
	c.work += len(c.positive) * len(at)
	differ := make([]uint64, len(c.positive)) // a bit for each mode: at most 62 modes have two values or more
	common := ^uint64(0)
	for i, p := range c.positive {
		for k, a := range p {
			if a != at[k] {
				differ[i] |= 1 << k
			}
		}
		common &= differ[i]
	}
	if len(c.positive) == 0 {
		return nil, true
	}
	for k := range at {
		if common>>k&1 != 0 {
			return []int{k}, true
		}
	}
	for k := range at {
		for j := range k {
			if most > 1 && c.hits(differ, 1<<k|1<<j) {
				return []int{j, k}, true
			}
		}
	}

	if most < 3 {
		return nil, false
	}

	var chosen uint64
	for !c.hits(differ, chosen) {
		best, by := 0, -1
		for k := range at {
			n := 0
			for _, d := range differ {
				if d&chosen == 0 && d>>k&1 != 0 {
					n++
				}
			}
			c.work += len(differ)
			if n > by {
				best, by = k, n
			}
		}
		chosen |= 1 << best
	}
	var modes []int
	for k := range at {
		if chosen>>k&1 == 0 {
			continue
		}
		if c.hits(differ, chosen&^(1<<k)) {
			chosen &^= 1 << k
		} else {
			modes = append(modes, k)
		}
	}
	return modes, true
}

// hits reports whether every set has a member among the chosen.
func (c *cover) hits(sets []uint64, chosen uint64) bool {
	for i, s := range sets {
		if s&chosen == 0 {
			c.work += i
			return false
		}
	}
	c.work += len(sets)
	return true
}

// raise adds all values to a box's variable with which it still has no positive cell, if one clause for them together is no longer
// than one each.
func (c *cover) raise(x *box, k int) {
	mode := x.modes[k]
	values := slices.Repeat([]bool{true}, c.dims[mode])
	c.work += len(c.positive) * len(x.modes)
positive:
	for _, p := range c.positive {
		for j, m := range x.modes {
			if j != k && !x.values[j][p[m]] {
				continue positive
			}
		}
		values[p[mode]] = false
	}

	others := 0
	for j, m := range x.modes {
		if n, _ := count(x.values[j]); j != k && n == 1 {
			others++
		} else if j != k {
			others += c.dims[m] - n
		}
	}
	if n, _ := count(values); others+c.dims[mode]-n <= n*(others+1) {
		x.values[k] = values
	}
}

// count returns the number of true entries, and the first of them.
func count(list []bool) (n, first int) {
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

// each calls f with the cells of a box until that says false.
func (c *cover) each(x box, f func(cell int) bool) bool {
	var walk func(k, cell int) bool
	walk = func(k, cell int) bool {
		if k == len(c.dims) {
			c.work++
			return f(cell)
		}
		at := slices.Index(x.modes, k)
		for a := range c.dims[k] {
			if (at < 0 || x.values[at][a]) && !walk(k+1, cell+a*c.strides[k]) {
				return false
			}
		}
		return true
	}
	return walk(0, 0)
}

// mark counts a box in, or out, with its cells.
func (c *cover) mark(x box, by int32) {
	c.each(x, func(cell int) bool {
		c.times[cell] += by
		return true
	})
}

// needed leaves boxes out, those with the longest clauses first, all of whose cells others have.
func (c *cover) needed(boxes []box) []box {
	length := func(x box) (n int) {
		for k, m := range x.modes {
			if has, _ := count(x.values[k]); has == 1 {
				n++
			} else {
				n += c.dims[m] - has
			}
		}
		return n
	}
	order := make([]int, len(boxes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return length(boxes[j]) - length(boxes[i]) })
	gone := make([]bool, len(boxes))
	for _, i := range order {
		if c.work > 2*coverWork || length(boxes[i]) == 1 {
			break // an impossible value is reported at once
		}
		gone[i] = c.each(boxes[i], func(cell int) bool { return c.times[cell] > 1 })
		if gone[i] {
			c.mark(boxes[i], -1)
		}
	}
	var kept []box
	for i, x := range boxes {
		if !gone[i] {
			kept = append(kept, x)
		}
	}
	return kept
}
