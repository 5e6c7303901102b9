package pairwise

// How a block of an operand is copied into another sequence: by runs that are the same on both sides, by
// tiles that are transposed, or by lines that are scattered.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// copyPlan is how a block of an operand is copied into the sequence in which a kernel reads it. Of its axes stride[0] is the stride in the
// operand, the source, and stride[1] that in the copy, the target. It is the zero value if an operand is read where it is.
type copyPlan struct {
	loop  copyLoop
	axes  []axis // loops over runs, tiles or lines
	inner []axis // within a run or line; in a tile, those that are fastest in the source
	cross []axis // in a tile, those that are fastest in the target
	size  int    // number of entries of the copy, with padding
}

// copyLoop is the kind of loop that makes a copy.
type copyLoop uint8

const (
	byRuns  copyLoop = iota // the inner axes are contiguous in source and target
	byTiles                 // transposes tiles of TileSide × TileSide entries
	byLines                 // the inner axes hold a line of the source, which is scattered over the target
)

// chooseLoop chooses the loop by which a block is copied, and divides the axes into those over runs, tiles or lines (axes) and those within
// one (inner, cross). The loop is by runs if at least a line of entries follows each other in source and target, by tiles if that is
// possible, and otherwise by lines of the source.
func (c *copyPlan) chooseLoop() {
	bySourceStride := func(a, b axis) int { return b.stride[0] - a.stride[0] } // the fastest last
	slices.SortFunc(c.axes, bySourceStride)

	// The last axes that are contiguous in source and target.
	start := len(c.axes)
	n := 1
	for start > 0 && c.axes[start-1].stride[0] == n && c.axes[start-1].stride[1] == n {
		start--
		n *= c.axes[start].dim
	}

	switch {
	case n >= line:
		c.loop = byRuns
	case c.useTiles(): // it has divided the axes itself
		return
	default:
		c.loop = byLines
		start = len(c.axes)
		for n = 1; start > 0 && n < line; start-- { // the last axes that have at least a line of entries together
			n *= c.axes[start-1].dim
		}
	}
	c.axes, c.inner = c.axes[:start], c.axes[start:]
}

// useTiles plans the copy by tiles of TileSide × TileSide entries, which are transposed. It returns false, and changes nothing, if there
// are no axes along which TileSide entries follow each other in the source, and other axes along which they do in the target. A line of
// the cache is two tiles long. So the axis that leads from a tile to the next one along a line, in the source or in the target, is the
// innermost loop.
func (c *copyPlan) useTiles() (ok bool) {
	const source, target = 0, 1
	inner, remaining, ok := splitTileSide(c.axes, source)
	if !ok {
		return false
	}
	cross, remaining, ok := splitTileSide(remaining, target)
	if !ok {
		return false
	}
	for _, side := range []int{target, source} {
		i := slices.IndexFunc(remaining, func(a axis) bool { return a.stride[side] == kernel.TileSide })
		if i >= 0 {
			alongLine := remaining[i]
			remaining = append(slices.Delete(remaining, i, i+1), alongLine)
		}
	}
	c.loop, c.axes, c.inner, c.cross = byTiles, remaining, inner, cross
	return true
}

// splitTileSide splits the axes into those along which TileSide entries follow each other in the source (side 0) or the target (side 1),
// and the remaining ones. An axis is cut in two if only some of its values are needed. ok is false if there are no such axes.
func splitTileSide(axes []axis, side int) (tileAxes, remaining []axis, ok bool) {
	remaining = slices.Clone(axes)
	for n := 1; n < kernel.TileSide; { // n entries follow each other along tileAxes
		i := slices.IndexFunc(remaining, func(a axis) bool { return a.stride[side] == n })
		if i < 0 {
			return nil, nil, false
		}
		a := remaining[i]
		missing := kernel.TileSide / n
		switch {
		case missing%a.dim == 0: // all values of the axis
			remaining = slices.Delete(remaining, i, i+1)
		case a.dim%missing == 0: // missing neighbouring values; the remaining axis goes from one group of these to the next
			remaining[i].dim /= missing
			remaining[i].stride[0] *= missing
			remaining[i].stride[1] *= missing
			a.dim = missing
		default:
			return nil, nil, false
		}
		tileAxes = append([]axis{a}, tileAxes...)
		n *= a.dim
	}
	return tileAxes, remaining, true
}

// stagedBlock is one thread's copy of a block of an operand.
type stagedBlock struct {
	loop   copyLoop
	data   []float64
	offset int      // of the block in the operand; −1 if nothing is copied
	outer  [2][]int // offsets of all runs, tiles or lines, in source and target
	inner  [2][]int // offsets of the entries along the inner axes, in source and target
	cross  []int    // offsets of the entries along the cross axes of a tile, in the source
	tiles  kernel.Tiles
	lines  kernel.Lines
}

// start prepares p for copies of blocks by the plan c: it fills in the offsets of entries in the operand (side 0, the source) and in the
// copy (side 1, the target). Nothing is copied yet.
func (p *stagedBlock) start(c *copyPlan) {
	p.offset = -1    // no block
	if c.size == 0 { // an empty plan: the operand is read where it is
		return
	}
	p.loop = c.loop
	p.data = resize(p.data, c.size)
	for side := range 2 {
		p.outer[side] = offsets(p.outer[side], c.axes, side)
		p.inner[side] = offsets(p.inner[side], c.inner, side)
	}
	p.cross = offsets(p.cross, c.cross, 0)

	// The kernels for tiles and for whole lines of the cache. Other copies are plain loops over the offsets.
	switch {
	case p.loop == byTiles: // inner and cross have TileSide offsets each
		p.tiles.Set(p.outer[1], p.outer[0], (*[kernel.TileSide]int)(p.inner[1]), (*[kernel.TileSide]int)(p.cross))
	case p.loop == byLines && p.hasWholeLines():
		p.lines.Set(p.outer[1], p.outer[0], (*[line]int)(p.inner[1]))
	}
}

// hasWholeLines reports whether the inner axes hold exactly a line of the cache in the source.
func (p *stagedBlock) hasWholeLines() bool {
	source := p.inner[0]
	return len(source) == line && source[line-1] == line-1
}

// fill copies the block at an offset of the operand into p.data, by the loop of the copy plan: run by run of contiguous entries, tile by
// tile of a transposition, or line by line of the source, whose entries are scattered. It does nothing and returns false if the block is
// there already.
func (p *stagedBlock) fill(operand []float64, offset int) (isCopied bool) {
	if p.offset == offset {
		return false
	}
	p.offset = offset
	source := operand[offset:]
	outerSource, outerTarget := p.outer[0], p.outer[1][:len(p.outer[0])]
	innerSource, innerTarget := p.inner[0], p.inner[1]
	switch {
	case p.loop == byRuns:
		for o, from := range outerSource {
			copy(p.data[outerTarget[o]:][:len(innerTarget)], source[from:])
		}
	case p.loop == byTiles:
		p.tiles.Copy(p.data, source)
	case p.hasWholeLines():
		p.lines.Copy(p.data, source)
	default:
		for o, from := range outerSource {
			sourceLine, target := source[from:], p.data[outerTarget[o]:]
			for i, d := range innerSource {
				target[innerTarget[i]] = sourceLine[d]
			}
		}
	}
	return true
}
