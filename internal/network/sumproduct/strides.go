package sumproduct

// Sizes, strides and offsets: how many entries a table has, and where they are.

// Size returns the number of entries of a table over scope: the product of the dimensions of its indices.
func Size(dims, scope []int) int {
	size := 1
	for _, i := range scope {
		size *= dims[i]
	}
	return size
}

// Strides sets strides[i] for every index i of a scope: the distance between the entries of two neighbouring values of i in a table over
// the scope, whose last index is the fastest. Example: a scope of 3 indices with 2 values each has the strides 4, 2, 1. The strides of
// other indices do not change; the caller keeps them at 0.
func Strides(strides, dims, scope []int) {
	stride := 1
	for k := len(scope) - 1; k >= 0; k-- {
		strides[scope[k]] = stride
		stride *= dims[scope[k]]
	}
}

// Offsets appends to list, which is empty, the offset in a table of every combination of values of the axes, the last axis fastest. dims
// and strides are by index. Example: axes of the dimensions 2 and 3 with the strides 1 and 10 have the offsets 0, 10, 20, 1, 11, 21.
func Offsets[T int | int32](list []T, dims, axes, strides []int) []T {
	list = append(list, 0)
	for _, i := range axes {
		list = ExpandOffsets(list, dims[i], strides[i])
	}
	return list
}

// ExpandOffsets replaces every offset by dim offsets at a distance of stride, in place if there is capacity:
//
//	spread[i·dim + x] = offsets[i] + x·stride
func ExpandOffsets[T int | int32](offsets []T, dim, stride int) []T {
	count := len(offsets)
	for range (dim - 1) * count {
		offsets = append(offsets, 0)
	}

	for i := count - 1; i >= 0; i-- { // from the back, so that no offset is overwritten before it is read
		base := offsets[i]
		for x := dim - 1; x >= 0; x-- {
			offsets[i*dim+x] = base + T(x*stride)
		}
	}
	return offsets
}
