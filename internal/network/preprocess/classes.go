package preprocess

// Classes of values: a matrix is written over classes of values that it cannot tell apart.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/base/policy"
)

// fewClasses is the maximum ratio of an index's classes to the values of the table's smaller index
// for the classes to be worth an index of their own. Measured on four protein models: ½ and 1 take
// up to 1.6 times the flops, and more indices.
const fewClasses = 0.75

// classFlops is the work, by a quick order, above which matrices whose rows are equal in part are
// written over classes of rows.
// Measured: four protein models take 2 to 50 times fewer flops along the trees found, 50 other
// models have no such matrices, decision 12.
const classFlops = policy.HeavyFlops

// decomposeAllClasses replaces every matrix with few distinct rows or columns by two smaller ones: one tells the class of each row (or
// column), the other has one row for each class of equal rows. It reports whether there were any.
func decomposeAllClasses(e *expression, p *pace.Pace) (hasChanged bool) {
	for n := range len(e.tables) { // without the tables that replaceTable adds
		if p.Over(ruleWork) {
			return hasChanged
		}
		if e.tables[n] == nil {
			continue
		}
		if c, ok := decomposeClasses(e.dims, e.tables[n]); ok {
			e.replaceTable(n, c)
			hasChanged = true
		}
	}
	return hasChanged
}

// decomposeClasses writes a table T over two indices x and y as a product of two matrices. Values of x whose rows in T are equal form a
// class c, and
//
//	T(x, y) = Σ_c E(x, c) T'(c, y),  E(x, c) = 1 if x is in class c, else 0
//
// where c is a hidden index. Or the columns of y form classes in the same way, if they are fewer. ok is false if t has not two indices or
// if there are too many classes: more than fewClasses, a ratio below 1, times the smaller dimension. Classes of one of the two indices are
// enough: once a contraction has used all other tables of that index, it goes on with the class alone. Nothing is rounded; the error of
// the entries of T is divided between the two matrices.
//
// Cost: O(entries · log d). Source: E. C. Freuder, Eliminating interchangeable values in
// constraint satisfaction problems (1991): his interchangeable values are alike in all tables.
func decomposeClasses(dims []int, t *table) (c decomposition, ok bool) {
	if len(t.scope) != 2 {
		return decomposition{}, false
	}

	shape := t.shape(dims)
	best := partitionRows(t.data, shape, 0)
	if columns := partitionRows(t.data, shape, 1); len(columns.firstRow) < len(best.firstRow) {
		best = columns
	}
	classCount := len(best.firstRow)
	if float64(classCount) > fewClasses*float64(min(shape[0], shape[1])) { // too many to save work
		return decomposition{}, false
	}

	// −1 stands for the hidden index.
	c = decomposition{kind: classesKind, hidden: []int{classCount}}
	c.add([]int{t.scope[best.mode], -1}, best.membership(), t.err/2)
	scope := slices.Clone(t.scope)
	scope[best.mode] = -1
	c.add(scope, best.representatives(t.data, shape), t.err/2)
	return c, true
}

// partition divides the rows (mode 0) or the columns (mode 1) of a matrix into classes of equal ones. In mode 1, rows stands for columns in
// the fields.
type partition struct {
	mode     int
	classOf  []int // by row: its class
	firstRow []int // by class: its first row, ascending
}

// partitionRows divides the rows (mode 0) or the columns (mode 1) of a matrix into classes of equal ones. In mode 1 row stands for column
// below. Classes are numbered by their first rows.
func partitionRows(data []float64, shape []int, mode int) partition {
	row, entry := strideOf(shape, mode) // distances in data: from row to row, and from entry to entry of one row
	compare := func(x, y int) int {
		for k := range shape[1-mode] {
			if a, b := data[x*row+k*entry], data[y*row+k*entry]; a != b {
				return cmp.Compare(a, b)
			}
		}
		return 0
	}

	// Sort the rows. Equal ones are neighbours then, in ascending sequence, since the sort is stable.
	sorted := sequence(shape[mode])
	slices.SortStableFunc(sorted, compare)
	firstEqual := sequence(shape[mode]) // by row: the first row that is equal
	for k := 1; k < len(sorted); k++ {
		if compare(sorted[k-1], sorted[k]) == 0 {
			firstEqual[sorted[k]] = firstEqual[sorted[k-1]]
		}
	}

	// Number the classes.
	p := partition{mode: mode, classOf: make([]int, shape[mode])}
	for x, first := range firstEqual {
		if first == x {
			p.classOf[x] = len(p.firstRow)
			p.firstRow = append(p.firstRow, x)
		} else {
			p.classOf[x] = p.classOf[first]
		}
	}
	return p
}

// strideOf returns two strides of a matrix in row-major order: row is the distance between rows (mode 0) or columns (mode 1), entry that
// between the entries of one.
func strideOf(shape []int, mode int) (row, entry int) {
	if mode == 0 {
		return shape[1], 1
	}
	return 1, shape[1]
}

// membership returns the matrix E(x, c), which is 1 if row x is in class c, else 0.
func (p *partition) membership() []float64 {
	e := make([]float64, len(p.classOf)*len(p.firstRow))
	for x, c := range p.classOf {
		e[x*len(p.firstRow)+c] = 1
	}
	return e
}

// representatives returns the matrix of the first row of every class; data is the partitioned matrix of the given shape. For a partition of
// columns (mode 1) row stands for column here and below.
func (p *partition) representatives(data []float64, shape []int) []float64 {
	// offsets has, by mode of the result and position: what the position adds to the offset in data.
	offsets := [][]int{make([]int, shape[0]), make([]int, shape[1])}
	row, entry := strideOf(shape, p.mode) // distances in data: from row to row, and from entry to entry of one row
	for k := range offsets[1-p.mode] {
		offsets[1-p.mode][k] = k * entry
	}
	offsets[p.mode] = make([]int, len(p.firstRow))
	for c, x := range p.firstRow {
		offsets[p.mode][c] = x * row
	}
	return gather(data, offsets)
}
