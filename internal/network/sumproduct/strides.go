package sumproduct

// Sizes, strides and offsets: how many entries a table has, and where they are.

// Size is the number of entries of a table over a scope.
func Size(dims, scope []int) int {
	n := 1
	for _, i := range scope {
		n *= dims[i]
	}
	return n
}

// Strides sets by[i], for every index i of a scope, to the distance between entries of neighbouring
// values of i in a table over the scope, the last index fastest. Indices outside the scope keep
// their entries: 0, where by is cleared after use.
func Strides(by, dims, scope []int) {
	step := 1
	for k := len(scope) - 1; k >= 0; k-- {
		by[scope[k]] = step
		step *= dims[scope[k]]
	}
}

// Offsets appends to list, for every combination of values of axes,
// the last fastest, where it is in a table with these strides by index.
func Offsets[T int | int32](list []T, dims, axes, stride []int) []T {
	list = append(list, 0)
	for _, i := range axes {
		list = Spread(list, dims[i], stride[i])
	}
	return list
}

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
