package sumproduct

import "slices"

// Walks over all values of some indices.

// Along returns the stride of every axis in a table over a scope: the distance between the entries of two neighbouring values, 0 if
// the axis is not in the scope. The last index of the scope is the fastest. Example: dims 2, 3, 4 and the scope (0, 2, 1) have the strides
// 12, 1, 3 for the axes 0, 1, 2.
func Along(dims, scope, axes []int) []int {
	strides := make([]int, len(axes))
	stride := 1
	for k := len(scope) - 1; k >= 0; k-- {
		if a := slices.Index(axes, scope[k]); a >= 0 {
			strides[a] = stride
		}
		stride *= dims[scope[k]]
	}
	return strides
}

// Walk goes through all combinations of values of some axes, the last axis fastest, and has their position in each of several tables.
type Walk struct {
	X       []int   // by axis: the current value
	At      []int   // by table: the position of the current values
	dims    []int   // by axis
	strides [][]int // by table and axis
}

// NewWalk returns a walk that is at the first values of the axes. dims has the dimensions of all indices, scopes the scopes of the tables.
func NewWalk(dims, axes []int, scopes ...[]int) *Walk {
	w := &Walk{X: make([]int, len(axes)), At: make([]int, len(scopes))}
	for _, i := range axes {
		w.dims = append(w.dims, dims[i])
	}
	for _, scope := range scopes {
		w.strides = append(w.strides, Along(dims, scope, axes))
	}
	return w
}

// Next goes to the next combination of values, and from the last one to the first.
func (w *Walk) Next() {
	for a := len(w.dims) - 1; a >= 0; a-- {
		w.X[a]++
		move := 1
		if w.X[a] == w.dims[a] { // a carry, as in 09 + 1 = 10
			w.X[a] = 0
			move = 1 - w.dims[a]
		}
		for t := range w.At {
			w.At[t] += move * w.strides[t][a]
		}
		if move == 1 {
			return
		}
	}
}

// Seek goes to combination n, counted from 0.
func (w *Walk) Seek(n int) {
	clear(w.At)
	for a := len(w.dims) - 1; a >= 0; a-- {
		w.X[a] = n % w.dims[a]
		n /= w.dims[a]
		for t := range w.At {
			w.At[t] += w.X[a] * w.strides[t][a]
		}
	}
}
