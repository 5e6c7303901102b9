package baseline

// Sums of products of labelled tables, the one operation of the bucket methods.

import (
	"math"
)

// table is a dense table over labelled axes, the last one fastest. Labels are indices of the
// expression, or below 0.
type table struct {
	axes []int
	data []float64
}

// product returns Σ Π ops over the axes that are not in out, or the maximum instead of the sum. dims
// are the dimensions of axes, all axes that occur; out is a part of axes. flops are counted into it.
func product(axes, dims []int, ops []table, out []int, largest bool, flops *float64) table {
	result, size := table{axes: out}, 1
	for _, a := range out {
		size *= dims[position(axes, a)]
	}
	result.data = make([]float64, size)
	cells := 1.0
	for _, d := range dims {
		cells *= float64(d)
	}
	*flops += cells * float64(len(ops))
	w := walk{dims: dims, ops: ops, largest: largest, into: result.data, target: strides(axes, dims, out)}
	for _, o := range ops {
		w.step = append(w.step, strides(axes, dims, o.axes))
	}
	w.down(0, make([]int, len(ops)), 0)
	return result
}

// walk goes through all cells.
type walk struct {
	dims    []int
	ops     []table
	step    [][]int // of every operand per axis
	target  []int   // of the result per axis
	into    []float64
	largest bool
}

// down visits the cells below axis k, at[o] being where operand o is and to where the result is.
func (w *walk) down(k int, at []int, to int) {
	if k >= len(w.dims)-1 {
		w.row(k, at, to)
		return
	}
	for range w.dims[k] {
		w.down(k+1, at, to)
		for o := range at {
			at[o] += w.step[o][k]
		}
		to += w.target[k]
	}
	for o := range at {
		at[o] -= w.dims[k] * w.step[o][k]
	}
}

// row visits the cells along the last axis, or the one cell where there is none.
func (w *walk) row(k int, at []int, to int) {
	n := 1
	if k < len(w.dims) {
		n = w.dims[k]
	}
	for x := range n {
		p := 1.0
		for o, i := range at {
			if x > 0 {
				i += x * w.step[o][k]
			}
			p *= w.ops[o].data[i]
		}
		cell := to
		if x > 0 {
			cell += x * w.target[k]
		}
		if w.largest {
			w.into[cell] = max(w.into[cell], p)
		} else {
			w.into[cell] += p
		}
	}
}

// strides returns how far one step along each of axes moves in a table over own.
func strides(axes, dims, own []int) []int {
	list := make([]int, len(axes))
	for k, step := len(own)-1, 1; k >= 0; k-- {
		p := position(axes, own[k])
		list[p] = step
		step *= dims[p]
	}
	return list
}

func position(axes []int, label int) int {
	for k, a := range axes {
		if a == label {
			return k
		}
	}
	panic("baseline: an axis is missing")
}

// normalise divides data by the power of two that brings its largest entry to [½, 1) and returns the
// exponent; 0 for zeros.
func normalise(data []float64) int64 {
	high := 0.0
	for _, x := range data {
		high = max(high, x)
	}
	if high == 0 {
		return 0
	}
	_, exp := math.Frexp(high)
	for i := range data {
		data[i] = math.Ldexp(data[i], -exp)
	}
	return int64(exp)
}
