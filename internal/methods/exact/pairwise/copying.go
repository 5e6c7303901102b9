package pairwise

// How a block of an operand is copied into another sequence: by runs that are the same on both sides, by
// tiles that are transposed, or by lines that are scattered.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// copyPlan is how a block of an operand is staged. stride[0] of its axes is that in the operand, the source, and stride[1] that in the
// copy, the target. It is the zero value if an operand is read where it is.
type copyPlan struct {
	loop  copyLoop
	axes  []axis // loops over runs, tiles or lines
	inner []axis // within a run or line; in a tile, those that are fastest in the source
	cross []axis // in a tile, those that are fastest in the target
	size  int    // entries of the copy, with padding
}

// copyLoop is the kind of loop that makes a copy.
type copyLoop uint8

const (
	byRuns  copyLoop = iota // the inner axes are contiguous in source and target
	byTiles                 // transposes tiles of TileSide × TileSide entries
	byLines                 // the inner axes hold a line of the source, which is scattered over the target
)

// chooseLoop chooses the loop for the axes, and sorts runs, tiles or lines in the sequence of the source.
func (c *copyPlan) chooseLoop() {
	slices.SortFunc(c.axes, func(a, b axis) int { return b.stride[0] - a.stride[0] })
	start := len(c.axes) // of the inner axes
	n := 1
	for start > 0 && c.axes[start-1].stride[0] == n && c.axes[start-1].stride[1] == n {
		start--
		n *= c.axes[start].dim
	}
	switch {
	case n >= line:
		c.loop = byRuns
	case c.useTiles():
		return
	default:
		c.loop = byLines
		start = len(c.axes)
		for n = 1; start > 0 && n < line; start-- {
			n *= c.axes[start-1].dim
		}
	}
	c.axes, c.inner = c.axes[:start], c.axes[start:]
}

// useTiles plans the copy by tiles. It returns false, and changes nothing, if there are no axes along which TileSide entries follow each
// other in the source, and other axes along which they do in the target. A line is two tiles long; the tile with the second half of a line
// comes directly after the first.
func (c *copyPlan) useTiles() (ok bool) {
	inner, remaining, ok := splitTileSide(c.axes, 0)
	if !ok {
		return false
	}
	cross, remaining, ok := splitTileSide(remaining, 1)
	if !ok {
		return false
	}
	for side := range 2 {
		i := slices.IndexFunc(remaining, func(a axis) bool { return a.stride[1-side] == kernel.TileSide })
		if i >= 0 {
			halves := remaining[i]
			remaining = append(slices.Delete(remaining, i, i+1), halves) // the last axis is the innermost loop
		}
	}
	c.loop, c.axes, c.inner, c.cross = byTiles, remaining, inner, cross
	return true
}

// splitTileSide takes the axes along which TileSide entries follow each other in the source (side 0) or the target (side 1). It cuts an
// axis in two if only some of its values are needed. It returns false if there are no such axes.
func splitTileSide(axes []axis, side int) (taken, remaining []axis, ok bool) {
	remaining = slices.Clone(axes)
	for n := 1; n < kernel.TileSide; {
		i := slices.IndexFunc(remaining, func(a axis) bool { return a.stride[side] == n })
		if i < 0 {
			return nil, nil, false
		}
		a := remaining[i]
		values := kernel.TileSide / n // still needed
		switch {
		case values%a.dim == 0:
			remaining = slices.Delete(remaining, i, i+1)
		case a.dim%values == 0:
			remaining[i].dim /= values
			remaining[i].stride[0] *= values
			remaining[i].stride[1] *= values
			a.dim = values
		default:
			return nil, nil, false
		}
		taken = append([]axis{a}, taken...)
		n *= a.dim
	}
	return taken, remaining, true
}

// stagedBlock is one thread's copy of a block of an operand.
type stagedBlock struct {
	loop   copyLoop
	data   []float64
	offset int      // of the block in the operand; −1 if nothing is copied
	outer  [2][]int // offsets of the axes, in source and target
	inner  [2][]int // offsets of the inner axes
	cross  []int    // offsets of the cross axes of a tile, in the source
	tiles  kernel.Tiles
	lines  kernel.Lines
}

// start fills in the offsets of a copy, and has nothing copied yet. It does nothing else for the zero value.
func (p *stagedBlock) start(c *copyPlan) {
	p.offset = -1
	if c.size == 0 {
		return
	}
	p.loop = c.loop
	p.data = resize(p.data, c.size)
	for side := range 2 {
		p.outer[side] = offsets(p.outer[side], c.axes, side)
		p.inner[side] = offsets(p.inner[side], c.inner, side)
	}
	p.cross = offsets(p.cross, c.cross, 0)
	switch {
	case p.loop == byTiles:
		p.tiles.Set(p.outer[1], p.outer[0], (*[kernel.TileSide]int)(p.inner[1]), (*[kernel.TileSide]int)(p.cross))
	case p.loop == byLines && p.hasWholeLines():
		p.lines.Set(p.outer[1], p.outer[0], (*[line]int)(p.inner[1]))
	}
}

// hasWholeLines reports whether the inner axes hold exactly a line of the source.
func (p *stagedBlock) hasWholeLines() bool {
	source := p.inner[0]
	return len(source) == line && source[line-1] == line-1
}

// fill copies the block at an offset of the operand. It returns false if that block is there already.
func (p *stagedBlock) fill(operand []float64, offset int) (isCopied bool) {
	if p.offset == offset {
		return false
	}
	p.offset = offset
	from := operand[offset:]
	targets := p.outer[1][:len(p.outer[0])]
	innerSource, innerTarget := p.inner[0], p.inner[1]
	switch {
	case p.loop == byRuns:
		for o, source := range p.outer[0] {
			copy(p.data[targets[o]:][:len(innerTarget)], from[source:])
		}
	case p.loop == byTiles:
		p.tiles.Copy(p.data, from)
	case p.hasWholeLines():
		p.lines.Copy(p.data, from)
	default:
		for o, source := range p.outer[0] {
			x, y := from[source:], p.data[targets[o]:]
			for i, d := range innerSource {
				y[innerTarget[i]] = x[d]
			}
		}
	}
	return true
}
