package pairwise

// Staging: an operand whose fastest indices are not those of a block is copied, block after block of
// some thousand entries, into the sequence in which the kernel reads it. Read where it is, every line
// of the cache would be fetched for one of its entries.

import (
	"cmp"
	"slices"
)

const (
	nearby    = 32      // entries of an operand next to each other that a block has: neighbouring lines come together
	line      = 8       // entries of a line of the cache
	maxStaged = 1 << 15 // entries of a staged block, and of a run for all values of a sum: 256 KiB
	stageFrom = 1 << 15 // entries of a table that does not stay in the second cache
)

// copying is how an operand is staged: its axes, with strides there and where it is copied to. The
// last inner ones are copied by a loop over a list, they hold a line of both sides. It is empty where
// an operand is read as it is.
type copying struct {
	axes  []axis // stride[0] is where it is copied from, stride[1] where to
	inner int
	size  int
}

// stage decides which operands are staged, and takes the axes that are fastest there into the block.
func (x *spec) stage() {
	if x.kind == tiny {
		return
	}
	var fast []int
	var need [2]bool
	for i := range 2 {
		list := x.fastest(i)
		need[i] = len(list) > 0 && !x.reads(i)
		if need[i] {
			fast = append(fast, list...)
		}
	}
	if !need[0] && !need[1] {
		return
	}

	y := *x
	y.steps, y.inside = split(x.steps, fast)
	if x.kind != inner {
		y.sum = append(y.inside, x.sum...)
		y.outer, y.inside = split(x.outer, fast)
	}
	if x.kind == blend && count(y.sum)*count(y.run) > maxStaged {
		return
	}
	staged := false
	for i := range 2 {
		staged = need[i] && y.arrange(i) || staged
	}
	if staged {
		*x = y
	}
}

// fastest lists the indices of an operand that vary along a few lines of the cache; none for a small one.
func (x *spec) fastest(operand int) []int {
	var axes []axis
	size := 1
	for _, list := range [][]axis{x.outer, x.rows, x.run, x.sum, x.steps} {
		for _, a := range list {
			if a.stride[operand] != 0 {
				axes = append(axes, a)
				size *= a.dim
			}
		}
	}
	if size < stageFrom {
		return nil
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.stride[operand], b.stride[operand]) })
	var list []int
	n := 1
	for _, a := range axes {
		if n >= nearby {
			break
		}
		n *= a.dim
		list = append(list, a.index)
	}
	return list
}

// reads says that an operand is read line by line as it is: along the run, or what a panel packs along
// its rows or its sum.
func (x *spec) reads(operand int) bool {
	if x.kind != panel {
		return x.contiguous(operand)
	}
	across := x.run
	if operand == 0 {
		across = x.rows
	}
	return along(across, operand) >= line || along(x.sum, operand) >= line
}

// along is how many entries follow one another along the last axes of a list.
func along(axes []axis, operand int) int {
	n := 1
	for i := len(axes) - 1; i >= 0 && axes[i].stride[operand] == n; i-- {
		n *= axes[i].dim
	}
	return n
}

// split returns the axes that are in no list, and those that are.
func split(axes []axis, list []int) (rest, found []axis) {
	for _, a := range axes {
		if slices.Contains(list, a.index) {
			found = append(found, a)
		} else {
			rest = append(rest, a)
		}
	}
	return rest, found
}

// arrange gives an operand a place of its own for one block, the run the fastest; false where it would
// be too large.
func (x *spec) arrange(operand int) bool {
	parts := []*[]axis{&x.run, &x.rows, &x.sum, &x.inside}
	if x.kind == inner {
		parts = append(parts, &x.outer)
	}
	size := 1
	for _, part := range parts {
		for _, a := range *part {
			if a.stride[operand] != 0 {
				size *= a.dim
			}
		}
	}
	if size > maxStaged {
		return false
	}

	c := copying{size: 1}
	for _, part := range parts {
		*part = slices.Clone(*part)
		for i := len(*part) - 1; i >= 0; i-- {
			a := &(*part)[i]
			if a.stride[operand] == 0 {
				continue
			}
			c.axes = append(c.axes, axis{dim: a.dim, stride: [3]int{a.stride[operand], c.size, 0}})
			a.stride[operand] = c.size
			c.size *= a.dim
		}
	}
	c.sequence()
	x.staged[operand] = c
	return true
}

// sequence sorts the axes as they are copied: last those along a line where it is copied from, before
// them those along a line where it is copied to, and before them the others as they are.
func (c *copying) sequence() {
	by := func(side int) func(a, b axis) int {
		return func(a, b axis) int { return b.stride[side] - a.stride[side] }
	}
	slices.SortFunc(c.axes, by(0))
	from := len(c.axes)
	for n := 1; from > 0 && n < line; from-- {
		n *= c.axes[from-1].dim
	}
	rest := c.axes[:from]
	slices.SortFunc(rest, by(1))
	to := len(rest)
	for n := 1; to > 0 && n < line; to-- {
		n *= rest[to-1].dim
	}
	slices.SortFunc(rest[:to], by(0))
	c.inner = len(c.axes) - to
}

// place is one thread's copy of an operand.
type place struct {
	data  []float64
	at    int      // where what it holds is in the operand, −1 for nothing
	outer [2][]int // offsets of the axes but the inner ones, from and to
	inner [2][]int // offsets of those
}

// start makes the lists of a copying.
func (p *place) start(c *copying) {
	p.at = -1
	if c.size == 0 {
		return
	}
	p.data = room(p.data, c.size)
	for side := range 2 {
		at := len(c.axes) - c.inner
		p.outer[side] = offsets(p.outer[side], c.axes[:at], side)
		p.inner[side] = offsets(p.inner[side], c.axes[at:], side)
	}
}

// fill copies the block that begins at a place of the operand, unless it is there; it says whether it
// was not.
func (p *place) fill(from []float64, at int) bool {
	if p.at == at {
		return false
	}
	p.at = at
	innerTo := p.inner[1]
	outerTo := p.outer[1][:len(p.outer[0])]
	for o, d := range p.outer[0] {
		x, y := from[at+d:], p.data[outerTo[o]:]
		for i, d := range p.inner[0] {
			y[innerTo[i]] = x[d]
		}
	}
	return true
}
