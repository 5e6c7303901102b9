package preprocess

// One table, and its entries by index.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// table is one factor of the expression. The dimensions of its indices are not its own: methods take
// those of all indices.
type table struct {
	scope   []int
	data    []float64
	owned   bool    // nobody else has data
	from    *source // tables of the expression given that are in it
	nonzero support // of data; read it by support
	wider   bool    // its scope is new: tables inside it have not been looked for
	// err bounds the error of every entry, relative to itself, in units of 2^-53;
	// 0: nothing was rounded.
	err float64
}

// unshare makes data the table's before it is changed.
func (t *table) unshare() {
	if !t.owned {
		t.data = slices.Clone(t.data)
		t.owned = true
	}
}

// normalise brings the largest entry of t into [1, 2), unless small entries would be lost.
// The entries were 2^exp times what they are now.
func (t *table) normalise() (exp int) {
	low, top := spread(t.data)
	if top == 0 || top >= 1 && top < 2 {
		return 0
	}

	_, exp = math.Frexp(top)
	exp--
	if e := float64(-exp); math.Abs(e) > 1000 || low*math.Ldexp(1, -exp) < tiny {
		return 0
	}
	t.unshare()
	floats.Shift(t.data, -exp)
	return exp
}

// spread returns the smallest and the largest absolute value above 0; 0 and 0 for zeros.
func spread(data []float64) (low, top float64) {
	low = math.Inf(1)
	for _, x := range data {
		if x = math.Abs(x); x != 0 {
			low = min(low, x)
			top = max(top, x)
		}
	}

	if top == 0 {
		low = 0
	}
	return low, top
}

// shape returns the dimensions of t.
func (t *table) shape(dims []int) []int {
	out := make([]int, len(t.scope))
	for k, i := range t.scope {
		out[k] = dims[i]
	}
	return out
}

// offsets lists where in t the values of some of its indices are,
// in row-major order, the others at 0.
func (t *table) offsets(dims, axes []int) []int {
	list := []int{0}
	for k, stride := range sumproduct.Along(dims, t.scope, axes) {
		list = sumproduct.Spread(list, dims[axes[k]], stride)
	}
	return list
}

// without returns the scope of t without mode k.
func (t *table) without(k int) []int {
	return slices.Delete(slices.Clone(t.scope), k, k+1)
}

// restrict keeps the entries whose values are alive, which says so by index and value.
func (t *table) restrict(dims []int, alive [][]bool) {
	offsets := make([][]int, len(t.scope))
	for k, stride := len(t.scope)-1, 1; k >= 0; k-- {
		i := t.scope[k]
		for x, on := range alive[i] {
			if on {
				offsets[k] = append(offsets[k], x*stride)
			}
		}
		stride *= dims[i]
	}
	t.data = gather(t.data, offsets)
	t.owned = true
}

// substitute writes t over x in the place of y: the entry at x is the one at y = f(x).
func (t *table) substitute(dims []int, y, x int, f []int) {
	var scope []int
	var offsets [][]int
	strides := sumproduct.Along(dims, t.scope, t.scope)
	both := slices.Contains(t.scope, x)

	for k, i := range t.scope {
		if i == y && both {
			continue
		}
		n := dims[i]
		if i == y {
			i, n = x, dims[x]
		}

		o := make([]int, n)
		for v := range o {
			switch {
			case t.scope[k] == y:
				o[v] = f[v] * strides[k]
			case i == x:
				o[v] = v*strides[k] + f[v]*strides[slices.Index(t.scope, y)]
			default:
				o[v] = v * strides[k]
			}
		}
		scope = append(scope, i)
		offsets = append(offsets, o)
	}

	t.data = gather(t.data, offsets)
	t.owned = true
	t.scope = scope
	t.wider = true
}

// gather returns data[Σ_k offsets[k][x_k]] for all x in row-major order.
func gather(data []float64, offsets [][]int) []float64 {
	size := 1
	for _, o := range offsets {
		size *= len(o)
	}
	out := make([]float64, 0, size)

	if len(offsets) == 0 {
		return append(out, data[0])
	}

	last := offsets[len(offsets)-1]
	x := make([]int, len(offsets)-1)
	for len(out) < size {
		base := 0
		for k, v := range x {
			base += offsets[k][v]
		}
		for _, o := range last {
			out = append(out, data[base+o])
		}
		for k := len(x) - 1; k >= 0; k-- {
			if x[k]++; x[k] < len(offsets[k]) {
				break
			}
			x[k] = 0
		}
	}
	return out
}

// contains reports whether all of part is in scope.
func contains(scope, part []int) bool {
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

// maskOf has a bit for every index of a scope, modulo 64: most tables that lack an index lack its bit.
func maskOf(scope []int) (mask uint64) {
	for _, i := range scope {
		mask |= 1 << (i % 64)
	}
	return mask
}

// sequence lists 0 … n−1.
func sequence(n int) []int {
	list := make([]int, n)
	for k := range list {
		list[k] = k
	}
	return list
}

// unique sorts a list and drops repetitions.
func unique(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
