package formula

// Positive entries of a table: variables that it does not depend on, and the tables that it is a product of.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// entries adds the positive entries of a table; those that are 0 are excluded by clauses, and may be anything. Variables on which no
// positive entry depends are left out, and a table without zeros is split into those whose product it is; both are decided exactly.
func (b *builder) entries(scope, dims []int, data []float64) {
	scope, dims = slices.Clone(scope), slices.Clone(dims)
	for k := 0; k < len(dims) && !b.over(len(data)); {
		less, ok := dropMode(dims, data, k)
		if !ok {
			k++
			continue
		}
		data = less
		scope = slices.Delete(scope, k, k+1)
		dims = slices.Delete(dims, k, k+1)
	}
	if b.err != nil {
		return
	}
	if len(scope) == 0 {
		if data[0] != 0 {
			b.scale(scaled.FromFloat(data[0]))
		}
		return
	}
	if slices.Contains(data, 0) {
		b.keep(scope, filled(dims, data))
		return
	}

	groups := b.together(dims, data)
	for _, g := range groups {
		var part []int
		for _, k := range g {
			part = append(part, scope[k])
		}
		b.keep(part, through(dims, data, g))
	}
	for range len(groups) - 1 {
		b.scale(scaled.One.Div(scaled.FromFloat(data[0])))
	}
}

// keep adds a table.
func (b *builder) keep(scope []int, values []float64) {
	if !b.take(bytesPerClause + bytesPerEntry*int64(len(values))) {
		return
	}
	t := Table{Values: values}
	for _, v := range scope {
		t.Scope = append(t.Scope, int32(v))
	}
	b.f.Tables = append(b.f.Tables, t)
}

// dropMode returns a table without mode k, and true, where no positive entry depends on that: an entry of the result is 0 where all it
// stands for are.
func dropMode(dims []int, data []float64, k int) ([]float64, bool) {
	step := 1
	for _, d := range dims[k+1:] {
		step *= d
	}
	out := make([]float64, len(data)/dims[k])
	for i, x := range data {
		at := i/(step*dims[k])*step + i%step
		switch {
		case x == 0 || out[at] == x:
		case out[at] == 0:
			out[at] = x
		default:
			return nil, false
		}
	}
	return out, true
}

// filled returns a table with a positive number in the place of every 0: its neighbour along the
// last mode, so that rows become constant where they can.
func filled(dims []int, data []float64) []float64 {
	out := slices.Clone(data)
	d := dims[len(dims)-1]
	for from := 0; from < len(out); from += d {
		row := out[from : from+d]
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

// together returns the modes in groups: a table t > 0 is Π_g t_g(x_g) over groups between whose
// members nothing interacts. Modes i and j do not where t(a, b) t(0, 0) = t(a, 0) t(0, b) for all
// values of the others: all mixed second differences of ln t are 0 then.
func (b *builder) together(dims []int, data []float64) [][]int {
	group := make([]int, len(dims))
	for k := range group {
		group[k] = k
	}
	for i := range dims {
		for j := range i {
			if group[i] == group[j] || b.over(len(data)) || independent(dims, data, j, i) {
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
	var out [][]int
	for k, g := range group {
		if g == k {
			out = append(out, nil)
			for j, h := range group {
				if h == g {
					out[len(out)-1] = append(out[len(out)-1], j)
				}
			}
		}
	}
	return out
}

// independent reports whether modes i and j do not interact.
func independent(dims []int, data []float64, i, j int) bool {
	step := func(k int) int {
		n := 1
		for _, d := range dims[k+1:] {
			n *= d
		}
		return n
	}
	si, sj := step(i), step(j)
	for at, x := range data {
		a, b := at/si%dims[i], at/sj%dims[j]
		if a == 0 || b == 0 {
			continue
		}
		if !equalProducts(x, data[at-a*si-b*sj], data[at-b*sj], data[at-a*si]) {
			return false
		}
	}
	return true
}

// equalProducts reports whether a·b = c·d, without rounding, for positive numbers.
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

// through returns the part of a table along some modes where all others are 0.
func through(dims []int, data []float64, modes []int) []float64 {
	strides := make([]int, len(dims))
	step := 1
	for k := len(dims) - 1; k >= 0; k-- {
		strides[k] = step
		step *= dims[k]
	}
	out := []float64{}
	var walk func(n, at int)
	walk = func(n, at int) {
		if n == len(modes) {
			out = append(out, data[at])
			return
		}
		for a := range dims[modes[n]] {
			walk(n+1, at+a*strides[modes[n]])
		}
	}
	walk(0, 0)
	return out
}
