package trees

// The product of two tensors over labelled axes:
//
//	out[b, m, n] = Σ_k A[b, m, k] · B[b, k, n]
//
// A label that one operand alone has is summed, one that the result alone has is repeated, and one that a tensor has twice runs along its
// diagonal. Copies between layouts take any axes, with strides added where an axis runs along a diagonal, 0 where it repeats.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/linalg"
)

// array is entries with a label per axis, row-major.
type array struct {
	data   []float64
	labels []int32
}

// strides returns by label the distance of its entries in a, the sum over the axes with that label.
func (a array) strides(dims []int) []int {
	out := make([]int, len(dims))
	s := 1
	for _, l := range slices.Backward(a.labels) {
		out[l] += s
		s *= dims[l]
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

// product is two arrays to be multiplied, the labels of the result, and the dimensions of the labels. An operand without data is the
// number 1. Of a product that is remembered, node and from are the nodes of the result and of the operands, −1 for one that is no node.
type product struct {
	out  array
	in   [2]array
	dims []int
	node int32
	from [2]int32
}

// kernel multiplies tensors. Its buffers come from its arena and go back to it.
type kernel struct {
	linalg.Work
	arena.Arena
	flops float64 // so far
}

// multiply returns the result in a buffer.
func (k *kernel) multiply(p product) array {
	dims := p.dims
	by := p.roles()
	batches, m, n, inner := volume(dims, by.both), volume(dims, by.first), volume(dims, by.second), volume(dims, by.sum)
	x, xBorrowed := k.pack(p.in[0], dims, slices.Concat(by.both, by.first, by.sum))
	y, yBorrowed := k.pack(p.in[1], dims, slices.Concat(by.both, by.sum, by.second))
	z := array{data: k.Get(batches * m * n), labels: slices.Concat(by.both, by.first, by.second)}
	k.matrices(z.data, x, y, batches, m, inner, n)
	k.flops += 2 * float64(batches) * float64(m) * float64(n) * float64(inner)
	if xBorrowed {
		k.Put(x)
	}
	if yBorrowed {
		k.Put(y)
	}
	to, from := p.out.strides(dims), z.strides(dims)
	var axes []axis
	for _, l := range slices.Concat(by.alone, z.labels) {
		axes = append(axes, axis{dims[l], to[l], from[l]})
	}
	size := volume(dims, p.out.labels)
	if size == len(z.data) && contiguous(axes) {
		return array{data: z.data, labels: p.out.labels}
	}
	out := array{data: k.Get(size), labels: p.out.labels}
	clear(out.data)
	spread(out.data, z.data, axes, false)
	k.Put(z.data)
	return out
}

// roles are the labels of a product by the tensors that have them.
type roles struct {
	both   []int32 // both operands and the result: batches
	first  []int32 // the first operand and the result
	second []int32 // the second operand and the result
	sum    []int32 // both operands
	alone  []int32 // the result
}

// roles sorts the labels in the sequence of the result, then of the operands. Labels of one operand alone have no role.
func (p product) roles() (by roles) {
	where := make([]uint8, len(p.dims))
	for i, t := range [3]array{p.in[0], p.in[1], p.out} {
		for _, l := range t.labels {
			where[l] |= 1 << i
		}
	}
	for _, labels := range [3][]int32{p.out.labels, p.in[0].labels, p.in[1].labels} {
		for _, l := range labels {
			switch where[l] {
			case inFirst | inSecond | inResult:
				by.both = append(by.both, l)
			case inFirst | inResult:
				by.first = append(by.first, l)
			case inSecond | inResult:
				by.second = append(by.second, l)
			case inFirst | inSecond:
				by.sum = append(by.sum, l)
			case inResult:
				by.alone = append(by.alone, l)
			}
			where[l] = 0
		}
	}
	return by
}

// pack lays a out as layout, summing over every other label; it returns a's own entries if they are laid out like that, and otherwise a
// buffer to be put back.
func (k *kernel) pack(a array, dims []int, layout []int32) (packed []float64, borrowed bool) {
	if a.data == nil {
		return []float64{1}, false
	}
	from, to := a.strides(dims), array{labels: layout}.strides(dims)
	wanted := make([]bool, len(dims))
	for _, l := range layout {
		wanted[l] = true
	}
	var axes []axis
	summed := false
	for _, l := range a.labels {
		if !wanted[l] {
			wanted[l] = true
			summed = summed || dims[l] > 1
			axes = append(axes, axis{dims[l], 0, from[l]})
		}
	}
	for _, l := range layout {
		axes = append(axes, axis{dims[l], to[l], from[l]})
	}
	size := volume(dims, layout)
	if !summed && len(a.data) == size && contiguous(axes) {
		return a.data, false
	}
	out := k.Get(size)
	if summed {
		clear(out)
	}
	spread(out, a.data, axes, summed)
	return out, true
}

const fewProducts = 512 // below which plain loops are faster than a call

// matrices computes z[b] = x[b]·y[b] for batches of m × inner by inner × n.
func (k *kernel) matrices(z, x, y []float64, batches, m, inner, n int) {
	if m == 1 && n == 1 && inner == 1 {
		for i := range z {
			z[i] = x[i] * y[i]
		}
		return
	}
	for b := range batches {
		out, left, right := z[b*m*n:(b+1)*m*n], x[b*m*inner:(b+1)*m*inner], y[b*inner*n:(b+1)*inner*n]
		if m*inner*n > fewProducts {
			k.Mul(out, left, right, m, inner, n)
			continue
		}
		clear(out)
		for i := range m {
			row := out[i*n : (i+1)*n]
			for k, v := range left[i*inner : (i+1)*inner] {
				for j, w := range right[k*n : k*n+n] {
					row[j] += v * w
				}
			}
		}
	}
}

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
	tileSide = 64      // entries of a tile along axes that are close in one layout
	mostTile = 1 << 13 // entries of a tile
	longRun  = 8       // entries from which copy is used
)

// tiles splits loops into those within a tile, which is close together in both layouts, and those over tiles.
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

// spread copies from one layout into another, or adds.
func spread(to, from []float64, axes []axis, add bool) {
	axes = fuse(axes)
	run := 1
	if l := len(axes) - 1; !add && l >= 0 && axes[l].to == 1 && axes[l].from == 1 && axes[l].dim >= longRun {
		run = axes[l].dim
		axes = axes[:l]
	}
	inner, outer := tiles(axes)
	tile := make([][2]int, 0, tileSide) // positions in both layouts
	walk(inner, func(t, f int) { tile = append(tile, [2]int{t, f}) })
	walk(outer, func(t, f int) {
		x, y := to[t:], from[f:]
		switch {
		case add:
			for _, o := range tile {
				x[o[0]] += y[o[1]]
			}
		case run > 1:
			for _, o := range tile {
				copy(x[o[0]:o[0]+run], y[o[1]:o[1]+run])
			}
		default:
			for _, o := range tile {
				x[o[0]] = y[o[1]]
			}
		}
	})
}
