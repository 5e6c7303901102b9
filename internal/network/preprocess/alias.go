package preprocess

// Aliases: an index that follows another one is replaced by it. Equalities, permutations, and functions
// if that costs nothing.
//
// It is exact because all terms with other values of the two are 0.

import "slices"

// findAlias looks in the zeros of table n for two indices of which one decides the other,
// and puts the one in the place of the other. It reports whether there were any.
func findAlias(e *expression, n int) bool {
	t := e.tables[n]
	if t == nil || len(t.scope) < 2 || t.isFull(e.dims) {
		return false
	}

	arity := len(t.scope)
	tuples := t.support(e.dims).tuples
	for l, y := range t.scope {
		// a function has at most one y for every combination of the other values
		if len(tuples)/arity > len(t.data)/e.dims[y] {
			continue
		}
		for k, x := range t.scope {
			if k == l || !worthFollowing(e, y, x) {
				continue
			}
			if f, ok := function(tuples, arity, k, l, e.dims[x]); ok {
				e.follow(y, x, f)
				return true
			}
		}
	}
	return false
}

// function returns the value of mode l for every value of mode k, of which there are dim. ok is false
// unless each value of mode k has exactly one.
func function(tuples []int32, arity, k, l, dim int) (f []int, ok bool) {
	f = slices.Repeat([]int{-1}, dim)
	for p := 0; p < len(tuples); p += arity {
		x, y := tuples[p+k], int(tuples[p+l])
		if f[x] >= 0 && f[x] != y {
			return nil, false
		}
		f[x] = y
	}
	return f, !slices.Contains(f, -1) // −1: the table's zeros have not been propagated yet
}

// worthFollowing reports whether no table becomes larger when x takes the place of y.
func worthFollowing(e *expression, y, x int) bool {
	if e.dims[x] <= e.dims[y] {
		return true
	}
	for _, n := range e.tablesOf[y] {
		if !slices.Contains(e.tables[n].scope, x) {
			return false
		}
	}
	return true
}
