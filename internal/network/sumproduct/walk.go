package sumproduct

import "slices"

// Walks over all values of some indices.

// AxisStrides returns the stride of every axis in a table over a scope: the distance between the entries of two neighbouring values, 0 if
// the axis is not in the scope. The last index of the scope is the fastest. Example: dims 2, 3, 4 and the scope (0, 2, 1) have the strides
// 12, 1, 3 for the axes 0, 1, 2.
func AxisStrides(dims, scope, axes []int) []int {
	strides := make([]int, len(axes))
	stride := 1
	for k := len(scope) - 1; k >= 0; k-- {
		if axis := slices.Index(axes, scope[k]); axis >= 0 {
			strides[axis] = stride
		}
		stride *= dims[scope[k]]
	}
	return strides
}

// Walk goes through all combinations of values of some axes, the last axis fastest, and has their position in each of several tables.
type Walk struct {
	Values   []int   // by axis: the current value
	Position []int   // by table: the position of the current values
	dims     []int   // by axis
	strides  [][]int // by table and axis
}

// NewWalk returns a walk over all combinations of values of the axes, which are indices, at the first combination. dims has the dimensions
// of all indices, and scopes the scopes of the tables whose positions the walk has.
func NewWalk(dims, axes []int, scopes ...[]int) *Walk {
	w := &Walk{Values: make([]int, len(axes)), Position: make([]int, len(scopes))}
	for _, i := range axes {
		w.dims = append(w.dims, dims[i])
	}
	for _, scope := range scopes {
		w.strides = append(w.strides, AxisStrides(dims, scope, axes))
	}
	return w
}

// Next goes to the next combination of values, the last axis fastest, and from the last combination to the first. In every table t it
// moves Position[t] to the entry of the new combination.
func (w *Walk) Next() {
	for axis := len(w.dims) - 1; axis >= 0; axis-- {
		w.Values[axis]++
		step := 1
		hasCarry := w.Values[axis] == w.dims[axis] // as in 09 + 1 = 10
		if hasCarry {
			w.Values[axis] = 0
			step = 1 - w.dims[axis]
		}
		for t := range w.Position {
			w.Position[t] += step * w.strides[t][axis]
		}
		if !hasCarry {
			return
		}
	}
}

// Seek goes to combination number n, counted from 0 in the sequence of Next. It computes the values Values of all axes and the position
// Position in every table.
func (w *Walk) Seek(n int) {
	clear(w.Position)
	for axis := len(w.dims) - 1; axis >= 0; axis-- {
		w.Values[axis] = n % w.dims[axis]
		n /= w.dims[axis]
		for t := range w.Position {
			w.Position[t] += w.Values[axis] * w.strides[t][axis]
		}
	}
}
