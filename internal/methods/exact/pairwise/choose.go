package pairwise

// The candidates among which a merge's kernel is chosen, and the model of their time.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// blend takes the last axes of the result, of any kind, as the run.
func (g *groups) blend(most int) *spec {
	at := tail(g.out, most)
	x := &spec{kind: blend, outer: g.out[:at], run: g.out[at:]}
	x.splitSum(g.sum, max(1, maxStaged/count(x.run)))
	return x
}

// panel has its run in operand v alone, and its rows in the other one;
// nil where v has no index of its own.
func (g *groups) panel(v, most int) *spec {
	if len(g.own[v]) == 0 {
		return nil
	}

	run := g.own[v][tail(g.own[v], most):]
	mine := g.own[1-v]
	row := tail(mine, listed)
	x := &spec{kind: panel, run: run, rows: mine[row:]}

	for _, o := range g.out {
		if !has(run, o) && !has(mine, o) {
			x.outer = append(x.outer, o)
		}
	}
	x.outer = append(x.outer, mine[:row]...)

	x.splitSum(g.sum, listed)

	if v == 0 {
		x.swapped = true
		for _, list := range []*[]axis{&x.outer, &x.rows, &x.run, &x.sum, &x.steps} {
			*list = swap(*list)
		}
	}
	return x
}

// batched takes the last axes of the result as the run if both operands have them, and all rows, columns and
// values of the sum into the block; nil unless that is a few matrices and each is small.
func (g *groups) batched() *spec {
	rows, columns, sum := count(g.own[0]), count(g.own[1]), count(g.sum)
	if rows < 2 || columns < 2 || sum < 2 || rows*sum > maxMatrix || columns*sum > maxMatrix || rows*columns > maxMatrix {
		return nil
	}
	at := len(g.out)
	n := 1
	for at > 0 && n*g.out[at-1].dim <= side && has(g.batch, g.out[at-1]) {
		at--
		n *= g.out[at].dim
	}
	if n < kernel.Columns {
		return nil
	}
	x := &spec{kind: batched, rows: g.own[0], columns: g.own[1], sum: g.sum, run: g.out[at:]}
	for _, o := range g.batch {
		if !has(x.run, o) {
			x.outer = append(x.outer, o)
		}
	}
	return x
}

// inner sums along the run, in the sequence of the larger operand; nil unless the result is small and
// the sum is not.
func (g *groups) inner() *spec {
	if count(g.out) > innerOut || len(g.sum) == 0 {
		return nil
	}
	sum := slices.Clone(g.sum)
	large := 0
	if g.size[1] > g.size[0] {
		large = 1
	}
	slices.SortStableFunc(sum, func(x, y axis) int { return y.stride[large] - x.stride[large] })
	at := tail(sum, maxRun)
	return &spec{kind: inner, outer: g.out, run: sum[at:], steps: sum[:at]}
}

// splitSum takes the last axes of the sum,
// of at most most values, into a block; the others are steps.
func (x *spec) splitSum(sum []axis, most int) {
	at := len(sum)
	for n := 1; at > 0 && n*sum[at-1].dim <= most; at-- {
		n *= sum[at-1].dim
	}
	if at == len(sum) && at > 0 && x.kind == panel {
		at-- // blocks of maxSum values are cut out of it
	}
	x.steps = sum[:at]
	x.sum = sum[at:]
}

// tail returns where the longest suffix begins whose dimensions multiply to at most most;
// at least one axis, if any.
func tail(list []axis, most int) int {
	at := len(list)
	for n := 1; at > 0 && (n*list[at-1].dim <= most || n == 1); at-- {
		n *= list[at-1].dim
	}
	return at
}

// count returns the number of combinations of values.
func count(list []axis) int {
	n := 1
	for i := range list {
		n *= list[i].dim
	}
	return n
}

// has reports whether an axis is in a list.
func has(list []axis, a axis) bool {
	for i := range list {
		if list[i].index == a.index {
			return true
		}
	}
	return false
}

// swap returns the axes with the operands exchanged.
func swap(list []axis) []axis {
	out := make([]axis, len(list))
	for i, a := range list {
		a.stride[0], a.stride[1] = a.stride[1], a.stride[0]
		out[i] = a
	}
	return out
}

// contiguous says that an operand has the run as the result has it.
func (x *spec) contiguous(operand int) bool {
	step := 1
	for i := len(x.run) - 1; i >= 0; i-- {
		if x.run[i].stride[operand] != step {
			return false
		}
		step *= x.run[i].dim
	}
	return true
}

// repeats is the number of blocks for which an operand is at a place it was not at before.
func (x *spec) repeats(operand int) float64 {
	n := float64(count(x.outer))
	if len(x.steps) == 0 {
		for i := len(x.outer) - 1; i >= 0 && x.outer[i].stride[operand] == 0; i-- {
			n /= float64(x.outer[i].dim)
		}
	}
	return n * float64(count(x.steps))
}

// Nanoseconds of the vector loops on a machine of today; only their ratios matter. They are the same for
// all loops, so that the choice does not depend on the processor.
const (
	perPanel    = 0.05 // of a multiplication and addition
	perBlend    = 0.15
	perInner    = 0.12
	perBlock    = 40.0  // of a block
	perTile     = 200.0 // of a block of a panel, beside: its operands are packed
	perGathered = 1.5   // of an entry that is copied together
	perCall     = 8.0   // of a call of an innermost loop
	perBatched  = 0.06  // of a multiplication and addition of matrices side by side
	perCopied   = 0.3   // of an entry that is copied with its neighbours
)

// time estimates how long the kernel takes.
func (x *spec) time(g *groups) float64 {
	outer := float64(count(x.outer))
	steps := float64(count(x.steps))
	run := float64(count(x.run))
	sum := float64(count(x.sum))
	rows := float64(count(x.rows))

	t := outer * steps * perBlock

	switch x.kind {
	case blend:
		t += g.work*perBlend + outer*steps*sum*perCall
		for i := range 2 {
			if !x.contiguous(i) {
				t += x.repeats(i) * sum * run * perGathered
			}
		}
	case panel:
		t += g.work*perPanel + outer*steps*perTile
		t += x.repeats(0) * rows * sum * 2
		if x.packs() {
			t += x.repeats(1) * sum * run * perGathered
		}
	case batched:
		t += g.work*perBatched + outer*sum*run*(rows+float64(count(x.columns)))*perCopied
		t += outer * rows * float64(count(x.columns)) * perCall
		for i := range 2 {
			if !x.contiguous(i) {
				t += g.size[i] * perGathered
			}
		}
	case inner:
		t += g.work * perInner
		for i := range 2 {
			if !x.contiguous(i) {
				t += outer * steps * run * perGathered
			}
		}
	}
	return t
}

// smallRows says that S is so small that it stays in the first cache.
func (x *spec) smallRows() bool {
	return x.kind == panel && count(x.rows)*count(x.sum) <= smallPanel
}

// apart is the stride of the sum in S where it can be read where it is staged: rows follow one another, values
// of the sum are in step. It is 0 where S is packed.
func (x *spec) apart() int {
	rows := count(x.rows)
	if x.staged[0].size == 0 || !x.smallRows() || along(x.rows, 0) != rows {
		return 0
	}
	if len(x.sum) == 0 {
		return rows
	}
	apart := x.sum[len(x.sum)-1].stride[0]
	n := apart
	for i := len(x.sum) - 1; i >= 0; i-- {
		if x.sum[i].stride[0] != n {
			return 0
		}
		n *= x.sum[i].dim
	}
	return apart
}

// packs says that V is written out as a panel: it is not contiguous, or rows enough use it and its rows are so
// far apart that they would share few sets of the cache. A small one that is staged stays in the first cache.
func (x *spec) packs() bool {
	if !x.contiguous(1) {
		return true
	}
	if x.staged[1].size > 0 && count(x.run)*count(x.sum) <= smallPanel {
		return false
	}
	return count(x.rows) >= 8 && count(x.sum) >= 8
}
