package preprocess

// Indices that follow other indices:
// equalities, permutations, and functions where that costs nothing.

import "slices"

// findAlias looks in the zeros of table n for two indices where one decides the other,
// and puts the one in the place of the other. It reports whether there were any.
func (w *work) findAlias(n int) bool {
	t := w.tables[n]
	if len(t.scope) < 2 || t.isFull(w.dims) {
		return false
	}

	arity := len(t.scope)
	tuples := t.support(w.dims).tuples

	for l, y := range t.scope {
		// a function has at most one y for every combination of the other values
		if len(tuples)/arity > len(t.data)/w.dims[y] {
			continue
		}
		for k, x := range t.scope {
			if k == l || !w.worthFollowing(y, x) {
				continue
			}
			if f := function(tuples, arity, k, l, w.dims[x]); f != nil {
				w.follow(y, x, f)
				return true
			}
		}
	}
	return false
}

// function returns the value of mode l for every value of mode k,
// nil unless each value of mode k has exactly one.
func function(tuples []int32, arity, k, l, dim int) []int {
	f := make([]int, dim)
	for x := range f {
		f[x] = -1
	}
	for p := 0; p < len(tuples); p += arity {
		x, y := tuples[p+k], int(tuples[p+l])
		if f[x] >= 0 && f[x] != y {
			return nil
		}
		f[x] = y
	}

	for _, y := range f {
		if y < 0 { // the table's zeros have not been propagated yet
			return nil
		}
	}
	return f
}

// worthFollowing says whether no table becomes larger when x takes the place of y.
func (w *work) worthFollowing(y, x int) bool {
	if w.dims[x] <= w.dims[y] {
		return true
	}
	for _, n := range w.at[y] {
		if !slices.Contains(w.tables[n].scope, x) {
			return false
		}
	}
	return true
}

// follow replaces index y by f(x) in every table, which leaves Z as it is when all
// terms with y ≠ f(x) are 0. Tables that have both keep the entries with y = f(x) only.
func (w *work) follow(y, x int, f []int) {
	w.origins.follow(y, x, f)
	tables := slices.Clone(w.at[y])
	for _, n := range tables {
		t := w.tables[n]
		if !slices.Contains(t.scope, x) {
			w.join(n, x)
		}
		t.substitute(w.dims, y, x, f)
	}

	w.at[y] = nil
	w.resize(y, 1)
	w.report.Aliases++
	for _, n := range tables {
		w.changed(n)
	}
}
