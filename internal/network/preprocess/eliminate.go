package preprocess

// Elimination: an index is summed out of the product of its tables.
//
// It applies when that costs nothing: the index is in no table or in one, or the table that comes out
// of its tables is no larger than one of them, or lies inside another table. It is exact because the
// sum over an index may be moved behind the tables that do not have it.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// wellConditioned is the least ratio of a divisor that is a sum to the sum of
// its terms' absolute values.
const wellConditioned = 1.0 / 16

// elimination sums indices out, within limits.
type elimination struct {
	maxTables  int // an index in more tables is not summed out
	maxEntries int // limit of the entries of a table that replaces several
}

// newElimination returns the elimination that options ask for. With o.Terms no index is summed out: maxTables is −1, and even an index in
// no table is in more tables than that. With o.NoElimination indices in at most one table are summed out, otherwise all indices.
func newElimination(o Options) elimination {
	switch {
	case o.Terms:
		return elimination{maxTables: -1}
	case o.NoElimination:
		return elimination{maxTables: 1, maxEntries: o.MaxEntries}
	}
	return elimination{maxTables: math.MaxInt, maxEntries: o.MaxEntries}
}

// eliminate sums index i out if that costs nothing (resultScope): it replaces the tables with i by the sum over i of their product. It does
// nothing if a product would leave the range of float64, or if too much would cancel in a sum. If the marginal of i is needed, it sums i
// out only if the marginal can be restored. For that, i must be in at most one table, and this table may have only one other index, the
// parent of i; the conditional probabilities P(i | parent) are recorded.
func (s elimination) eliminate(e *expression, i int) {
	tableCount, isNeeded := len(e.tablesOf[i]), e.origins.isNeeded[i]
	isInExpression := !e.origins.isGone(i) && e.dims[i] > 1
	hasTooManyTables := tableCount > s.maxTables || isNeeded && tableCount > 1
	if !isInExpression || hasTooManyTables {
		return
	}

	if tableCount == 0 {
		e.sumOutFree(i)
		return
	}

	numbers := slices.Clone(e.tablesOf[i])
	tables := make([]*table, len(numbers))
	for k, n := range numbers {
		tables[k] = e.tables[n]
	}

	// Compute P(i | parent), from which the marginal of i can be restored.
	parent, conditional := -1, []float64(nil)
	if tableCount == 1 {
		var canRestore bool
		if parent, conditional, canRestore = conditionalOf(e.dims, tables[0], i); !canRestore && isNeeded {
			return
		}
	}

	// Compute the table that replaces the others. rounding bounds the relative error of its entries.
	scope, isFree := s.resultScope(e, tables, i)
	if !isFree {
		return
	}
	data, rounding, ok := sumProduct(e.dims, tables, scope, []int{i}, e.isSigned)
	if !ok { // out of the range of float64, or cancelled
		return
	}

	for _, n := range numbers {
		e.removeTable(n)
	}
	e.sumOut(i, parent, conditional)
	mayContainOthers := tableCount > 1 // what fits into the scope of a single table without i fitted into its scope before
	e.addTable(&table{scope: scope, data: data, ownsData: true, source: mergeSources(tables), hasNewScope: mayContainOthers, err: rounding})
}

// sumOutFree sums index i out, which is in no table: its dimension is a factor of the scale, and its marginal is uniform.
func (e *expression) sumOutFree(i int) {
	d := float64(e.dims[i])
	e.scale = e.scale.Mul(scaled.FromFloat(d))
	const noParent = -1
	e.sumOut(i, noParent, slices.Repeat([]float64{1 / d}, e.dims[i]))
}

// resultScope returns the scope of the table that replaces tables when index i is summed out of their product: all their indices but i. ok
// is true if that costs nothing. This is so if there is one table; or if the result has at most maxEntries entries and is no larger than
// the largest of tables; or if it has at most maxEntries entries and a table of e has all of its indices, so that it can be multiplied
// into that table.
func (s elimination) resultScope(e *expression, tables []*table, i int) (scope []int, ok bool) {
	largest := 0 // entries of the largest table
	for _, t := range tables {
		largest = max(largest, len(t.data))
	}

	size := 1
	for _, t := range tables {
		for _, j := range t.scope {
			if j == i || slices.Contains(scope, j) {
				continue
			}
			scope = append(scope, j)
			size *= e.dims[j]
			if size > largest && size > s.maxEntries {
				return nil, false
			}
		}
	}

	switch {
	case len(tables) == 1:
		return scope, true
	case size > s.maxEntries:
		return nil, false
	}
	const noTable = -1 // excluded from the search for one with all of scope
	return scope, size <= largest || e.smallestTableWith(scope, noTable) >= 0
}

// conditionalOf returns P(i | parent) for an index i that only table t has, and the other index of t as its parent:
//
//	rows[v*d + x] = P(i = x | parent = v) = T[x, v] / Σ_x T[x, v]
//
// where i has d values. If t has no other index, parent is −1, and there is one row, of P(i). A row of zeros stays a row of zeros. ok is
// false if t has more than two indices, or if the terms of a sum have both signs and cancel.
func conditionalOf(dims []int, t *table, i int) (parent int, rows []float64, ok bool) {
	if len(t.scope) > 2 {
		return -1, nil, false
	}
	parent = -1
	parentDim := 1
	parentStride, stride := 0, 0 // of the parent and of i, in t.data
	for k, axisStride := range sumproduct.AxisStrides(dims, t.scope, t.scope) {
		if j := t.scope[k]; j == i {
			stride = axisStride
		} else {
			parent, parentDim, parentStride = j, dims[j], axisStride
		}
	}

	for v := range parentDim {
		sum, absoluteSum := 0.0, 0.0
		for x := range dims[i] {
			p := t.data[v*parentStride+x*stride]
			sum = sum + p
			absoluteSum = absoluteSum + math.Abs(p)
		}
		if absoluteSum > 0 && math.Abs(sum) < wellConditioned*absoluteSum { // the terms cancel: |Σ| is below 1/16 of Σ|·|
			return -1, nil, false
		}

		for x := range dims[i] {
			p := t.data[v*parentStride+x*stride]
			if absoluteSum > 0 {
				p /= sum
			}
			rows = append(rows, p)
		}
	}
	return parent, rows, true
}
