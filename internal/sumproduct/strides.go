package sumproduct

// Strides and offsets: where the entries of a table are.

// Spread replaces every offset by dim offsets, stride apart:
//
//	out[i·dim + x] = offsets[i] + x·stride
func Spread[T int | int32](offsets []T, dim, stride int) []T {
	n := len(offsets)
	for range (dim - 1) * n {
		offsets = append(offsets, 0)
	}
	for i := n - 1; i >= 0; i-- {
		base := offsets[i]
		for x := dim - 1; x >= 0; x-- {
			offsets[i*dim+x] = base + T(x*stride)
		}
	}
	return offsets
}
