// Sizes and index arithmetic: checked products, row-major strides, walking over all indices.

package tensor

import (
	"errors"
	"fmt"
	"math/bits"
)

var (
	// ErrTooLarge: a table or a polynomial would exceed
	// the limit of the operation (or the address space).
	ErrTooLarge = errors.New("tensor: too large")
	// ErrShape: dimensions, lengths or levels that do not fit together.
	ErrShape = errors.New("tensor: wrong shape")
	// ErrNotFinite: a NaN or an infinity among the numbers,
	// or a result outside the range of float64.
	ErrNotFinite = errors.New("tensor: not a finite number")
	// ErrUnsupportedMap: the form cannot take these maps and is too large to be written out.
	ErrUnsupportedMap = errors.New("tensor: map not supported by this form")
)

// MaxCoefficients bounds the coefficients of the polynomials one call may hold: 2^26.
const MaxCoefficients = 1 << 26

// Size returns the number of entries Π dims, 1 for no dimensions.
// It returns ErrShape for a dimension below 1 and ErrTooLarge if the product overflows an int.
func Size(dims []int) (int, error) {
	size := 1
	for mode, d := range dims {
		if d < 1 {
			return 0, fmt.Errorf("%w: mode %d has dimension %d, at least 1 is needed",
				ErrShape, mode, d)
		}
		hi, lo := bits.Mul64(uint64(size), uint64(d))
		if hi != 0 || lo > 1<<62 { // up to 2^62 an int holds the product
			return 0, fmt.Errorf("%w: %d modes have more entries than an integer holds",
				ErrTooLarge, len(dims))
		}
		size = int(lo)
	}
	return size, nil
}

// sizeWithin returns the number of entries Π dims. It returns the errors of Size, and ErrTooLarge if the number is above the limit.
func sizeWithin(dims []int, limit int) (int, error) {
	size, err := Size(dims)
	if err != nil {
		return 0, err
	}
	if size > limit {
		return 0, fmt.Errorf("%w: %d entries, the limit is %d", ErrTooLarge, size, limit)
	}
	return size, nil
}

// strides returns the row-major strides of dims, last index fastest.
func strides(dims []int) []int {
	s := make([]int, len(dims))
	step := 1
	for i := len(dims) - 1; i >= 0; i-- {
		s[i] = step
		step *= dims[i]
	}
	return s
}

// advance moves x to the next index in row-major order, the last one fastest. It returns false after the last index, and x is then the
// first.
func advance(x, dims []int) bool {
	for i := len(x) - 1; i >= 0; i-- {
		if x[i]++; x[i] < dims[i] {
			return true
		}
		x[i] = 0
	}
	return false
}

// without returns a copy of list without entry i.
func without[T any](list []T, i int) []T {
	out := make([]T, 0, len(list)-1)
	out = append(out, list[:i]...)
	return append(out, list[i+1:]...)
}
