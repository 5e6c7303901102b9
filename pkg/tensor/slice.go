// Slices and reorderings.

package tensor

import "fmt"

// fix returns the table with one mode at a value.
// It panics, like a slice, if either is out of range.
func (t *Dense) fix(mode, value int) *Dense {
	step := strides(t.Shape)[mode]
	d := t.Shape[mode]
	out := &Dense{Shape: without(t.Shape, mode), Data: make([]float64, 0, len(t.Data)/d)}
	for at := value * step; at < len(t.Data); at += d * step {
		out.Data = append(out.Data, t.Data[at:at+step]...)
	}
	return out
}

// permute returns the table whose mode i is mode order[i]
// of t. It returns ErrShape if order is not a permutation.
func (t *Dense) permute(order []int) (*Dense, error) {
	seen := make([]bool, len(t.Shape))
	for _, mode := range order {
		if len(order) != len(seen) || mode < 0 || mode >= len(seen) || seen[mode] {
			return nil, fmt.Errorf("%w: %v is not a permutation of %d modes",
				ErrShape, order, len(seen))
		}
		seen[mode] = true
	}
	if len(order) != len(seen) {
		return nil, fmt.Errorf("%w: %v is not a permutation of %d modes",
			ErrShape, order, len(seen))
	}

	step := strides(t.Shape)
	out := &Dense{Shape: make([]int, len(order)), Data: make([]float64, len(t.Data))}
	moved := make([]int, len(order))
	for i, mode := range order {
		out.Shape[i] = t.Shape[mode]
		moved[i] = step[mode]
	}

	x := make([]int, len(order))
	for i := range out.Data {
		at := 0
		for mode, s := range moved {
			at += x[mode] * s
		}
		out.Data[i] = t.Data[at]
		advance(x, out.Shape)
	}
	return out, nil
}
