package pairwise

// How a block of an operand is copied into another sequence: by runs that are the same on both sides, by
// tiles that are transposed, or by lines that are scattered.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/kernel"
)

// copying is how an operand is staged: axes with strides where it is copied from, stride[0], and where to,
// stride[1]. It is empty where an operand is read as it is.
type copying struct {
	how   manner
	axes  []axis // of runs, tiles or lines
	inner []axis // of a run or line; in a tile, those that are fastest where it is copied from
	cross []axis // in a tile, those that are fastest where it is copied to
	size  int
}

// manner is the loop of a copying.
type manner uint8

const (
	byRuns  manner = iota // the inner axes follow one another on both sides
	byTiles               // four entries by four
	byLines               // the inner axes hold a line of where it is copied from
)

// sequence chooses the loop, and sorts its blocks in the sequence of their sources.
func (c *copying) sequence() {
	slices.SortFunc(c.axes, func(a, b axis) int { return b.stride[0] - a.stride[0] })
	at := len(c.axes)
	n := 1
	for at > 0 && c.axes[at-1].stride[0] == n && c.axes[at-1].stride[1] == n {
		at--
		n *= c.axes[at].dim
	}
	switch {
	case n >= line:
		c.how = byRuns
	case c.tile():
		return
	default:
		c.how = byLines
		at = len(c.axes)
		for n = 1; at > 0 && n < line; at-- {
			n *= c.axes[at-1].dim
		}
	}
	c.axes, c.inner = c.axes[:at], c.axes[at:]
}

// tile makes tiles, if four entries follow one another on either side and are no others than on the other
// side. The second half of a line comes after the first.
func (c *copying) tile() bool {
	inner, rest, ok := four(c.axes, 0)
	if !ok {
		return false
	}
	cross, rest, ok := four(rest, 1)
	if !ok {
		return false
	}
	for side := range 2 {
		i := slices.IndexFunc(rest, func(a axis) bool { return a.stride[1-side] == kernel.TileSide })
		if i >= 0 {
			half := rest[i]
			rest = append(slices.Delete(rest, i, i+1), half)
		}
	}
	c.how, c.axes, c.inner, c.cross = byTiles, rest, inner, cross
	return true
}

// four takes the axes along which four entries follow one another on a side; an axis is cut where that needs it.
func four(axes []axis, side int) (taken, rest []axis, ok bool) {
	rest = slices.Clone(axes)
	for n := 1; n < kernel.TileSide; {
		i := slices.IndexFunc(rest, func(a axis) bool { return a.stride[side] == n })
		if i < 0 {
			return nil, nil, false
		}
		a := rest[i]
		need := kernel.TileSide / n
		switch {
		case need%a.dim == 0:
			rest = slices.Delete(rest, i, i+1)
		case a.dim%need == 0:
			rest[i].dim /= need
			rest[i].stride[0] *= need
			rest[i].stride[1] *= need
			a.dim = need
		default:
			return nil, nil, false
		}
		taken = append([]axis{a}, taken...)
		n *= a.dim
	}
	return taken, rest, true
}

// place is one thread's copy of an operand.
type place struct {
	how   manner
	data  []float64
	at    int      // place of its content in the operand, −1 for nothing
	outer [2][]int // offsets of the axes, from and to
	inner [2][]int // offsets of the inner axes
	cross []int    // offsets of the others of a tile, from
	tiles kernel.Tiles
	lines kernel.Lines
}

// start makes the lists of a copying.
func (p *place) start(c *copying) {
	p.at = -1
	if c.size == 0 {
		return
	}
	p.how = c.how
	p.data = room(p.data, c.size)
	for side := range 2 {
		p.outer[side] = offsets(p.outer[side], c.axes, side)
		p.inner[side] = offsets(p.inner[side], c.inner, side)
	}
	p.cross = offsets(p.cross, c.cross, 0)
	switch {
	case p.how == byTiles:
		p.tiles.Set(p.outer[1], p.outer[0], (*[kernel.TileSide]int)(p.inner[1]), (*[kernel.TileSide]int)(p.cross))
	case p.how == byLines && p.wholeLines():
		p.lines.Set(p.outer[1], p.outer[0], (*[line]int)(p.inner[1]))
	}
}

// wholeLines says that the inner axes hold a line of where it is copied from, and no more.
func (p *place) wholeLines() bool {
	along := p.inner[0]
	return len(along) == line && along[line-1] == line-1
}

// fill copies the block that begins at a place of the operand, unless it is there; it says whether it
// was not.
func (p *place) fill(from []float64, at int) bool {
	if p.at == at {
		return false
	}
	p.at = at
	from = from[at:]
	where := p.outer[1][:len(p.outer[0])]
	along, inner := p.inner[0], p.inner[1]
	switch {
	case p.how == byRuns:
		for o, d := range p.outer[0] {
			copy(p.data[where[o]:][:len(inner)], from[d:])
		}
	case p.how == byTiles:
		p.tiles.Copy(p.data, from)
	case p.wholeLines():
		p.lines.Copy(p.data, from)
	default:
		for o, d := range p.outer[0] {
			x, y := from[d:], p.data[where[o]:]
			for i, d := range along {
				y[inner[i]] = x[d]
			}
		}
	}
	return true
}
