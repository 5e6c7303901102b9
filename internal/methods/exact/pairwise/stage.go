package pairwise

// Staging: an operand whose fastest indices differ from a block's is copied, block after block of
// some thousand entries, into the sequence in which the kernel reads it. Read where it is, every line
// of the cache would be fetched for one of its entries.

import (
	"cmp"
	"slices"
)

const (
	nearby     = 512     // entries of an operand next to each other that a block has, if it can: neighbouring lines come together
	line       = 8       // entries of a line of the cache
	maxStaged  = 1 << 15 // entries of a staged block, and of a run for all values of a sum: 256 KiB
	topStaged  = 1 << 17 // entries of a staged block where less would not hold lines of the cache
	stageFrom  = 1 << 15 // entries of a table that does not stay in the second cache
	stagedRun  = 512     // entries of a run of a staged block
	sameSets   = 512     // entries after which lines share a set of the first cache
	maxPadding = 2 * line
)

// stage decides which operands are staged, and takes the axes that are fastest there into the block:
// as many as there is room for.
func (x *spec) stage() {
	if x.kind == tiny {
		return
	}
	var need [2]bool
	for i := range 2 {
		need[i] = x.kind == batched || x.large(i) && !x.reads(i)
	}
	if !need[0] && !need[1] {
		return
	}
	least := line
	if x.kind == batched {
		least = 1 // it is always staged
	}
	for _, most := range []int{maxStaged, topStaged} {
		for near := nearby; near >= least; near /= 2 {
			if y, ok := x.staging(need, near, most); ok {
				*x = y
				return
			}
		}
	}
}

// staging is the merge with operands staged that need it, blocks having near entries next to each other and
// most entries at most.
func (x *spec) staging(need [2]bool, near, most int) (y spec, ok bool) {
	y = *x
	if x.kind != inner && len(x.rows) == 0 {
		at := tail(x.run, stagedRun)
		y.run = x.run[at:]
		y.outer = slices.Concat(x.outer, x.run[:at])
	}
	fast := map[int]int{}
	for i := range 2 {
		if need[i] && x.large(i) && !x.reads(i) {
			x.fastest(i, near, fast)
		}
	}
	y.steps, y.inside = split(x.steps, fast)
	if x.kind != inner {
		y.sum = append(y.inside, x.sum...)
		y.outer, y.inside = split(y.outer, fast)
	}
	if x.kind == blend && count(y.sum)*count(y.run) > maxStaged {
		return y, false
	}
	for i := range 2 {
		if need[i] && !y.arrange(i, most) {
			return y, false
		}
	}
	if x.kind != inner {
		y.wander()
	}
	return y, true
}

// wander sorts the blocks: blocks that use the same staged data one after the other, and else
// so that consecutive ones are near each other in one of the tables.
func (x *spec) wander() {
	key := func(a axis) int {
		least := a.stride[2]
		for i := range 2 {
			if x.staged[i].size == 0 {
				continue
			}
			if a.stride[i] == 0 {
				return 0
			}
			least = min(least, a.stride[i])
		}
		return least
	}
	slices.SortStableFunc(x.outer, func(a, b axis) int { return cmp.Compare(key(b), key(a)) })
}

// parts are the lists of axes of a merge that operands have.
func (x *spec) parts() [][]axis { return [][]axis{x.outer, x.rows, x.columns, x.run, x.sum, x.steps} }

// large says that an operand does not stay in the second cache.
func (x *spec) large(operand int) bool {
	size := 1
	for _, list := range x.parts() {
		for _, a := range list {
			if a.stride[operand] != 0 {
				size *= a.dim
			}
		}
	}
	return size >= stageFrom
}

// fastest adds the indices of an operand that vary along near entries to a list, each with the number of
// its values that do: all, or the least divisor that is enough.
func (x *spec) fastest(operand, near int, fast map[int]int) {
	var axes []axis
	for _, list := range x.parts() {
		for _, a := range list {
			if a.stride[operand] != 0 {
				axes = append(axes, a)
			}
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.stride[operand], b.stride[operand]) })
	n := 1
	for _, a := range axes {
		if n >= near {
			break
		}
		values := (near + n - 1) / n
		for values < a.dim && a.dim%values > 0 {
			values++
		}
		values = min(values, a.dim)
		n *= values
		if had := fast[a.index]; had > 0 && values%had > 0 && had%values > 0 {
			values = a.dim
		} else {
			values = max(values, had)
		}
		fast[a.index] = values
	}
}

// reads says that an operand is read line by line as it is: along the run, or, if a panel packs it,
// along its rows or its sum.
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

// along is the number of consecutive entries along the last axes of a list.
func along(axes []axis, operand int) int {
	n := 1
	for i := len(axes) - 1; i >= 0 && axes[i].stride[operand] == n; i-- {
		n *= axes[i].dim
	}
	return n
}

// split returns the axes outside the list and the ones in it; an axis with only some values in the list is
// cut in two.
func split(axes []axis, list map[int]int) (rest, found []axis) {
	for _, a := range axes {
		inside, outside := a, a
		if values := list[a.index]; values > 0 {
			inside.dim = values
			outside.dim = a.dim / values
			for i := range outside.stride {
				outside.stride[i] *= values
			}
			found = append(found, inside)
		}
		if outside.dim > 1 {
			rest = append(rest, outside)
		}
	}
	return rest, found
}

// arrange gives an operand a place of its own for one block, the run the fastest; false where it would
// be too large.
func (x *spec) arrange(operand, most int) bool {
	parts := []*[]axis{&x.run, &x.rows, &x.columns, &x.sum, &x.inside}
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
	if size > most {
		return false
	}

	c := copying{size: 1}
	even := operand == 0 && x.smallRows() // the values of its sum stay in step
	owed := false
	for n, part := range parts {
		*part = slices.Clone(*part)
		for i := len(*part) - 1; i >= 0; i-- {
			a := &(*part)[i]
			if a.stride[operand] == 0 {
				continue
			}
			c.axes = append(c.axes, axis{dim: a.dim, stride: [3]int{a.stride[operand], c.size, 0}})
			a.stride[operand] = c.size
			c.size *= a.dim
			if c.size%sameSets != 0 || c.size/a.dim%sameSets == 0 && !owed {
				continue
			}
			owed = even && i > 0 && part == &x.sum
			if !owed && (n > 0 || i == 0) {
				c.size += line
			}
		}
	}
	c.sequence()
	x.staged[operand] = c
	return true
}
