package formula

// Positive entries of a table: variables that it does not depend on, and the tables that it is a product of.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// addEntries adds the positive entries of a table as tables of the formula. Clauses exclude the entries that are 0, so these may become
// anything. It leaves out variables on which no positive entry depends (dropMode), and splits a table without zeros into tables whose
// product it is. Whether it may do so is decided without rounding. Errors are kept in b.
func (b *builder) addEntries(scope, dims []int, data []float64) {
	// Leave out variables (modes of the table) on which no positive entry depends.
	scope, dims = slices.Clone(scope), slices.Clone(dims)
	for k := 0; k < len(dims) && !b.isOver(len(data)); {
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
		if data[0] != 0 { // if it is 0, all entries were, and clauses exclude them all
			b.multiplyScale(scaled.FromFloat(data[0]))
		}
		return
	}
	if slices.Contains(data, 0) { // fillZeros writes something positive instead
		b.storeTable(scope, fillZeros(dims, data))
		return
	}

	b.addGroups(scope, dims, data)
}

// addGroups adds a table without zeros, as the product of a table for each group of variables that do not interact with others. Let t(x_g,
// 0) be the entry at which group g has the values x_g, and all other variables have the value 0. Then the table is
//
//	t(x) = Π_g t(x_g, 0) / t(0)^(number of groups − 1)
func (b *builder) addGroups(scope, dims []int, data []float64) {
	groups := b.interactingModes(dims, data)
	for _, modes := range groups {
		var groupScope []int
		for _, k := range modes {
			groupScope = append(groupScope, scope[k])
		}
		b.storeTable(groupScope, alongModes(dims, data, modes))
	}
	for range len(groups) - 1 {
		b.multiplyScale(scaled.One.Div(scaled.FromFloat(data[0]))) // 1 / t(0)
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

// dropMode returns a table without mode k. It takes together the entries that differ only in their value of mode k. If all positive ones
// among them are equal, they become one entry of that number; if none is positive, the entry is 0. ok is false if positive ones differ, so
// that the table depends on the mode. Entries of 0 need not agree with positive ones, since clauses exclude them.
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

// fillZeros returns a table in which each 0 is replaced by the first positive entry of its row along the last mode, or by 1 if all
// entries of the row are 0. So a row whose positive entries are equal becomes constant. Clauses exclude the entries that were 0.
func fillZeros(dims []int, data []float64) []float64 {
	filled := slices.Clone(data)
	d := dims[len(dims)-1]
	for start := 0; start < len(filled); start += d {
		row := filled[start : start+d]
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
	return filled
}

// interactingModes divides the modes (axes) of a table t > 0 into groups g for which t = Π_g t_g(x_g).
//
// Modes i and j do not interact if t(a, b) t(0, 0) = t(a, 0) t(0, b) for all values a of i and b of j, with any values of the other modes:
// the mixed second differences of ln t by i and j are 0. Two modes are in one group if they interact, or a chain of interactions connects
// them. If the work of b is over, modes that were not compared count as independent; then the builder has failed.
func (b *builder) interactingModes(dims []int, data []float64) [][]int {
	// Join the groups of any two modes that interact.
	firstOfGroup := make([]int, len(dims)) // by mode: the first mode of its group
	for k := range firstOfGroup {
		firstOfGroup[k] = k
	}
	for i := range dims {
		for j := range i {
			if firstOfGroup[i] == firstOfGroup[j] || b.isOver(len(data)) || areIndependent(dims, data, j, i) {
				continue
			}
			first, second := min(firstOfGroup[i], firstOfGroup[j]), max(firstOfGroup[i], firstOfGroup[j])
			for k := range firstOfGroup {
				if firstOfGroup[k] == second { // of the second group: join the first one
					firstOfGroup[k] = first
				}
			}
		}
	}

	return listGroups(firstOfGroup)
}

// listGroups returns the modes of each group, in the order of the groups' first modes. firstOfGroup has, by mode, the first mode of its
// group.
func listGroups(firstOfGroup []int) (groups [][]int) {
	for k, first := range firstOfGroup {
		if first != k {
			continue
		}
		var modes []int
		for j, firstOfJ := range firstOfGroup {
			if firstOfJ == first {
				modes = append(modes, j)
			}
		}
		groups = append(groups, modes)
	}
	return groups
}

// areIndependent reports whether modes i and j of a positive table t do not interact: t(a, b) t(0, 0) = t(a, 0) t(0, b) for all values a
// and b of the two and all values of the other modes.
func areIndependent(dims []int, data []float64, i, j int) bool {
	strideOf := func(k int) int {
		n := 1
		for _, d := range dims[k+1:] {
			n *= d
		}
		return n
	}
	strideI, strideJ := strideOf(i), strideOf(j)
	for cell, x := range data {
		a, b := cell/strideI%dims[i], cell/strideJ%dims[j] // the values of modes i and j
		if a == 0 || b == 0 {                              // the equation holds
			continue
		}
		atA, atB := cell-b*strideJ, cell-a*strideI // t(a, 0) and t(0, b)
		if !equalProducts(x, data[atB-b*strideJ], data[atA], data[atB]) {
			return false
		}
	}
	return true
}

// equalProducts reports whether a·b = c·d exactly, for positive numbers. It writes each product as (high + low)·2^exp: high is the product
// of the mantissas rounded to float64, scaled to be from 1/2 to 1, and low is the product less high, which float64 holds exactly. Equal
// products have equal high, low and exp.
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
	high1, low1, exp1 := product(a, b)
	high2, low2, exp2 := product(c, d)
	return high1 == high2 && low1 == low2 && exp1 == exp2
}

// alongModes returns the entries of a table at which all modes but the given ones have value 0, the last of the given modes fastest.
func alongModes(dims []int, data []float64, modes []int) []float64 {
	strides := make([]int, len(dims))
	stride := 1
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = stride
		stride *= dims[k]
	}
	entries := []float64{}
	var walk func(n, cell int) // cell is the index by the values of the first n of modes
	walk = func(n, cell int) {
		if n == len(modes) {
			entries = append(entries, data[cell])
			return
		}
		for a := range dims[modes[n]] {
			walk(n+1, cell+a*strides[modes[n]])
		}
	}
	walk(0, 0)
	return entries
}
