package pairwise

// Staging: an operand whose fastest indices differ from a block's is copied, block after block of
// some thousand entries, into the sequence in which the kernel reads it. If it were read where it is, every line
// of the cache would be fetched for one of its entries.

import (
	"cmp"
	"slices"
)

const (
	nearby         = 512     // entries of an operand next to each other that a block has, if it can: neighbouring lines come together
	line           = 8       // entries of a line of the cache
	maxStaged      = 1 << 15 // entries of a staged block, and of a run for all values of a sum: 256 KiB
	maxLargeStaged = 1 << 17 // entries of a staged block, if a block of maxStaged would not hold lines of the cache
	stageFrom      = 1 << 15 // entries of a table that does not stay in the second cache
	stagedRun      = 512     // entries of a run of a staged block
	sameSets       = 512     // entries after which lines share a set of the first cache
	maxPadding     = 2 * line
)

// stage decides which operands are staged. For these it moves axes along which they are fastest into the block, as many as there is room
// for: it tries blocks that have many neighbouring entries of the operand first.
func (x *spec) stage() {
	if x.kind == tiny {
		return
	}
	var isStaged [2]bool
	for i := range 2 {
		isStaged[i] = x.kind == batched || x.isLarge(i) && !x.readsWholeLines(i)
	}
	if !isStaged[0] && !isStaged[1] {
		return
	}
	minNear := line
	if x.kind == batched {
		minNear = 1 // it is always staged
	}
	for _, maxEntries := range []int{maxStaged, maxLargeStaged} {
		for near := nearby; near >= minNear; near /= 2 {
			if y, ok := x.withStaging(isStaged, near, maxEntries); ok {
				*x = y
				return
			}
		}
	}
}

// withStaging returns the merge with these operands staged. A block has near neighbouring entries of each and at most maxEntries entries.
// It returns false if that is not possible.
func (x *spec) withStaging(isStaged [2]bool, near, maxEntries int) (y spec, ok bool) {
	y = *x
	if x.kind != inner && len(x.rows) == 0 { // a shorter run leaves room in the block for other axes
		start := suffixStart(x.run, stagedRun)
		y.run = x.run[start:]
		y.outer = slices.Concat(x.outer, x.run[:start])
	}
	valuesInBlock := map[int]int{} // by index
	for i := range 2 {
		if isStaged[i] && x.isLarge(i) && !x.readsWholeLines(i) {
			x.addFastest(i, near, valuesInBlock)
		}
	}
	// The values that are in the block leave the loops over blocks. Those of steps are summed within the block, or, if kind is inner, gone
	// through by inside. Those of outer are gone through by inside.
	y.steps, y.insideAxes = splitAxes(x.steps, valuesInBlock)
	if x.kind != inner {
		y.sum = append(y.insideAxes, x.sum...)
		y.outer, y.insideAxes = splitAxes(y.outer, valuesInBlock)
	}
	if x.kind == blend && count(y.sum)*count(y.run) > maxStaged {
		return y, false
	}
	for i := range 2 {
		if isStaged[i] && !y.arrange(i, maxEntries) {
			return y, false
		}
	}
	if x.kind != inner {
		y.sortOuter()
	}
	return y, true
}

// sortOuter sorts the loops over blocks by their strides, the largest first. Axes that a staged operand does not have come last, so that
// blocks that use the same staged data follow each other. Otherwise consecutive blocks are near each other in one of the tables.
func (x *spec) sortOuter() {
	smallestStride := func(a axis) int {
		smallest := a.stride[2]
		for i := range 2 {
			if x.staged[i].size == 0 {
				continue
			}
			if a.stride[i] == 0 {
				return 0
			}
			smallest = min(smallest, a.stride[i])
		}
		return smallest
	}
	slices.SortStableFunc(x.outer, func(a, b axis) int { return cmp.Compare(smallestStride(b), smallestStride(a)) })
}

// axisLists returns all lists of axes that operands have, before staging.
func (x *spec) axisLists() [][]axis {
	return [][]axis{x.outer, x.rows, x.columns, x.run, x.sum, x.steps}
}

// isLarge reports whether an operand does not stay in the second cache.
func (x *spec) isLarge(operand int) bool {
	size := 1
	for _, list := range x.axisLists() {
		for _, a := range list {
			if a.stride[operand] != 0 {
				size *= a.dim
			}
		}
	}
	return size >= stageFrom
}

// addFastest adds the fastest indices of an operand to valuesInBlock, so that a block has at least near neighbouring entries of it. The
// value of an index is how many of its values a block has: all of them, or the smallest divisor of its dimension that is enough. If another
// operand needs a number that does not fit, it is all of them.
func (x *spec) addFastest(operand, near int, valuesInBlock map[int]int) {
	var axes []axis
	for _, list := range x.axisLists() {
		for _, a := range list {
			if a.stride[operand] != 0 {
				axes = append(axes, a)
			}
		}
	}
	slices.SortFunc(axes, func(a, b axis) int { return cmp.Compare(a.stride[operand], b.stride[operand]) })
	n := 1 // neighbouring entries so far
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
		if before := valuesInBlock[a.index]; before > 0 && values%before > 0 && before%values > 0 {
			values = a.dim
		} else {
			values = max(values, before)
		}
		valuesInBlock[a.index] = values
	}
}

// readsWholeLines reports whether the kernel reads whole lines of an operand where it is: along the run or, if a panel packs it, along
// its rows or its sum.
func (x *spec) readsWholeLines(operand int) bool {
	if x.kind != panel {
		return x.isContiguous(operand)
	}
	across := x.run
	if operand == 0 {
		across = x.rows
	}
	return contiguousEntries(across, operand) >= line || contiguousEntries(x.sum, operand) >= line
}

// contiguousEntries returns how many entries of an operand follow each other along the last axes of a list.
func contiguousEntries(axes []axis, operand int) int {
	n := 1
	for i := len(axes) - 1; i >= 0 && axes[i].stride[operand] == n; i-- {
		n *= axes[i].dim
	}
	return n
}

// splitAxes splits axes into loops over blocks and loops within a block. An axis of which a block has only some values is cut in two: 6
// values with 2 in a block are 3 blocks, at twice the stride, of 2 values each.
func splitAxes(axes []axis, valuesInBlock map[int]int) (overBlocks, inBlock []axis) {
	for _, a := range axes {
		inside, outside := a, a
		if values := valuesInBlock[a.index]; values > 0 {
			inside.dim = values
			outside.dim = a.dim / values
			for i := range outside.stride {
				outside.stride[i] *= values
			}
			inBlock = append(inBlock, inside)
		}
		if outside.dim > 1 {
			overBlocks = append(overBlocks, outside)
		}
	}
	return overBlocks, inBlock
}

// arrange plans the copy of one block of an operand, with the run the fastest, and sets the operand's strides within the block to those of
// the copy. It adds lines of padding, so that entries that are used together do not share a set of the first cache. It returns false if the
// block has more than maxEntries entries.
func (x *spec) arrange(operand, maxEntries int) bool {
	lists := []*[]axis{&x.run, &x.rows, &x.columns, &x.sum, &x.insideAxes}
	if x.kind == inner {
		lists = append(lists, &x.outer)
	}
	size := 1
	for _, list := range lists {
		for _, a := range *list {
			if a.stride[operand] != 0 {
				size *= a.dim
			}
		}
	}
	if size > maxEntries {
		return false
	}

	c := copyPlan{size: 1}
	needsEqualSteps := operand == 0 && x.hasSmallS() // so that the kernel can read S where it is staged: see strideInS
	isPaddingDue := false
	for n, list := range lists {
		*list = slices.Clone(*list)
		for i := len(*list) - 1; i >= 0; i-- {
			a := &(*list)[i]
			if a.stride[operand] == 0 {
				continue
			}
			c.axes = append(c.axes, axis{dim: a.dim, stride: [3]int{a.stride[operand], c.size, 0}})
			a.stride[operand] = c.size
			c.size *= a.dim
			if c.size%sameSets != 0 || c.size/a.dim%sameSets == 0 && !isPaddingDue {
				continue
			}
			isPaddingDue = needsEqualSteps && i > 0 && list == &x.sum // it waits until all axes of the sum are in
			if !isPaddingDue && (n > 0 || i == 0) {
				c.size += line
			}
		}
	}
	c.chooseLoop()
	x.staged[operand] = c
	return true
}
