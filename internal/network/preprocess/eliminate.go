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

// elimination sums indices out.
type elimination struct {
	maxTables  int // indices in more tables stay
	maxEntries int // of a table that comes out of several
}

// newElimination returns the elimination that options ask for.
func newElimination(o Options) elimination {
	switch {
	case o.Terms:
		return elimination{maxTables: -1}
	case o.NoElimination:
		return elimination{maxTables: 1, maxEntries: o.MaxEntries}
	}
	return elimination{maxTables: math.MaxInt, maxEntries: o.MaxEntries}
}

// eliminate sums index i out if that costs nothing. If its marginal is needed, it must follow from one
// other index's.
func (s elimination) eliminate(e *expression, i int) {
	n, needed := len(e.tablesOf[i]), e.origins.needed[i]
	if e.origins.isGone(i) || e.dims[i] == 1 || n > s.maxTables || n > 1 && needed {
		return
	}

	if n == 0 {
		d := float64(e.dims[i])
		e.scale = e.scale.Mul(scaled.FromFloat(d))
		e.sumOut(i, -1, slices.Repeat([]float64{1 / d}, e.dims[i]))
		return
	}

	numbers := slices.Clone(e.tablesOf[i])
	tables := make([]*table, len(numbers))
	for k, n := range numbers {
		tables[k] = e.tables[n]
	}

	parent, rows := -1, []float64(nil)
	if n == 1 {
		var ok bool
		if parent, rows, ok = conditional(e.dims, tables[0], i); !ok && needed {
			return
		}
	}

	scope, ok := s.union(e, tables, i)
	if !ok {
		return
	}
	data, rounding, ok := product(e.dims, tables, scope, []int{i}, e.signed)
	if !ok {
		return
	}

	for _, n := range numbers {
		e.drop(n)
	}
	e.sumOut(i, parent, rows)
	e.add(&table{scope: scope, data: data, owned: true, from: merged(tables), wider: n > 1, err: rounding})
}

// union returns the other indices of the tables of index i. ok says whether a table over them is worth
// having.
func (s elimination) union(e *expression, tables []*table, i int) (scope []int, ok bool) {
	limit := 0
	for _, t := range tables {
		limit = max(limit, len(t.data))
	}

	size := 1
	for _, t := range tables {
		for _, j := range t.scope {
			if j == i || slices.Contains(scope, j) {
				continue
			}
			scope = append(scope, j)
			if size *= e.dims[j]; size > limit && size > s.maxEntries {
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
	return scope, size <= limit || e.around(scope, -1) >= 0
}

// conditional returns P(i | parent) for an index i whose only table t is over i and at most one other
// index: a row for every value of the parent; one row, of P(i), if the parent is −1. ok is false when
// there are more indices, and when a row of terms of both signs cancels.
func conditional(dims []int, t *table, i int) (parent int, rows []float64, ok bool) {
	if len(t.scope) > 2 {
		return -1, nil, false
	}
	parent = -1
	values, row, entry := 1, 0, 0 // of the parent, and the strides between rows and their entries
	for k, stride := range sumproduct.Along(dims, t.scope, t.scope) {
		if j := t.scope[k]; j == i {
			entry = stride
		} else {
			parent, values, row = j, dims[j], stride
		}
	}

	// P(i = x | parent = v) = T[x, v] / Σ_x T[x, v]; a row of zeros stays one.
	for v := range values {
		sum, size := 0.0, 0.0
		for x := range dims[i] {
			p := t.data[v*row+x*entry]
			sum = sum + p
			size = size + math.Abs(p)
		}
		if size > 0 && math.Abs(sum) < wellConditioned*size {
			return -1, nil, false
		}

		for x := range dims[i] {
			p := t.data[v*row+x*entry]
			if size > 0 {
				p /= sum
			}
			rows = append(rows, p)
		}
	}
	return parent, rows, true
}
