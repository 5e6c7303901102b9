package pairwise

// The candidates among which a merge's kernel is chosen, and the model of their time.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// blend returns a blend, out[run] += A[k, run] · B[k, run]. The run are the last axes of the result, of at most maxEntries entries,
// whichever operands have them.
func (g *groups) blend(maxEntries int) *spec {
	start := suffixStart(g.out, maxEntries)
	x := &spec{kind: blend, outer: g.out[:start], run: g.out[start:]}
	x.splitSum(g.sum, max(1, maxStaged/count(x.run)))
	return x
}

// panel returns a panel, out[rows, run] += S[rows, k] · V[k, run], in which operand v (0 or 1) is V. The run are axes that only V has, of
// at most maxEntries entries. The rows are axes that only S has. It returns nil if V has no such axes.
func (g *groups) panel(v, maxEntries int) *spec {
	if len(g.exclusive[v]) == 0 {
		return nil
	}
	axesOfV, axesOfS := g.exclusive[v], g.exclusive[1-v]
	run := axesOfV[suffixStart(axesOfV, maxEntries):]
	rowStart := suffixStart(axesOfS, maxListed) // the offsets of at most maxListed rows are listed, and of as many values of the sum
	x := &spec{kind: panel, run: run, rows: axesOfS[rowStart:]}

	// All other axes of the result are outer.
	for _, o := range g.out {
		if !hasAxis(run, o) && !hasAxis(axesOfS, o) {
			x.outer = append(x.outer, o)
		}
	}
	x.outer = append(x.outer, axesOfS[:rowStart]...)
	x.splitSum(g.sum, maxListed)

	if v == 0 { // V of a panel is operand 1
		x.isSwapped = true
		for _, list := range []*[]axis{&x.outer, &x.rows, &x.run, &x.sum, &x.steps} {
			*list = swapOperands(*list)
		}
	}
	return x
}

// batched returns a merge of matrices side by side, out[rows, columns, run] = Σ_k A[rows, k, run] · B[k, columns, run]. Rows are the axes
// that only A and the result have, columns those that only B and the result have. The run is the last axes of the result that both operands
// have, one pair of matrices for each position. The outer axes are the others that both have. All rows, columns and values of the sum are
// within a block. The result is nil if the matrices are too large or too small, or if the run is too short.
func (g *groups) batched() *spec {
	rows, columns, sum := count(g.exclusive[0]), count(g.exclusive[1]), count(g.sum)
	isTooSmall := rows < 2 || columns < 2 || sum < 2
	isTooLarge := rows*sum > maxMatrix || columns*sum > maxMatrix || rows*columns > maxMatrix
	if isTooSmall || isTooLarge {
		return nil
	}
	start := len(g.out) // of the run
	matrices := 1
	for start > 0 {
		last := g.out[start-1]
		if matrices*last.dim > maxMatrices || !hasAxis(g.batch, last) {
			break
		}
		start--
		matrices *= last.dim
	}
	if matrices < kernel.Columns { // the kernel computes so many at a time
		return nil
	}
	x := &spec{kind: batched, rows: g.exclusive[0], columns: g.exclusive[1], sum: g.sum, run: g.out[start:]}
	for _, o := range g.batch {
		if !hasAxis(x.run, o) {
			x.outer = append(x.outer, o)
		}
	}
	return x
}

// inner returns an inner merge, out[o] = Σ_run A[o, run] · B[o, run]. The axes of the sum are in the sequence of the larger operand, and
// the last ones are the run. It returns nil if the result is large, or if nothing is summed.
func (g *groups) inner() *spec {
	if count(g.out) > maxInnerOut || len(g.sum) == 0 {
		return nil
	}
	sum := slices.Clone(g.sum)
	larger := 0
	if g.size[1] > g.size[0] {
		larger = 1
	}
	slices.SortStableFunc(sum, func(x, y axis) int { return y.stride[larger] - x.stride[larger] })
	start := suffixStart(sum, maxRun)
	return &spec{kind: inner, outer: g.out, run: sum[start:], steps: sum[:start]}
}

// splitSum divides the axes of the sum. The last ones, of at most maxValues values together, are summed within a block (x.sum), and the
// others block after block (x.steps). For a panel, x.sum has the last axis even if that has more than maxValues values: a panel cuts the
// sum into pieces of maxSum values itself.
func (x *spec) splitSum(sum []axis, maxValues int) {
	start := len(sum)
	for n := 1; start > 0 && n*sum[start-1].dim <= maxValues; start-- {
		n *= sum[start-1].dim
	}
	if start == len(sum) && start > 0 && x.kind == panel {
		start--
	}
	x.steps = sum[:start]
	x.sum = sum[start:]
}

// suffixStart returns the start of the longest suffix of axes with at most maxEntries combinations of values. The suffix has at least one
// axis if there is any, even if that one has more values.
func suffixStart(axes []axis, maxEntries int) int {
	start := len(axes)
	for n := 1; start > 0 && (n*axes[start-1].dim <= maxEntries || n == 1); start-- {
		n *= axes[start-1].dim
	}
	return start
}

// count returns the number of combinations of values of some axes. It is 1 if there are none.
func count(list []axis) int {
	n := 1
	for i := range list {
		n *= list[i].dim
	}
	return n
}

// hasAxis reports whether an axis of the same index is in a list.
func hasAxis(list []axis, a axis) bool {
	for i := range list {
		if list[i].index == a.index {
			return true
		}
	}
	return false
}

// swapOperands returns copies of the axes with operands 0 and 1 exchanged.
func swapOperands(list []axis) []axis {
	swapped := make([]axis, len(list))
	for i, a := range list {
		a.stride[0], a.stride[1] = a.stride[1], a.stride[0]
		swapped[i] = a
	}
	return swapped
}

// isContiguous reports whether the entries of a run follow each other in an operand (0 or 1), in the sequence of the run.
func (x *spec) isContiguous(operand int) bool {
	entries := 1
	for i := len(x.run) - 1; i >= 0; i-- {
		if x.run[i].stride[operand] != entries {
			return false
		}
		entries *= x.run[i].dim
	}
	return true
}

// countGathers returns how often the data of an operand has to be gathered: the number of blocks that read other entries of the operand
// than the block before. There is a block for each value of the outer axes and, within that, for each of the steps of the sum. With
// steps, all blocks count, since both operands have the axes of the sum. Without steps, blocks do not count that differ from the one
// before only in last outer axes that the operand does not have (stride 0).
func (x *spec) countGathers(operand int) float64 {
	n := float64(count(x.outer))
	if len(x.steps) == 0 {
		for i := len(x.outer) - 1; i >= 0 && x.outer[i].stride[operand] == 0; i-- { // the last axis is the fastest loop
			n /= float64(x.outer[i].dim)
		}
	}
	return n * float64(count(x.steps))
}

// Nanoseconds of parts of the kernels, in the model of their time. Only the ratios matter. They are the same on all processors, so that the
// choice does not depend on the processor.
const (
	perPanel    = 0.05  // of a multiplication and addition of a panel
	perBlend    = 0.15  // of a multiplication and addition of a blend
	perInner    = 0.12  // of a multiplication and addition of an inner merge
	perBlock    = 40.0  // of a block
	perTile     = 200.0 // of a block of a panel, in addition: its operands are packed
	perGathered = 1.5   // of an entry that is copied together
	perCall     = 8.0   // of a call of an innermost loop
	perBatched  = 0.06  // of a multiplication and addition of matrices side by side
	perCopied   = 0.3   // of an entry that is copied with its neighbours
)

// time returns an estimate of how long the kernel takes, in nanoseconds: for the blocks, for the multiplications (g.work), for calls of the
// innermost loop, and for the entries of operands that are copied first. There is a block for each value of outer, axes of the result, and
// of steps, axes that are summed. Entries are copied if an operand is not contiguous along the run, and for a panel or matrices side by
// side, whose operands are packed. The constants per… are nanoseconds.
func (x *spec) time(g *groups) float64 {
	outer := float64(count(x.outer))
	steps := float64(count(x.steps))
	run := float64(count(x.run))
	sum := float64(count(x.sum))
	rows := float64(count(x.rows))
	columns := float64(count(x.columns))

	t := outer * steps * perBlock
	switch x.kind {
	case blend: // out[run] += A[k, run] · B[k, run]
		t += g.work*perBlend + outer*steps*sum*perCall
		for i := range 2 {
			if !x.isContiguous(i) {
				t += x.countGathers(i) * sum * run * perGathered
			}
		}
	case panel: // out[rows, run] += S[rows, k] · V[k, run]
		t += g.work*perPanel + outer*steps*perTile
		t += x.countGathers(0) * rows * sum * 2 // S is packed: 2 ns an entry
		if x.packsV() {
			t += x.countGathers(1) * sum * run * perGathered
		}
	case batched: // out[rows, columns, run] = Σ_k A[rows, k, run] · B[k, columns, run]
		t += g.work*perBatched + outer*sum*run*(rows+columns)*perCopied // the entries of A and of B in each block
		t += outer * rows * columns * perCall
		for i := range 2 {
			if !x.isContiguous(i) {
				t += g.size[i] * perGathered
			}
		}
	case inner: // out[o] = Σ_run A[o, run] · B[o, run]
		t += g.work * perInner
		for i := range 2 {
			if !x.isContiguous(i) {
				t += outer * steps * run * perGathered
			}
		}
	}
	return t
}

// hasSmallS reports whether S of a panel is so small that it stays in the first cache.
func (x *spec) hasSmallS() bool {
	return x.kind == panel && count(x.rows)*count(x.sum) <= smallPanel
}

// strideInS returns the distance of the values k of the sum in S, operand 0 of a panel merge, out[rows, run] += S[rows, k] · V[k, run]. It
// returns 0 if S has to be packed. S can be read where it is staged if its rows follow each other, and the values of the sum are at equal
// distances.
func (x *spec) strideInS() int {
	rows := count(x.rows)
	isStaged := x.staged[0].size > 0
	if !isStaged || !x.hasSmallS() || contiguousEntries(x.rows, 0) != rows {
		return 0
	}
	if len(x.sum) == 0 {
		return rows
	}
	distance := x.sum[len(x.sum)-1].stride[0]
	expected := distance // the stride of an axis with which all distances are equal
	for i := len(x.sum) - 1; i >= 0; i-- {
		if x.sum[i].stride[0] != expected {
			return 0
		}
		expected *= x.sum[i].dim
	}
	return distance
}

// packsV reports whether V, operand 1 of a panel merge, out[rows, run] += S[rows, k] · V[k, run], is written out in the sequence in which
// the kernel reads it. It is if V is not contiguous, or if enough rows of the result use it and its own rows are so far apart that they
// would share few sets of the cache. A small V that is staged and contiguous stays in the first cache and is not written out.
func (x *spec) packsV() bool {
	if !x.isContiguous(1) {
		return true
	}
	isStaged := x.staged[1].size > 0
	if isStaged && count(x.run)*count(x.sum) <= smallPanel {
		return false
	}
	return count(x.rows) >= 8 && count(x.sum) >= 8 // enough uses of V to pay for a copy, and enough rows of V to collide
}
