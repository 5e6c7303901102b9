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

// coarsen writes all tables over classes of values for which that makes them smaller.
// It reports whether there were any.
func coarsen(e *expression, p *pace.Pace) (coarse bool) {
	for n := range len(e.tables) {
		if p.Over(ruleWork) {
			return coarse
		}
		if e.tables[n] == nil {
			continue
		}
		if c, ok := classes(e.dims, e.tables[n]); ok {
			e.replace(n, c)
			coarse = true
		}
	}
	return coarse
}

// classes writes a table over two indices over classes of values of one of them. If values of x
// have equal rows in T,
//
//	T(x, y) = Σ_c E(x, c) T'(c, y),  E(x, c) = 1 if x is in class c, else 0
//
// with c a hidden index. A contraction that is through with all other tables of x has to remember
// the class alone from then on, and tables from the side of y need no more values either. That is
// why one side is enough, the one of fewer classes. Nothing is rounded, and rows that were are equal
// within that alone: E has a part of their error.
//
// Cost: O(entries · log d). Source: E. C. Freuder, Eliminating interchangeable values in
// constraint satisfaction problems (1991): his interchangeable values are alike in all tables.
func classes(dims []int, t *table) (c decomposition, ok bool) {
	if len(t.scope) != 2 {
		return decomposition{}, false
	}

	shape := t.shape(dims)
	best := alike(t.data, shape, 0)
	if other := alike(t.data, shape, 1); len(other.first) < len(best.first) {
		best = other
	}
	if float64(len(best.first)) > fewClasses*float64(min(shape[0], shape[1])) {
		return decomposition{}, false
	}

	c = decomposition{kind: classesKind, hidden: []int{len(best.first)}}
	c.add([]int{t.scope[best.mode], -1}, best.membership(), t.err/2)
	scope := slices.Clone(t.scope)
	scope[best.mode] = -1
	c.add(scope, best.representatives(t.data, shape), t.err/2)
	return c, true
}

// partition says which rows (mode 0) or columns (mode 1) of a matrix are equal.
type partition struct {
	mode  int
	class []int // per row
	first []int // per class: its first row; ascending
}

// alike compares the rows, or columns, entry by entry.
func alike(data []float64, shape []int, mode int) partition {
	row, entry := strideOf(shape, mode)
	compare := func(x, y int) int {
		for k := range shape[1-mode] {
			if a, b := data[x*row+k*entry], data[y*row+k*entry]; a != b {
				return cmp.Compare(a, b)
			}
		}
		return 0
	}

	// Equal rows follow each other, the first one first, for the sort is stable.
	sorted := sequence(shape[mode])
	slices.SortStableFunc(sorted, compare)
	like := sequence(shape[mode]) // the first row that is equal
	for k := 1; k < len(sorted); k++ {
		if compare(sorted[k-1], sorted[k]) == 0 {
			like[sorted[k]] = like[sorted[k-1]]
		}
	}

	p := partition{mode: mode, class: make([]int, shape[mode])}
	for x, f := range like {
		if f == x {
			p.class[x] = len(p.first)
			p.first = append(p.first, x)
		} else {
			p.class[x] = p.class[f]
		}
	}
	return p
}

// strideOf returns the stride between rows (mode 0) or columns (mode 1) of a
// matrix, and between the entries of one.
func strideOf(shape []int, mode int) (row, entry int) {
	if mode == 0 {
		return shape[1], 1
	}
	return 1, shape[1]
}

// membership is E(x, c).
func (p *partition) membership() []float64 {
	e := make([]float64, len(p.class)*len(p.first))
	for x, c := range p.class {
		e[x*len(p.first)+c] = 1
	}
	return e
}

// representatives is the matrix with the first row, or column, of every class.
func (p *partition) representatives(data []float64, shape []int) []float64 {
	offsets := [][]int{make([]int, shape[0]), make([]int, shape[1])}
	row, entry := strideOf(shape, p.mode)
	for k := range offsets[1-p.mode] {
		offsets[1-p.mode][k] = k * entry
	}
	offsets[p.mode] = make([]int, len(p.first))
	for c, x := range p.first {
		offsets[p.mode][c] = x * row
	}
	return gather(data, offsets)
}
