package preprocess

// Factorisation: a table that is a product of tables over fewer indices is replaced by them.
//
// It applies when the product agrees with the table entry by entry, within a few roundings.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// factorOut writes table n as a product u(x)·T'(others), where x is one of its indices, if that is possible for some x. It reports whether
// it was. T' becomes table n, and u a new table. If u is 1 for all x, as after summing a conditional probability over its child, there is
// no new table.
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

// factorOutMode writes table n as a product u(x)·T'(others), where x is the k-th index of its scope, and reports whether that is possible.
// Table n becomes T'. u becomes a new table, unless it is 1 for all x. A table of one index is not split, since u would be the table
// itself.
func factorOutMode(e *expression, n, k int) bool {
	t := e.tables[n]
	u, quotient, isExact, ok := t.vectorFactor(e.dims, k)
	if !ok {
		return false
	}
	// If u is 1 only within rounding, and terms of both signs may cancel, it stays, since its error counts.
	isConstant := isOnes(u) && (isExact || !e.isSigned)
	if len(t.scope) == 1 && !isConstant {
		return false
	}

	i := t.scope[k]
	t.err = t.factorError(1) // T' has all of the table's error; u has at most that of one division
	t.scope = t.scopeWithout(k)
	t.data, t.ownsData = quotient, true
	e.unlinkTable(n, i)
	if isConstant {
		e.report.ConstantModes++
	} else {
		e.report.Splits++
		e.addTable(&table{scope: []int{i}, data: u, ownsData: true, source: t.source, err: min(t.err, 1)})
	}

	e.noteChange(n)
	return true
}

// vectorFactor returns u and T' with T(x, others) = u(x)·T'(others) within rounding, where x is the k-th index of t. Entry (outer, x,
// inner) of t is data[(outer*d + x)*stride + inner], where d is the dimension of x. A slice of t is its entries at one value of x. T', the
// quotient, is the slice that has the largest entry. isExact is true if all slices are equal, to the bit, and were not rounded. ok is
// false if there is no such product or if t is 0.
func (t *table) vectorFactor(dims []int, k int) (u, quotient []float64, isExact, ok bool) {
	d := dims[t.scope[k]]
	stride := sumproduct.Size(dims, t.scope[k+1:])
	pivot := indexOfLargest(t.data)
	if t.data[pivot] == 0 {
		return nil, nil, false, false
	}

	// u is the line along x through the largest entry, the pivot, divided by the pivot.
	pivotX := pivot / stride % d // the value of x at the pivot
	u = make([]float64, d)
	for x := range u {
		u[x] = t.data[pivot+(x-pivotX)*stride] / t.data[pivot]
	}

	// Compare every entry with the product.
	isExact = t.err == 0
	for base := 0; base < len(t.data); base += d * stride {
		for inner := range stride {
			quotientEntry := t.data[base+pivotX*stride+inner]
			for x, factor := range u {
				entry := t.data[base+x*stride+inner]
				if !equals(entry, factor, quotientEntry) {
					return nil, nil, false, false
				}
				isExact = isExact && entry == quotientEntry
			}
		}
	}

	quotient = make([]float64, 0, len(t.data)/d)
	for base := 0; base < len(t.data); base += d * stride {
		quotient = append(quotient, t.data[base+pivotX*stride:][:stride]...)
	}
	return u, quotient, isExact, true
}

// isOnes reports whether all entries of u are 1 within rounding.
func isOnes(u []float64) bool {
	for _, f := range u {
		if !equals(1, f, 1) {
			return false
		}
	}
	return true
}

// splitPair replaces table n by two tables A(x, others) and B(y, others) whose product it is, where x and y are two of its indices, if that
// is possible for some x and y. It reports whether it was.
func splitPair(e *expression, n int) bool {
	t := e.tables[n]
	if t == nil {
		return false
	}
	for a := range t.scope {
		for b := a + 1; b < len(t.scope); b++ {
			tableA, tableB, ok := t.pairFactors(e.dims, a, b)
			if !ok {
				continue
			}
			e.removeTable(n)
			e.report.Splits++
			e.addTable(tableA)
			e.addTable(tableB)
			return true
		}
	}
	return false
}

// pairFactors returns tables A(x, others) and B(y, others) whose product is t. x and y are the indices at positions modeX < modeY of its
// scope, and others are its other indices. For every combination of values of the others, t is a matrix over x and y, which must have rank
// one: it is the line along x through an entry, the pivot, times the line along y through the pivot, divided by the pivot. The lines along
// x make A, and the divided lines along y make B. ok is false if a matrix has a higher rank, if A and B together are larger than t, or if
// an entry of B would be tiny (below 2^-1000).
func (t *table) pairFactors(dims []int, modeX, modeY int) (tableA, tableB *table, ok bool) {
	dimX, dimY := dims[t.scope[modeX]], dims[t.scope[modeY]]
	isLarger := dimX+dimY > dimX*dimY // the entries of A and B against those of t, for each combination of the others
	if len(t.scope) < 3 || isLarger { // a table of two indices is split by factorOut
		return nil, nil, false
	}

	strides := sumproduct.AxisStrides(dims, t.scope, t.scope)
	strideX, strideY := strides[modeX], strides[modeY]
	var others []int
	for k, i := range t.scope {
		if k != modeX && k != modeY {
			others = append(others, i)
		}
	}

	// Entry (x, y) of matrix r is at bases[r] + x·strideX + y·strideY.
	bases := t.offsets(dims, others)
	pivots := make([]pivot, len(bases))
	for r, base := range bases {
		var hasRankOne bool
		if pivots[r], hasRankOne = rankOnePivot(t.data[base:], dimX, strideX, dimY, strideY); !hasRankOne {
			return nil, nil, false
		}
	}

	err := t.factorError(2) // of the entries of A and of B, the 2 factors that share the error of t
	tableA = &table{scope: t.scopeWithout(modeY), ownsData: true, source: t.source, hasNewScope: true, err: err}
	tableB = &table{scope: t.scopeWithout(modeX), ownsData: true, source: t.source, hasNewScope: true, err: err}
	tableA.data = make([]float64, len(t.data)/dimY)
	tableB.data = make([]float64, len(t.data)/dimX)
	strideA := sumproduct.AxisStrides(dims, tableA.scope, t.scope)[modeX] // of x in A
	strideB := sumproduct.AxisStrides(dims, tableB.scope, t.scope)[modeY] // of y in B
	basesA := tableA.offsets(dims, others)
	basesB := tableB.offsets(dims, others)

	for r, base := range bases {
		lineX := base + pivots[r].y*strideY // of the first entry of the line along x through the pivot
		lineY := base + pivots[r].x*strideX // of the first entry of the line along y
		for x := range dimX {
			tableA.data[basesA[r]+x*strideA] = t.data[lineX+x*strideX]
		}
		pivotEntry := t.data[lineX+pivots[r].x*strideX]
		for y := range dimY {
			entry := t.data[lineY+y*strideY]
			if entry == 0 { // also for a matrix of zeros, whose pivot is 0
				continue
			}
			quotient := entry / pivotEntry
			if math.Abs(quotient) < tiny {
				return nil, nil, false
			}
			tableB.data[basesB[r]+y*strideB] = quotient
		}
	}
	return tableA, tableB, true
}

// pivot is the position of the largest entry of a matrix over x and y.
type pivot struct{ x, y int }

// rankOnePivot returns the pivot of a matrix m. Entry (x, y) is m[x*strideX + y*strideY]. The pivot is the position of the entry of the
// largest absolute value. ok is true if the matrix has rank one within rounding, or is 0: if p is the pivot, every entry (x, y) is m(x,
// p.y) · m(p.x, y) / m(p.x, p.y).
func rankOnePivot(m []float64, dimX, strideX, dimY, strideY int) (p pivot, ok bool) {
	largest := 0.0
	for x := range dimX {
		for y := range dimY {
			if size := math.Abs(m[x*strideX+y*strideY]); size > largest {
				largest = size
				p = pivot{x, y}
			}
		}
	}
	if largest == 0 {
		return pivot{}, true
	}

	pivotEntry := m[p.x*strideX+p.y*strideY]
	for x := range dimX {
		factor := m[x*strideX+p.y*strideY] / pivotEntry
		for y := range dimY {
			if !equals(m[x*strideX+y*strideY], factor, m[p.x*strideX+y*strideY]) {
				return pivot{}, false
			}
		}
	}
	return p, true
}
