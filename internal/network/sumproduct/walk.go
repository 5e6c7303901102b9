package sumproduct

import "slices"

// Walks over all values of some indices.

// Along returns the distance between entries of neighbouring values of every axis in a table over a scope, the last index fastest; 0 for
// an axis that the table has not.
func Along(dims, scope, axes []int) []int {
	strides := make([]int, len(axes))
	step := 1
	for k := len(scope) - 1; k >= 0; k-- {
		if a := slices.Index(axes, scope[k]); a >= 0 {
			strides[a] = step
		}
		step *= dims[scope[k]]
	}
	return strides
}

// Walk goes through the values of some axes, the last fastest, with the place of each in several tables.
type Walk struct {
	X    []int // the values
	At   []int // by table: the place
	dims []int
	step [][]int // by table and axis
}

// NewWalk begins at the first values of the axes. dims are those of all indices, scopes those of the tables.
func NewWalk(dims, axes []int, scopes ...[]int) *Walk {
	w := &Walk{X: make([]int, len(axes)), At: make([]int, len(scopes))}
	for _, i := range axes {
		w.dims = append(w.dims, dims[i])
	}
	for _, scope := range scopes {
		w.step = append(w.step, Along(dims, scope, axes))
	}
	return w
}

// Next goes one on, and from the last to the first.
func (w *Walk) Next() {
	for a := len(w.dims) - 1; a >= 0; a-- {
		w.X[a]++
		move := 1
		if w.X[a] == w.dims[a] {
			w.X[a] = 0
			move = 1 - w.dims[a]
		}
		for t := range w.At {
			w.At[t] += move * w.step[t][a]
		}
		if move == 1 {
			return
		}
	}
}

// Seek goes to the n-th values.
func (w *Walk) Seek(n int) {
	clear(w.At)
	for a := len(w.dims) - 1; a >= 0; a-- {
		w.X[a] = n % w.dims[a]
		n /= w.dims[a]
		for t := range w.At {
			w.At[t] += w.X[a] * w.step[t][a]
		}
	}
}
