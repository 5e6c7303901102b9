package formula

// Positive entries of a table: variables that it does not depend on, and the tables that it is a product of.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// addEntries adds the positive entries of a table. Clauses exclude the entries that are 0, which may be anything here. Variables on which
// no positive entry depends are left out, and a table without zeros is split into tables whose product it is. Both are decided without
// rounding.
func (b *builder) addEntries(scope, dims []int, data []float64) {
	scope, dims = slices.Clone(scope), slices.Clone(dims)
	for k := 0; k < len(dims) && !b.over(len(data)); {
		smaller, ok := dropMode(dims, data, k)
		if !ok {
			k++
			continue
		}
		data = smaller
		scope = slices.Delete(scope, k, k+1)
		dims = slices.Delete(dims, k, k+1)
	}
	if b.err != nil {
		return
	}
	if len(scope) == 0 {
		if data[0] != 0 {
			b.multiplyScale(scaled.FromFloat(data[0]))
		}
		return
	}
	if slices.Contains(data, 0) {
		b.storeTable(scope, fillZeros(dims, data))
		return
	}

	groups := b.interactingModes(dims, data)
	for _, modes := range groups {
		var groupScope []int
		for _, k := range modes {
			groupScope = append(groupScope, scope[k])
		}
		b.storeTable(groupScope, alongModes(dims, data, modes))
	}
	for range len(groups) - 1 { // t = Π_g t(x_g, 0) / t(0)^(groups − 1)
		b.multiplyScale(scaled.One.Div(scaled.FromFloat(data[0])))
	}
}

// storeTable adds a table of positive values to the formula, if there is memory for it.
func (b *builder) storeTable(scope []int, values []float64) {
	if !b.takeBytes(bytesPerClause + bytesPerEntry*int64(len(values))) {
		return
	}
	t := Table{Values: values}
	for _, v := range scope {
		t.Scope = append(t.Scope, int32(v))
	}
	b.f.Tables = append(b.f.Tables, t)
}

// dropMode returns a table without mode k. ok is false if its positive entries depend on that mode. An entry of the result is 0 if all
// entries that it stands for are 0.
func dropMode(dims []int, data []float64, k int) (smaller []float64, ok bool) {
	stride := 1
	for _, d := range dims[k+1:] {
		stride *= d
	}
	smaller = make([]float64, len(data)/dims[k])
	for i, x := range data {
		// Entry i without its digit of mode k. Example: dims (2, 3, 2) and k = 1, so stride = 2: entry 9 = (1, 1, 1) goes to 3 = (1, 1).
		j := i/(stride*dims[k])*stride + i%stride
		switch {
		case x == 0 || smaller[j] == x:
		case smaller[j] == 0:
			smaller[j] = x
		default:
			return nil, false
		}
	}
	return smaller, true
}

// fillZeros returns a table with a positive number in the place of each 0: the first positive entry of its row along the last mode, so
// that rows become constant if they can, or 1.
func fillZeros(dims []int, data []float64) []float64 {
	out := slices.Clone(data)
	d := dims[len(dims)-1]
	for start := 0; start < len(out); start += d {
		row := out[start : start+d]
		fill := 1.0
		if k := slices.IndexFunc(row, func(x float64) bool { return x > 0 }); k >= 0 {
			fill = row[k]
		}
		for k, x := range row {
			if x == 0 {
				row[k] = fill
			}
		}
	}
	return out
}

// interactingModes returns the modes of a table t > 0 in groups, such that t is Π_g t_g(x_g) over the groups g: modes of different groups
// do not interact. Modes i and j do not interact if t(a, b) t(0, 0) = t(a, 0) t(0, b) for all values a and b of the two and all values of
// the other modes: all mixed second differences of ln t are 0 then.
func (b *builder) interactingModes(dims []int, data []float64) [][]int {
	group := make([]int, len(dims)) // by mode: the first mode of its group
	for k := range group {
		group[k] = k
	}
	for i := range dims {
		for j := range i {
			if group[i] == group[j] || b.over(len(data)) || areIndependent(dims, data, j, i) {
				continue
			}
			from, to := max(group[i], group[j]), min(group[i], group[j])
			for k := range group {
				if group[k] == from {
					group[k] = to
				}
			}
		}
	}
	var groups [][]int
	for k, first := range group {
		if first != k {
			continue
		}
		var modes []int
		for j, other := range group {
			if other == first {
				modes = append(modes, j)
			}
		}
		groups = append(groups, modes)
	}
	return groups
}

// areIndependent reports whether modes i and j of a positive table do not interact (see interactingModes).
func areIndependent(dims []int, data []float64, i, j int) bool {
	stride := func(k int) int {
		n := 1
		for _, d := range dims[k+1:] {
			n *= d
		}
		return n
	}
	si, sj := stride(i), stride(j)
	for cell, x := range data {
		a, b := cell/si%dims[i], cell/sj%dims[j] // the values of modes i and j
		if a == 0 || b == 0 {
			continue
		}
		if !equalProducts(x, data[cell-a*si-b*sj], data[cell-b*sj], data[cell-a*si]) {
			return false
		}
	}
	return true
}

// equalProducts reports whether a·b = c·d, without rounding, for positive numbers. It writes each product as (high + low)·2^exp, where high
// is the rounded product of the mantissas, in [1/2, 1), and low its rounding error.
func equalProducts(a, b, c, d float64) bool {
	product := func(x, y float64) (high, low float64, exp int) {
		mx, ex := math.Frexp(x)
		my, ey := math.Frexp(y)
		if high = mx * my; high < 0.5 {
			mx *= 2
			high *= 2
			ex--
		}
		return high, math.FMA(mx, my, -high), ex + ey
	}
	h1, l1, e1 := product(a, b)
	h2, l2, e2 := product(c, d)
	return h1 == h2 && l1 == l2 && e1 == e2
}

// alongModes returns the entries of a table at which all modes but the given ones are 0, the last of the given modes fastest.
func alongModes(dims []int, data []float64, modes []int) []float64 {
	strides := make([]int, len(dims))
	stride := 1
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = stride
		stride *= dims[k]
	}
	out := []float64{}
	var walk func(n, cell int) // cell has the values of the first n modes
	walk = func(n, cell int) {
		if n == len(modes) {
			out = append(out, data[cell])
			return
		}
		for a := range dims[modes[n]] {
			walk(n+1, cell+a*strides[modes[n]])
		}
	}
	walk(0, 0)
	return out
}
