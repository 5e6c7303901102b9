package preprocess

// One table, and its entries by index.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// table is one factor of the expression. It does not have the dimensions of its indices: methods take dims, those of all indices of the
// expression.
type table struct {
	scope         []int
	data          []float64 // entries in row-major order: the last index of the scope varies fastest
	ownsData      bool      // no other table shares data
	source        *source   // tables of the given expression that are in it
	cachedSupport support   // of data; read it by support
	hasNewScope   bool      // tables whose scope is part of this one have not been looked for yet
	// err bounds the error of every entry, relative to itself, in units of 2^-53;
	// 0: nothing was rounded.
	err float64
}

// ownData copies the entries of t if another table may share them. It must be called before they are changed.
func (t *table) ownData() {
	if !t.ownsData {
		t.data = slices.Clone(t.data)
		t.ownsData = true
	}
}

// normalise divides the entries of t by 2^exp, so that the largest absolute value is in [1, 2), and returns exp. If all entries are 0, if
// small entries would become tiny, or if |exp| is above 1000, it changes nothing and returns 0.
func (t *table) normalise() (exp int) {
	smallest, largest := absoluteRange(t.data)
	isNormal := largest >= 1 && largest < 2
	if largest == 0 || isNormal {
		return 0
	}

	_, exp = math.Frexp(largest) // the largest entry is in [0.5, 1) · 2^exp
	exp--
	if math.Abs(float64(-exp)) > 1000 || smallest*math.Ldexp(1, -exp) < tiny {
		return 0
	}
	t.ownData() // copies t.data if another table shares it
	floats.Shift(t.data, -exp)
	return exp
}

// absoluteRange returns the smallest and the largest absolute value of the entries that are not 0. Both are 0 if all entries are.
func absoluteRange(data []float64) (smallest, largest float64) {
	smallest = math.Inf(1)
	for _, x := range data {
		if x = math.Abs(x); x != 0 {
			smallest = min(smallest, x)
			largest = max(largest, x)
		}
	}

	if largest == 0 {
		smallest = 0
	}
	return smallest, largest
}

// shape returns the dimensions of the indices of t. dims has those of all indices of the expression.
func (t *table) shape(dims []int) []int {
	shape := make([]int, len(t.scope))
	for k, i := range t.scope {
		shape[k] = dims[i]
	}
	return shape
}

// offsets returns the positions in t.data of all combinations of values of some of its indices, axes, in row-major order; the other indices
// are 0. For a table over 2 × 3 × 4 values, its first and last indices give 0, 1, 2, 3, 12, 13, 14, 15.
func (t *table) offsets(dims, axes []int) []int {
	list := []int{0}
	for k, stride := range sumproduct.AxisStrides(dims, t.scope, axes) {
		list = sumproduct.ExpandOffsets(list, dims[axes[k]], stride)
	}
	return list
}

// scopeWithout returns the scope of t without its k-th index.
func (t *table) scopeWithout(k int) []int {
	return slices.Delete(slices.Clone(t.scope), k, k+1)
}

// keepAlive removes the entries of t with a value that is not alive. isAlive is by index and value.
func (t *table) keepAlive(dims []int, isAlive [][]bool) {
	offsets := make([][]int, len(t.scope)) // by mode: what each value that stays adds to the position in data
	for k, stride := len(t.scope)-1, 1; k >= 0; k-- {
		i := t.scope[k]
		for x, stays := range isAlive[i] {
			if stays {
				offsets[k] = append(offsets[k], x*stride)
			}
		}
		stride *= dims[i]
	}
	t.data = gather(t.data, offsets)
	t.ownsData = true
}

// replaceIndex replaces index y of t by index x, of which y is a function f: the new entry at value v of x is the old entry at y = f[v].
// If t has x already, y is removed, and of the entries at x = v the one at y = f[v] stays.
func (t *table) replaceIndex(dims []int, y, x int, f []int) {
	var scope []int
	var offsets [][]int // by mode of the new table: what each value adds to the position in t.data
	strides := sumproduct.AxisStrides(dims, t.scope, t.scope)
	hasBoth := slices.Contains(t.scope, x)

	for k, i := range t.scope {
		if i == y && hasBoth {
			continue
		}
		newIndex := i
		if i == y {
			newIndex = x
		}

		modeOffsets := make([]int, dims[newIndex])
		for v := range modeOffsets {
			switch i {
			case y:
				modeOffsets[v] = f[v] * strides[k]
			case x: // together with the offset of y, which is removed
				modeOffsets[v] = v*strides[k] + f[v]*strides[slices.Index(t.scope, y)]
			default:
				modeOffsets[v] = v * strides[k]
			}
		}
		scope = append(scope, newIndex)
		offsets = append(offsets, modeOffsets)
	}

	t.data = gather(t.data, offsets) // the entry at each combination of positions is the old one at the sum of its offsets
	t.ownsData = true
	t.scope = scope
	t.hasNewScope = true
}

// gather returns a table whose entry at x_0, x_1, … is data[Σ_k offsets[k][x_k]], in row-major order. Index k of the table has
// len(offsets[k]) values.
func gather(data []float64, offsets [][]int) []float64 {
	size := 1
	for _, modeOffsets := range offsets {
		size *= len(modeOffsets)
	}
	gathered := make([]float64, 0, size)
	if len(offsets) == 0 { // a table without indices has one entry
		return append(gathered, data[0])
	}

	lastOffsets := offsets[len(offsets)-1]
	x := make([]int, len(offsets)-1) // values of all indices but the last
	for len(gathered) < size {
		base := 0
		for k, v := range x {
			base += offsets[k][v]
		}
		for _, offset := range lastOffsets {
			gathered = append(gathered, data[base+offset])
		}
		for k := len(x) - 1; k >= 0; k-- {
			if x[k]++; x[k] < len(offsets[k]) {
				break
			}
			x[k] = 0
		}
	}
	return gathered
}

// containsAll reports whether scope contains all elements of part.
func containsAll(scope, part []int) bool {
	if len(part) > len(scope) {
		return false
	}
	for _, i := range part {
		if !slices.Contains(scope, i) {
			return false
		}
	}
	return true
}

// indexMask returns a mask in which bit i%64 is set for every index i of a scope. A table whose mask lacks a bit of another mask lacks an
// index of the other scope.
func indexMask(scope []int) (mask uint64) {
	for _, i := range scope {
		mask |= 1 << (i % 64)
	}
	return mask
}

// sequence returns the list 0 … n−1.
func sequence(n int) []int {
	list := make([]int, n)
	for k := range list {
		list[k] = k
	}
	return list
}

// sortedUnique sorts a list in place and returns it without repetitions.
func sortedUnique(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
