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

// stage decides which operands are staged: copied block after block into the sequence in which the kernel reads them. These are large
// operands whose cache lines the kernel would not read whole, and both operands of a batched merge. A block then has the axes along which
// the operand is fastest. It tries blocks that have many neighbouring entries of the operand first, and larger blocks last.
func (x *spec) stage() {
	if x.kind == tiny {
		return
	}
	var isStaged [2]bool
	for operand := range 2 {
		isStaged[operand] = x.kind == batched || x.isLarge(operand) && !x.readsWholeLines(operand)
	}
	if !isStaged[0] && !isStaged[1] {
		return
	}
	minNeighbours := line // fewer would not be worth a copy
	if x.kind == batched {
		minNeighbours = 1 // it is always staged
	}
	for _, maxEntries := range []int{maxStaged, maxLargeStaged} {
		for neighbours := nearby; neighbours >= minNeighbours; neighbours /= 2 {
			if staged, ok := x.withStaging(isStaged, neighbours, maxEntries); ok {
				*x = staged
				return
			}
		}
	}
}

// withStaging returns the merge with some operands staged, which means that blocks of them are copied before they are read. A block has,
// if possible, as many neighbouring entries of each large operand as neighbours says, and at most maxEntries entries. ok is false if that
// is not possible.
func (x *spec) withStaging(isStaged [2]bool, neighbours, maxEntries int) (y spec, ok bool) {
	y = *x
	if x.kind != inner && len(x.rows) == 0 { // a shorter run leaves room in the block for other axes
		start := suffixStart(x.run, stagedRun)
		y.run = x.run[start:]
		y.outer = slices.Concat(x.outer, x.run[:start])
	}
	y.moveIntoBlocks(x.valuesInBlock(isStaged, neighbours))
	if x.kind == blend && count(y.sum)*count(y.run) > maxStaged { // runs may be packed for all values of the sum together
		return y, false
	}
	for operand := range 2 {
		if isStaged[operand] && !y.arrange(operand, maxEntries) {
			return y, false
		}
	}
	if x.kind != inner {
		y.sortOuter()
	}
	return y, true
}

// valuesInBlock returns, by index, how many of its values a block has, so that it has at least the given number of neighbouring entries
// of each staged operand that is large and would not be read in whole lines of the cache. Indices that need not be in the block are not
// in the result.
func (x *spec) valuesInBlock(isStaged [2]bool, neighbours int) map[int]int {
	values := map[int]int{}
	for operand := range 2 {
		needsNeighbours := x.isLarge(operand) && !x.readsWholeLines(operand)
		if isStaged[operand] && needsNeighbours {
			x.addFastest(operand, neighbours, values)
		}
	}
	return values
}

// moveIntoBlocks moves values of indices from the loops over blocks into the block, as many of each index as valuesInBlock says. Values
// of steps are summed within the block (sum) or, of an inner merge, gone through there (insideAxes). Values of outer are gone through
// there (insideAxes).
func (x *spec) moveIntoBlocks(valuesInBlock map[int]int) {
	x.steps, x.insideAxes = splitAxes(x.steps, valuesInBlock)
	if x.kind != inner {
		x.sum = append(x.insideAxes, x.sum...)
		x.outer, x.insideAxes = splitAxes(x.outer, valuesInBlock)
	}
}

// sortOuter sorts the loops over blocks by their smallest stride in the result and in the staged operands, the largest first, so that
// consecutive blocks are near each other in one of these tables. Axes that a staged operand does not have come last: along them blocks use
// the same staged data, so these blocks follow each other.
func (x *spec) sortOuter() {
	const result = 2
	smallestStride := func(a axis) int {
		smallest := a.stride[result]
		for operand := range 2 {
			if isStaged := x.staged[operand].size > 0; !isStaged {
				continue
			}
			if a.stride[operand] == 0 { // the operand does not have the axis
				return 0
			}
			smallest = min(smallest, a.stride[operand])
		}
		return smallest
	}
	slices.SortStableFunc(x.outer, func(a, b axis) int { return cmp.Compare(smallestStride(b), smallestStride(a)) })
}

// axisLists returns all axes of a merge as the lists that they are in, before staging.
func (x *spec) axisLists() [][]axis {
	return [][]axis{x.outer, x.rows, x.columns, x.run, x.sum, x.steps}
}

// isLarge reports whether an operand (0 or 1) has so many entries that it does not stay in the second cache.
func (x *spec) isLarge(operand int) bool {
	entries := 1
	for _, axes := range x.axisLists() {
		entries *= countEntries(axes, operand)
	}
	return entries >= stageFrom
}

// countEntries returns the number of entries of an operand along some axes. The stride of an axis is 0 if the operand does not have it.
func countEntries(axes []axis, operand int) int {
	entries := 1
	for _, a := range axes {
		if a.stride[operand] != 0 {
			entries *= a.dim
		}
	}
	return entries
}

// addFastest adds the fastest indices of an operand to valuesInBlock, so that a block has at least the given number of neighbouring entries
// of the operand. valuesInBlock[v] is how many values of index v a block has: all of them, or the smallest divisor of the dimension that is
// enough. If the other operand has set valuesInBlock[v] already, the larger number counts, or all values if neither number divides the
// other.
func (x *spec) addFastest(operand, neighbours int, valuesInBlock map[int]int) {
	var axes []axis
	for _, list := range x.axisLists() {
		for _, a := range list {
			if a.stride[operand] != 0 {
				axes = append(axes, a)
			}
		}
	}
	byStride := func(a, b axis) int { return cmp.Compare(a.stride[operand], b.stride[operand]) }
	slices.SortFunc(axes, byStride)

	n := 1 // neighbouring entries so far
	for _, a := range axes {
		if n >= neighbours {
			break
		}
		values := (neighbours + n - 1) / n // neighbours/n, rounded up
		for values < a.dim && a.dim%values > 0 {
			values++
		}
		values = min(values, a.dim)
		n *= values
		presentValues := valuesInBlock[a.index] // set for the other operand; 0: not set
		isFitting := presentValues == 0 || values%presentValues == 0 || presentValues%values == 0
		if isFitting {
			values = max(values, presentValues)
		} else {
			values = a.dim
		}
		valuesInBlock[a.index] = values
	}
}

// readsWholeLines reports whether the kernel reads whole lines of the cache of an operand that is not staged. A panel, out[rows, run] +=
// S[rows, k] · V[k, run], packs its operands, so that it is enough if at least a line of entries is contiguous along one of the operand's
// two groups of axes: for S (operand 0) the rows or the sum over k, for V (operand 1) the run or the sum. Other kinds read along the run.
func (x *spec) readsWholeLines(operand int) bool {
	if x.kind != panel {
		return x.isContiguous(operand)
	}
	across := x.run // of V
	if operand == 0 {
		across = x.rows // of S
	}
	return contiguousEntries(across, operand) >= line || contiguousEntries(x.sum, operand) >= line
}

// contiguousEntries returns how many entries of an operand follow each other along the last axes of a list: 1 if the last axis has a stride
// other than 1.
func contiguousEntries(axes []axis, operand int) int {
	n := 1
	for i := len(axes) - 1; i >= 0 && axes[i].stride[operand] == n; i-- {
		n *= axes[i].dim
	}
	return n
}

// splitAxes splits axes, which are loops, into loops over blocks and loops within a block. valuesInBlock[v] is how many values of index v
// a block has, 0 if the index is outside of blocks. An axis of which a block has only some values is cut in two: 6 values with 2 in a
// block are 3 blocks, at twice the stride, of 2 values each.
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

// arrange plans the copy of one block of an operand, and sets the operand's strides within the block to those in the copy. In the copy the
// run is fastest, then come rows, columns, the sum and insideAxes. If the block has more than maxEntries entries, arrange returns false and
// changes nothing. Where entries that are used together would share a set of the cache, a line of padding makes their distance longer
// (planCopy).
func (x *spec) arrange(operand, maxEntries int) bool {
	lists := []*[]axis{&x.run, &x.rows, &x.columns, &x.sum, &x.insideAxes}
	if x.kind == inner { // a block has all of its result
		lists = append(lists, &x.outer)
	}
	entries := 1
	for _, list := range lists {
		entries *= countEntries(*list, operand)
	}
	if entries > maxEntries {
		return false
	}

	x.staged[operand] = x.planCopy(operand, lists)
	return true
}

// planCopy returns the copy of a block of an operand over lists of axes, the fastest list first, and sets the operand's strides in the
// lists to those in the copy. It goes from the fastest axis on: c.size is the distance of the values of the next axis. After the first axis
// with which the distance is a multiple of sameSets, it adds a line of padding: entries at such a distance share a set of the first cache,
// which holds only a few of them.
//
// S, operand 0 of a panel, is read in its copy if it is small (hasSmallS). Then all values of the sum have to be at equal distances in the
// copy. So no padding is added between two axes of the sum: it is due (isPaddingDue), and added after the last of them.
func (x *spec) planCopy(operand int, lists []*[]axis) copyPlan {
	c := copyPlan{size: 1}
	needsEqualSteps := operand == 0 && x.hasSmallS()
	isPaddingDue := false
	for n, list := range lists {
		*list = slices.Clone(*list)
		for i := len(*list) - 1; i >= 0; i-- {
			a := &(*list)[i]
			if a.stride[operand] == 0 {
				continue // the operand does not have the axis
			}
			c.axes = append(c.axes, axis{dim: a.dim, stride: [3]int{a.stride[operand], c.size, 0}}) // in the operand, and in the copy
			a.stride[operand] = c.size
			c.size *= a.dim

			// n is the number of the list: list 0 is the run of the kernel, the entries that it reads in a row.
			sharesSets := c.size%sameSets == 0
			sharedBefore := c.size/a.dim%sameSets == 0 // so the padding was added before this axis, or is due
			if !sharesSets || sharedBefore && !isPaddingDue {
				continue
			}
			isPaddingDue = needsEqualSteps && i > 0 && list == &x.sum
			isWithinRun := n == 0 && i > 0 // no padding there: the kernel reads the run as contiguous
			if !isPaddingDue && !isWithinRun {
				c.size += line
			}
		}
	}
	c.chooseLoop()
	return c
}
