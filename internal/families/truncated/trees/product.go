package trees

// The product of two tensors over labelled axes:
//
//	out[b, m, n] = Σ_k A[b, m, k] · B[b, k, n]
//
// A label that one operand alone has is summed, one that the result alone has is repeated,
// and one that a tensor has twice runs along its diagonal.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/arena"
	"github.com/basetensor/basetensor/internal/linalg"
)

// kernel multiplies tensors. Its buffers come from its arena and go back to it.
type kernel struct {
	linalg.Work
	arena.Arena
	stride []int   // room for strides
	axes   []axis  // room for axes
	flops  float64 // so far
}

// product fills out.data; out.labels say its layout. An operand with nil data is the number 1.
func (k *kernel) product(out, a, b array, dims []int) {
	by := rolesOf(out, a, b, dims)
	batches := volume(dims, by.both)
	m := volume(dims, by.first)
	n := volume(dims, by.second)
	inner := volume(dims, by.sum)
	x, xBorrowed := k.pack(a, dims, by.both, by.first, by.sum)
	y, yBorrowed := k.pack(b, dims, by.both, by.sum, by.second)

	layout := slices.Concat(by.both, by.first, by.second)
	k.stride = array{labels: layout}.strides(dims, k.stride)
	k.axes = k.axes[:0]
	to := out.strides(dims, nil)
	diagonal := volume(dims, out.labels) != batches*m*n
	for _, l := range slices.Concat(by.alone, layout) {
		k.axes = append(k.axes, axis{dims[l], to[l], k.stride[l]})
	}

	k.flops += 2 * float64(batches) * float64(m) * float64(n) * float64(inner)

	if !diagonal && contiguous(k.axes) {
		k.multiply(out.data, x, y, batches, m, inner, n)
	} else {
		z := k.Get(batches * m * n)
		k.multiply(z, x, y, batches, m, inner, n)
		clear(out.data)
		spread(out.data, z, k.axes)
		k.Put(z)
	}

	if xBorrowed {
		k.Put(x)
	}
	if yBorrowed {
		k.Put(y)
	}
}

// roles are the labels of a product by which of its tensors have them.
type roles struct {
	both   []int32 // both operands and the result: batches
	first  []int32 // the first operand and the result
	second []int32 // the second operand and the result
	sum    []int32 // both operands
	alone  []int32 // the result
}

// rolesOf sorts the labels in the sequence of the result, then of the operands.
// Labels of one operand alone have no role.
func rolesOf(out, a, b array, dims []int) (by roles) {
	where := make([]uint8, len(dims))
	for i, t := range [3]array{a, b, out} {
		for _, l := range t.labels {
			where[l] |= 1 << i
		}
	}

	seen := make([]bool, len(dims))
	for _, labels := range [3][]int32{out.labels, a.labels, b.labels} {
		for _, l := range labels {
			if seen[l] {
				continue
			}
			seen[l] = true
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
		}
	}
	return by
}

// pack lays a out as [x, y, z], summing over every label that is in none of them;
// it returns a's own entries if they are laid out like that, and otherwise a buffer to be put back.
func (k *kernel) pack(a array, dims []int, x, y, z []int32) (packed []float64, borrowed bool) {
	if a.data == nil {
		return []float64{1}, false
	}
	from := a.strides(dims, nil)
	layout := slices.Concat(x, y, z)
	k.stride = array{labels: layout}.strides(dims, k.stride)
	size := volume(dims, layout)
	k.axes = k.axes[:0]

	wanted := make([]bool, len(dims))
	for _, l := range layout {
		wanted[l] = true
	}

	summed := false
	for _, l := range a.labels {
		if !wanted[l] {
			wanted[l] = true
			summed = summed || dims[l] > 1
			k.axes = append(k.axes, axis{dims[l], 0, from[l]})
		}
	}

	for _, l := range layout {
		k.axes = append(k.axes, axis{dims[l], k.stride[l], from[l]})
	}

	if !summed && len(a.data) == size && contiguous(k.axes) {
		return a.data, false
	}

	out := k.Get(size)
	if !summed {
		spread(out, a.data, k.axes)
		return out, true
	}
	clear(out)
	accumulate(out, a.data, k.axes)
	return out, true
}

const fewProducts = 512 // below which plain loops are faster than a call

// multiply computes z[b] = x[b]·y[b] for batches of m × inner by inner × n.
func (k *kernel) multiply(z, x, y []float64, batches, m, inner, n int) {
	switch {
	case m == 1 && n == 1 && inner == 1:
		for i := range z {
			z[i] = x[i] * y[i]
		}
	case m*inner*n > fewProducts:
		for b := range batches {
			k.Mul(z[b*m*n:(b+1)*m*n], x[b*m*inner:], y[b*inner*n:], m, inner, n)
		}
	default:
		for b := range batches {
			small(z[b*m*n:(b+1)*m*n], x[b*m*inner:], y[b*inner*n:], m, inner, n)
		}
	}
}

// small is a product of small matrices, z = x·y.
func small(z, x, y []float64, m, inner, n int) {
	clear(z)
	for i := range m {
		row := z[i*n : (i+1)*n]
		for k, v := range x[i*inner : (i+1)*inner] {
			for j, w := range y[k*n : k*n+n] {
				row[j] += v * w
			}
		}
	}
}
