package preprocess

// Factorisation: a table that is a product of tables over fewer indices is replaced by them.
//
// It applies when the product agrees with the table entry by entry, within a few roundings.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// factorOut writes table n as u(x)·T'(rest) if it can for one of its modes x. It reports whether it did.
// A constant u is the result of summing a conditional probability over its child; x is then in
// one table less.
func factorOut(e *expression, n int) bool {
	t := e.tables[n]
	if t == nil {
		return false
	}
	for k := range t.scope {
		if factorOutMode(e, n, k) {
			return true
		}
	}
	return false
}

// factorOutMode does that for mode k.
func factorOutMode(e *expression, n, k int) bool {
	t := e.tables[n]
	u, quotient, exact, ok := t.vectorFactor(e.dims, k)
	if !ok {
		return false
	}
	// If the slices are equal but within rounding, u stays with its error among terms of both signs:
	// they may cancel without it.
	constant := isOnes(u) && (exact || !e.signed)
	if len(t.scope) == 1 && !constant {
		return false
	}

	i := t.scope[k]
	t.err = t.factorised(1)
	t.scope = t.without(k)
	t.data, t.owned = quotient, true
	e.leave(n, i)
	if constant {
		e.report.ConstantModes++
	} else {
		e.report.Splits++
		e.add(&table{scope: []int{i}, data: u, owned: true, from: t.from, err: min(t.err, 1)})
	}

	e.changed(n)
	return true
}

// vectorFactor returns u and T' with T(x, rest) = u(x)·T'(rest), x being mode k of t, if there are such
// and t is not 0. T' is the slice of t through its largest entry. exact says that all slices are
// equal, to the bit, and were not rounded.
func (t *table) vectorFactor(dims []int, k int) (u, quotient []float64, exact, ok bool) {
	d := dims[t.scope[k]]
	inner := sumproduct.Size(dims, t.scope[k+1:])
	pivot := largest(t.data)
	if t.data[pivot] == 0 {
		return nil, nil, false, false
	}

	slice := pivot / inner % d
	u = make([]float64, d)
	for x := range u {
		u[x] = t.data[pivot+(x-slice)*inner] / t.data[pivot]
	}

	exact = t.err == 0
	for o := 0; o < len(t.data); o += d * inner {
		for i := range inner {
			r := t.data[o+slice*inner+i]
			for x, f := range u {
				if !equals(t.data[o+x*inner+i], f, r) {
					return nil, nil, false, false
				}
				exact = exact && t.data[o+x*inner+i] == r
			}
		}
	}

	quotient = make([]float64, 0, len(t.data)/d)
	for o := 0; o < len(t.data); o += d * inner {
		quotient = append(quotient, t.data[o+slice*inner:][:inner]...)
	}
	return u, quotient, exact, true
}

// isOnes reports whether all entries are 1 within rounding.
func isOnes(u []float64) bool {
	for _, f := range u {
		if !equals(1, f, 1) {
			return false
		}
	}
	return true
}

// splitPair writes table n as A(x, rest)·B(y, rest) if it can for two of its modes. It reports whether
// it did.
func splitPair(e *expression, n int) bool {
	t := e.tables[n]
	if t == nil {
		return false
	}
	for a := range t.scope {
		for b := a + 1; b < len(t.scope); b++ {
			withX, withY, ok := t.pairFactors(e.dims, a, b)
			if !ok {
				continue
			}
			e.drop(n)
			e.report.Splits++
			e.add(withX)
			e.add(withY)
			return true
		}
	}
	return false
}

// pairFactors returns A and B with T = A(x, rest)·B(y, rest), x and y being modes a < b of t, if for every
// value of the rest its x × y matrix has rank one, and if both are no larger than t.
func (t *table) pairFactors(dims []int, a, b int) (withX, withY *table, ok bool) {
	dx, dy := dims[t.scope[a]], dims[t.scope[b]]
	if len(t.scope) < 3 || dx+dy > dx*dy {
		return nil, nil, false
	}

	strides := sumproduct.Along(dims, t.scope, t.scope)
	sx, sy := strides[a], strides[b]
	var others []int
	for k, i := range t.scope {
		if k != a && k != b {
			others = append(others, i)
		}
	}

	bases := t.offsets(dims, others)
	px := make([]int, len(bases))
	py := make([]int, len(bases))
	for r, base := range bases {
		if px[r], py[r], ok = rankOne(t.data[base:], dx, sx, dy, sy); !ok {
			return nil, nil, false
		}
	}

	err := t.factorised(2)
	withX = &table{scope: t.without(b), owned: true, from: t.from, wider: true, err: err}
	withY = &table{scope: t.without(a), owned: true, from: t.from, wider: true, err: err}
	withX.data = make([]float64, len(t.data)/dy)
	withY.data = make([]float64, len(t.data)/dx)
	lx := sumproduct.Along(dims, withX.scope, t.scope)[a]
	ly := sumproduct.Along(dims, withY.scope, t.scope)[b]
	basesX := withX.offsets(dims, others)
	basesY := withY.offsets(dims, others)

	// A is the column through the pivot, B the row through it over the pivot.
	for r, base := range bases {
		pivot := t.data[base+px[r]*sx+py[r]*sy]
		for v := range dx {
			withX.data[basesX[r]+v*lx] = t.data[base+v*sx+py[r]*sy]
		}
		for v := range dy {
			row := t.data[base+px[r]*sx+v*sy]
			if row == 0 {
				continue
			}
			q := row / pivot
			if math.Abs(q) < tiny {
				return nil, nil, false
			}
			withY.data[basesY[r]+v*ly] = q
		}
	}
	return withX, withY, true
}

// rankOne reports whether the dx × dy matrix with these strides is the product
// of a column and a row through its largest entry, whose place it returns.
func rankOne(m []float64, dx, sx, dy, sy int) (px, py int, ok bool) {
	top := 0.0
	for v := range dx {
		for u := range dy {
			if e := math.Abs(m[v*sx+u*sy]); e > top {
				top = e
				px, py = v, u
			}
		}
	}
	if top == 0 {
		return 0, 0, true
	}

	pivot := m[px*sx+py*sy]
	for v := range dx {
		f := m[v*sx+py*sy] / pivot
		for u := range dy {
			if !equals(m[v*sx+u*sy], f, m[px*sx+u*sy]) {
				return 0, 0, false
			}
		}
	}
	return px, py, true
}
