package trees

// The product of two tensors over labelled axes:
//
//	out[b, m, n] = Σ_k A[b, m, k] · B[b, k, n]
//
// A label is a number for an index; axes with the same label run together. A label of only one operand is summed, a label of only the
// result is repeated, and a label that one tensor has twice runs along its diagonal.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/linalg"
)

// array is a tensor: its entries, row-major, and the label of each axis.
type array struct {
	data   []float64
	labels []int32
}

// strides returns, by label, how far apart entries of a are whose label differs by 1. It is the sum over the axes with that label, as along
// a diagonal, and 0 for labels that a does not have.
func (a array) strides(dims []int) []int {
	out := make([]int, len(dims))
	s := 1
	for _, l := range slices.Backward(a.labels) {
		out[l] += s
		s *= dims[l]
	}
	return out
}

// volume returns the number of entries of a tensor with one axis for each of the labels.
func volume(dims []int, labels []int32) int {
	v := 1
	for _, l := range labels {
		v *= dims[l]
	}
	return v
}

// product states which arrays are to be multiplied. An operand without data is the number 1.
type product struct {
	out  array // only the labels
	in   [2]array
	dims []int // by label
	// of a product that is recorded for marginals: the nodes of the result and of the operands; −1 for an operand that is no node
	outNode int32
	inNodes [2]int32
}

// kernel multiplies tensors. Its buffers come from its arena and go back to it.
type kernel struct {
	linalg.Work
	arena.Arena
	flops float64 // so far
}

// multiply returns the result of a product, in a buffer.
func (k *kernel) multiply(p product) array {
	dims := p.dims
	by := p.labelRoles()
	batches, m, n, inner := volume(dims, by.both), volume(dims, by.first), volume(dims, by.second), volume(dims, by.sum)
	x, xIsBuffer := k.pack(p.in[0], dims, slices.Concat(by.both, by.first, by.sum))
	y, yIsBuffer := k.pack(p.in[1], dims, slices.Concat(by.both, by.sum, by.second))
	z := array{data: k.Get(batches * m * n), labels: slices.Concat(by.both, by.first, by.second)}
	k.multiplyMatrices(z.data, x, y, batches, m, inner, n)
	k.flops += 2 * float64(batches) * float64(m) * float64(n) * float64(inner)
	if xIsBuffer {
		k.Put(x)
	}
	if yIsBuffer {
		k.Put(y)
	}
	return k.unpack(z, p.out.labels, by.repeated, dims)
}

// unpack lays z out by labels, repeating it along the labels in repeated. Entries off a diagonal of the result become 0. It returns z's
// buffer if that is laid out so already. Otherwise it gives the buffer back and returns another one.
func (k *kernel) unpack(z array, labels, repeated []int32, dims []int) array {
	out := array{labels: labels}
	to, from := out.strides(dims), z.strides(dims)
	var axes []axis
	for _, l := range slices.Concat(repeated, z.labels) {
		axes = append(axes, axis{dims[l], to[l], from[l]})
	}
	size := volume(dims, labels)
	if size == len(z.data) && isIdentity(axes) {
		out.data = z.data
		return out
	}
	out.data = k.Get(size)
	clear(out.data)
	copyAlong(out.data, z.data, axes, false)
	k.Put(z.data)
	return out
}

// roles are the labels of a product by the tensors that have them.
type roles struct {
	both     []int32 // both operands and the result: batches
	first    []int32 // the first operand and the result
	second   []int32 // the second operand and the result
	sum      []int32 // both operands, not the result
	repeated []int32 // only the result
}

// labelRoles sorts the labels by role, in the sequence of the result, then of the operands. Labels of only one operand have no role: pack
// sums over them.
func (p product) labelRoles() (by roles) {
	places := make([]uint8, len(p.dims)) // by label: inFirst, inSecond, inResult
	for i, t := range [3]array{p.in[0], p.in[1], p.out} {
		for _, l := range t.labels {
			places[l] |= 1 << i
		}
	}
	for _, labels := range [3][]int32{p.out.labels, p.in[0].labels, p.in[1].labels} {
		for _, l := range labels {
			switch places[l] {
			case inFirst | inSecond | inResult:
				by.both = append(by.both, l)
			case inFirst | inResult:
				by.first = append(by.first, l)
			case inSecond | inResult:
				by.second = append(by.second, l)
			case inFirst | inSecond:
				by.sum = append(by.sum, l)
			case inResult:
				by.repeated = append(by.repeated, l)
			}
			places[l] = 0 // done
		}
	}
	return by
}

// pack returns the entries of a, laid out by the labels in layout and summed over all other labels. It returns a's own entries if they are
// laid out so already, and otherwise a buffer, which the caller must put back. It returns the number 1 if a has no data.
func (k *kernel) pack(a array, dims []int, layout []int32) (packed []float64, isBuffer bool) {
	if a.data == nil {
		return []float64{1}, false
	}
	from, to := a.strides(dims), array{labels: layout}.strides(dims)
	hasAxis := make([]bool, len(dims)) // by label
	for _, l := range layout {
		hasAxis[l] = true
	}
	var axes []axis
	isSummed := false
	for _, l := range a.labels {
		if !hasAxis[l] {
			hasAxis[l] = true
			isSummed = isSummed || dims[l] > 1
			axes = append(axes, axis{dims[l], 0, from[l]})
		}
	}
	for _, l := range layout {
		axes = append(axes, axis{dims[l], to[l], from[l]})
	}
	size := volume(dims, layout)
	if !isSummed && len(a.data) == size && isIdentity(axes) {
		return a.data, false
	}
	out := k.Get(size)
	if isSummed {
		clear(out)
	}
	copyAlong(out, a.data, axes, isSummed)
	return out, true
}

const fewProducts = 512 // up to which plain loops are faster than a call

// multiplyMatrices computes z[b] = x[b]·y[b] for batches of m × inner by inner × n.
func (k *kernel) multiplyMatrices(z, x, y []float64, batches, m, inner, n int) {
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

// axis is one loop of a copy between two layouts.
type axis struct {
	dim      int
	to, from int // strides; 0 in from repeats entries, 0 in to adds them up
}

// fuse drops axes of dimension 1 and joins neighbouring axes that are one axis in both layouts. Example: dimensions 2 and 3 with the
// strides 3 and 1 in both layouts become dimension 6 with stride 1.
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

// isIdentity reports whether both layouts are the same, so that nothing needs to be copied.
func isIdentity(axes []axis) bool {
	f := fuse(axes)
	return len(f) == 0 || len(f) == 1 && f[0].to == 1 && f[0].from == 1
}

const (
	tileSide       = 64      // entries of a tile along axes that are close in one layout
	maxTileEntries = 1 << 13 // entries of a tile
	minRun         = 8       // entries in a row from which copy is used
)

// tiles splits loops into those within a tile, which is close together in both layouts, and those over tiles. Both are sorted by the
// strides in to, the largest first.
func tiles(axes []axis) (inner, outer []axis) {
	outer = slices.Clone(axes)
	size := 1
	// take moves the axes of smallest stride into the tile until it has at least minSize entries.
	take := func(stride func(axis) int, minSize int) {
		slices.SortStableFunc(outer, func(x, y axis) int { return cmp.Compare(stride(x), stride(y)) })
		for len(outer) > 0 && size < minSize && size*outer[0].dim <= maxTileEntries {
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

// forEachOffset calls f with the offsets in both layouts for all positions of a nest of loops, the last axis innermost. Without axes it
// calls f(0, 0).
func forEachOffset(axes []axis, f func(to, from int)) {
	digits := make([]int, len(axes)) // the values of the loop variables
	to, from := 0, 0
	for {
		f(to, from)
		i := len(axes) - 1
		for ; i >= 0; i-- { // count on, as with a carry
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

// copyAlong copies entries from one layout into another along axes, or adds them to what is there.
func copyAlong(to, from []float64, axes []axis, add bool) {
	axes = fuse(axes)
	run := 1 // entries that are next to each other in both layouts
	if l := len(axes) - 1; !add && l >= 0 && axes[l].to == 1 && axes[l].from == 1 && axes[l].dim >= minRun {
		run = axes[l].dim
		axes = axes[:l]
	}
	inner, outer := tiles(axes)
	tile := make([][2]int, 0, tileSide) // offsets in to and from
	forEachOffset(inner, func(t, f int) { tile = append(tile, [2]int{t, f}) })
	forEachOffset(outer, func(t, f int) {
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
