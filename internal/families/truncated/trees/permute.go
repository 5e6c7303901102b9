package trees

// Copies between layouts:
// any axes, strides added where an axis runs along a diagonal, 0 where it repeats.

import (
	"cmp"
	"slices"
)

// axis is one loop of a copy.
type axis struct {
	dim      int
	to, from int // strides in the two layouts
}

// fuse drops axes of dimension 1 and joins axes that run through both layouts together.
func fuse(axes []axis) []axis {
	out := make([]axis, 0, len(axes))
	for _, x := range axes {
		if x.dim == 1 {
			continue
		}
		if l := len(out) - 1; l >= 0 && out[l].to == x.dim*x.to && out[l].from == x.dim*x.from {
			out[l] = axis{out[l].dim * x.dim, x.to, x.from}
			continue
		}
		out = append(out, x)
	}
	return out
}

// contiguous says whether the copy would change nothing.
func contiguous(axes []axis) bool {
	f := fuse(axes)
	return len(f) == 0 || len(f) == 1 && f[0].to == 1 && f[0].from == 1
}

const (
	tileSide = 64      // entries of a tile along what is close in one layout
	mostTile = 1 << 13 // entries of a tile
	longRun  = 8       // entries from which copy is used
)

// tiles splits loops into those within a tile,
// which is close together in both layouts, and those over tiles.
func tiles(axes []axis) (inner, outer []axis) {
	outer = slices.Clone(axes)
	size := 1
	take := func(key func(axis) int, until int) {
		slices.SortStableFunc(outer, func(x, y axis) int { return cmp.Compare(key(x), key(y)) })
		for len(outer) > 0 && size < until && size*outer[0].dim <= mostTile {
			size *= outer[0].dim
			inner = append(inner, outer[0])
			outer = outer[1:]
		}
	}

	take(func(x axis) int { return x.to }, tileSide)
	take(func(x axis) int { return x.from }, tileSide*tileSide)

	slices.SortStableFunc(inner, func(x, y axis) int { return cmp.Compare(y.to, x.to) })
	slices.SortStableFunc(outer, func(x, y axis) int { return cmp.Compare(y.to, x.to) })
	return inner, outer
}

// walk calls f(to, from) for all positions of a nest of loops, the last axis innermost.
func walk(axes []axis, f func(to, from int)) {
	digits := make([]int, len(axes))
	to, from := 0, 0
	for {
		f(to, from)
		i := len(axes) - 1
		for ; i >= 0; i-- {
			digits[i]++
			to += axes[i].to
			from += axes[i].from
			if digits[i] < axes[i].dim {
				break
			}
			to -= axes[i].dim * axes[i].to
			from -= axes[i].dim * axes[i].from
			digits[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// offset is a position in both layouts.
type offset struct{ to, from int }

// spread copies from one layout into another.
func spread(to, from []float64, axes []axis) {
	axes = fuse(axes)
	run := 1
	if l := len(axes) - 1; l >= 0 && axes[l].to == 1 && axes[l].from == 1 &&
		axes[l].dim >= longRun {
		run = axes[l].dim
		axes = axes[:l]
	}

	inner, outer := tiles(axes)
	tile := make([]offset, 0, tileSide)

	walk(inner, func(t, f int) { tile = append(tile, offset{t, f}) })
	walk(outer, func(t, f int) {
		x, y := to[t:], from[f:]
		if run > 1 {
			for _, o := range tile {
				copy(x[o.to:o.to+run], y[o.from:o.from+run])
			}
			return
		}
		for _, o := range tile {
			x[o.to] = y[o.from]
		}
	})
}

// accumulate adds from one layout into another.
func accumulate(to, from []float64, axes []axis) {
	inner, outer := tiles(fuse(axes))

	tile := make([]offset, 0, tileSide)
	walk(inner, func(t, f int) { tile = append(tile, offset{t, f}) })
	walk(outer, func(t, f int) {
		for _, o := range tile {
			to[t+o.to] += from[f+o.from]
		}
	})
}

// array is entries with a label per axis, row-major.
type array struct {
	data   []float64
	labels []int32
}

// strides returns by label the distance of its entries in a, the sum over the axes with that label.
func (a array) strides(dims []int, out []int) []int {
	out = append(out[:0], make([]int, len(dims))...)
	s := 1
	for i := len(a.labels) - 1; i >= 0; i-- {
		out[a.labels[i]] += s
		s *= dims[a.labels[i]]
	}
	return out
}

// volume is the number of entries over some labels.
func volume(dims []int, labels []int32) int {
	v := 1
	for _, l := range labels {
		v *= dims[l]
	}
	return v
}
