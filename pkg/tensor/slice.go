// Slices and reorderings.

package tensor

import "fmt"

// fix returns the table of the other modes, with one mode fixed at a value. It panics, like a slice, if either is out of range.
func (t *Dense) fix(mode, value int) *Dense {
	stride := strides(t.Shape)[mode]
	d := t.Shape[mode]
	fixed := &Dense{Shape: without(t.Shape, mode), Data: make([]float64, 0, len(t.Data)/d)}
	for block := value * stride; block < len(t.Data); block += d * stride { // one index of the modes before
		fixed.Data = append(fixed.Data, t.Data[block:block+stride]...)
	}
	return fixed
}

// permute returns the table whose mode i is mode order[i] of t. It returns ErrShape if order is not a permutation.
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

	stride := strides(t.Shape)
	permuted := &Dense{Shape: make([]int, len(order)), Data: make([]float64, len(t.Data))}
	strideInT := make([]int, len(order)) // by mode of the result
	for i, mode := range order {
		permuted.Shape[i] = t.Shape[mode]
		strideInT[i] = stride[mode]
	}

	x := make([]int, len(order)) // the index of the result's entry
	for i := range permuted.Data {
		source := 0
		for mode, s := range strideInT {
			source += x[mode] * s
		}
		permuted.Data[i] = t.Data[source]
		advance(x, permuted.Shape)
	}
	return permuted, nil
}
