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

// array is a tensor: its entries, row-major, and the label of each axis. A label is the number of an index; axes with the same label run
// together.
type array struct {
	data   []float64
	labels []int32
}

// strides returns for every label how far apart entries of a are whose value of the label differs by 1. If several axes have the label,
// that is the sum of their strides, as along a diagonal. It is 0 if a does not have the label. dims has the number of values of each label.
func (a array) strides(dims []int) []int {
	strides := make([]int, len(dims))
	stride := 1
	for _, l := range slices.Backward(a.labels) {
		strides[l] += stride
		stride *= dims[l]
	}
	return strides
}

// entryCount returns the number of entries of a tensor with one axis for each of the labels: the product of their dims.
func entryCount(dims []int, labels []int32) int {
	size := 1
	for _, l := range labels {
		size *= dims[l]
	}
	return size
}

// product says which tensors are to be multiplied, and how their axes belong together. An operand without data is the number 1.
type product struct {
	out  array // only the labels
	in   [2]array
	dims []int // by label: number of values
	// Of a product on the tape for marginals: the nodes of the result and of the operands, −1 for an operand that is no node.
	outNode int32
	inNodes [2]int32
}

// kernel multiplies tensors. Its buffers come from its arena and go back to it.
type kernel struct {
	linalg.Work
	arena.Arena
	flops float64 // so far
}

// multiply returns the result of a product, in a buffer. It packs the operands as batches of matrices, multiplies these, and unpacks the
// result: out[b, m, n] = Σ_k A[b, m, k] · B[b, k, n]. The labels of the axes, which are numbers of indices, tell which axes these are: b
// are those of both operands and the result, m and n those of one operand and the result, k those of both operands only.
func (k *kernel) multiply(p product) array {
	dims := p.dims
	roles := p.labelRoles()
	batches, rows, cols := entryCount(dims, roles.both), entryCount(dims, roles.first), entryCount(dims, roles.second)
	inner := entryCount(dims, roles.sum)
	x, xIsBuffer := k.pack(p.in[0], dims, slices.Concat(roles.both, roles.first, roles.sum))
	y, yIsBuffer := k.pack(p.in[1], dims, slices.Concat(roles.both, roles.sum, roles.second))
	z := array{data: k.Get(batches * rows * cols), labels: slices.Concat(roles.both, roles.first, roles.second)}
	k.multiplyMatrices(z.data, x, y, batches, rows, inner, cols)
	k.flops += 2 * float64(batches) * float64(rows) * float64(cols) * float64(inner)
	if xIsBuffer {
		k.Put(x)
	}
	if yIsBuffer {
		k.Put(y)
	}
	return k.unpack(z, p.out.labels, roles.repeated, dims)
}

// unpack returns z with the axes in the sequence of labels, which are numbers of indices. z is repeated along the labels in repeated, which
// it does not have. If labels has a label twice, entries off the diagonal are 0. It returns z's buffer if the layout is the same already;
// otherwise it puts that buffer back and returns another one.
func (k *kernel) unpack(z array, labels, repeated []int32, dims []int) array {
	out := array{labels: labels}
	to, from := out.strides(dims), z.strides(dims) // by label
	var axes []axis
	for _, l := range slices.Concat(repeated, z.labels) {
		axes = append(axes, axis{dims[l], to[l], from[l]})
	}
	size := entryCount(dims, labels)
	if size == len(z.data) && isIdentity(axes) {
		out.data = z.data
		return out
	}
	out.data = k.Get(size)
	clear(out.data)
	const add = false
	copyAlong(out.data, z.data, axes, add)
	k.Put(z.data)
	return out
}

// labelRoles are the labels of a product by the tensors that have them.
type labelRoles struct {
	both     []int32 // both operands and the result: batches
	first    []int32 // the first operand and the result
	second   []int32 // the second operand and the result
	sum      []int32 // both operands, not the result
	repeated []int32 // only the result
}

// labelRoles returns the labels by role, in the sequence of the result, then of the operands. A label of only one operand has no role: pack
// sums over it. A label is the number of an index.
func (p product) labelRoles() (roles labelRoles) {
	places := make([]uint8, len(p.dims)) // by label: the bits inFirst, inSecond and inResult of the tensors that have it
	for i, t := range [3]array{p.in[0], p.in[1], p.out} {
		for _, l := range t.labels {
			places[l] |= 1 << i // inFirst, inSecond, inResult
		}
	}
	for _, labels := range [3][]int32{p.out.labels, p.in[0].labels, p.in[1].labels} {
		for _, l := range labels {
			switch places[l] {
			case inFirst | inSecond | inResult:
				roles.both = append(roles.both, l)
			case inFirst | inResult:
				roles.first = append(roles.first, l)
			case inSecond | inResult:
				roles.second = append(roles.second, l)
			case inFirst | inSecond:
				roles.sum = append(roles.sum, l)
			case inResult:
				roles.repeated = append(roles.repeated, l)
			}
			places[l] = 0 // so that a label comes once
		}
	}
	return roles
}

// pack returns the entries of a with the axes in the sequence of layout, summed over all labels that are not in layout. A label is the
// number of an index; axes of a with the same label run together. It returns a's own entries if that is their layout already, and otherwise
// a buffer, which the caller must put back. It returns the number 1 if a has no data.
func (k *kernel) pack(a array, dims []int, layout []int32) (packed []float64, isBuffer bool) {
	if a.data == nil {
		return []float64{1}, false
	}
	from, to := a.strides(dims), array{labels: layout}.strides(dims)

	// The loops of the copy: over the labels that are summed, then over those of the layout.
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
			axes = append(axes, axis{dims[l], 0, from[l]}) // it does not move in the target, so its values are added up
		}
	}
	for _, l := range layout {
		axes = append(axes, axis{dims[l], to[l], from[l]})
	}

	size := entryCount(dims, layout)
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

// multiplyMatrices computes z[b] = x[b]·y[b] for batches of matrices: x[b] is rows × inner, y[b] is inner × cols, row-major.
func (k *kernel) multiplyMatrices(z, x, y []float64, batches, rows, inner, cols int) {
	if rows == 1 && cols == 1 && inner == 1 {
		for i := range z {
			z[i] = x[i] * y[i]
		}
		return
	}
	for b := range batches {
		out := z[b*rows*cols : (b+1)*rows*cols]
		left, right := x[b*rows*inner:(b+1)*rows*inner], y[b*inner*cols:(b+1)*inner*cols]
		if rows*inner*cols > fewProducts {
			k.Mul(out, left, right, rows, inner, cols)
			continue
		}
		clear(out) // few products: a loop is faster than the call of Mul
		for i := range rows {
			row := out[i*cols : (i+1)*cols]
			for k, v := range left[i*inner : (i+1)*inner] {
				for j, w := range right[k*cols : k*cols+cols] {
					row[j] += v * w
				}
			}
		}
	}
}

// axis is one loop of a copy from one layout to another.
type axis struct {
	dim      int // number of steps
	to, from int // strides in the target and in the source; 0 in from repeats entries, 0 in to adds them up
}

// fuseAxes joins neighbouring axes that are one axis in both layouts, and drops axes of dimension 1. Example: dimensions 2 and 3 with the
// strides 3 and 1 in both layouts become dimension 6 with stride 1. An axis has a dimension and a stride in each layout, to and from.
func fuseAxes(axes []axis) []axis {
	fused := make([]axis, 0, len(axes))
	for _, x := range axes {
		if x.dim == 1 {
			continue
		}
		if l := len(fused) - 1; l >= 0 && fused[l].to == x.dim*x.to && fused[l].from == x.dim*x.from {
			fused[l] = axis{fused[l].dim * x.dim, x.to, x.from}
			continue
		}
		fused = append(fused, x)
	}
	return fused
}

// isIdentity reports whether the axes run through both layouts in the same sequence, so that nothing needs to be copied.
func isIdentity(axes []axis) bool {
	fused := fuseAxes(axes)
	return len(fused) == 0 || len(fused) == 1 && fused[0].to == 1 && fused[0].from == 1
}

const (
	tileSide       = 64      // entries of a tile along axes that are close in one layout
	maxTileEntries = 1 << 13 // entries of a tile
	minRun         = 8       // entries in a row from which copy is used
)

// splitTiles splits the loops of a copy into inner ones, within a tile whose entries are close together in both layouts, and outer ones
// over tiles. Both are sorted by the strides in the target, the largest first. An axis has a dimension and a stride in each layout.
func splitTiles(axes []axis) (inner, outer []axis) {
	outer = slices.Clone(axes)
	size := 1 // entries of the tile so far
	// growTile moves the axes of smallest stride from outer to inner until the tile has at least minSize entries.
	growTile := func(stride func(axis) int, minSize int) {
		slices.SortStableFunc(outer, func(x, y axis) int { return cmp.Compare(stride(x), stride(y)) })
		for len(outer) > 0 && size < minSize && size*outer[0].dim <= maxTileEntries {
			size *= outer[0].dim
			inner = append(inner, outer[0])
			outer = outer[1:]
		}
	}
	growTile(func(x axis) int { return x.to }, tileSide) // first axes along which entries are close in the target, then in the source
	growTile(func(x axis) int { return x.from }, tileSide*tileSide)
	slices.SortStableFunc(inner, func(x, y axis) int { return cmp.Compare(y.to, x.to) })
	slices.SortStableFunc(outer, func(x, y axis) int { return cmp.Compare(y.to, x.to) })
	return inner, outer
}

// forEachOffset runs a nest of loops, the last axis innermost, and calls f at every position with the offsets in the target and in the
// source. Without axes it calls f(0, 0) once. An axis has a dimension and a stride in each of the two layouts.
func forEachOffset(axes []axis, f func(to, from int)) {
	digits := make([]int, len(axes)) // the values of the loop variables
	to, from := 0, 0
	for {
		f(to, from)
		i := len(axes) - 1
		for ; i >= 0; i-- { // add 1 to the digits, with a carry
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

// copyAlong copies entries from one layout into another along axes, tile by tile: a tile is entries that are close together in both
// layouts. If add is true, it adds them to the entries of the target. An axis has a dimension and a stride in each layout.
func copyAlong(to, from []float64, axes []axis, add bool) {
	axes = fuseAxes(axes)
	run := 1 // entries that are next to each other in both layouts
	if last := len(axes) - 1; !add && last >= 0 {
		isRun := axes[last].to == 1 && axes[last].from == 1 && axes[last].dim >= minRun
		if isRun {
			run = axes[last].dim
			axes = axes[:last]
		}
	}
	inner, outer := splitTiles(axes)
	tile := make([][2]int, 0, tileSide) // offsets in to and from
	forEachOffset(inner, func(t, f int) { tile = append(tile, [2]int{t, f}) })
	forEachOffset(outer, func(t, f int) { // offsets of the tile
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
