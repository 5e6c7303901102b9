package preprocess

// Aliases: an index that follows another one is replaced by it. Equalities, permutations, and functions
// if that costs nothing.
//
// It is exact because all terms with other values of the two are 0.

import "slices"

// findAlias looks for an index y of table n whose value is a function f(x) of another index x of the table: all entries with y ≠ f(x) are
// 0. If there is one and no table becomes larger, it replaces y by f(x) in all tables. It reports whether it did.
func findAlias(e *expression, n int) bool {
	t := e.tables[n]
	if t == nil || len(t.scope) < 2 || t.isFull(e.dims) {
		return false
	}

	arity := len(t.scope)
	tuples := t.support(e.dims).tuples // arity values for each entry that is not 0
	nonzeros := len(tuples) / arity
	for modeY, y := range t.scope {
		// If y is a function, there is at most one entry for every combination of the other values.
		if nonzeros > len(t.data)/e.dims[y] { // there are more, so y is none
			continue
		}
		for modeX, x := range t.scope {
			if modeX == modeY || !isWorthReplacing(e, y, x) {
				continue
			}
			if f, ok := functionBetween(tuples, arity, modeX, modeY, e.dims[x]); ok {
				e.replaceIndex(y, x, f)
				return true
			}
		}
	}
	return false
}

// functionBetween returns f such that y = f[x] in every tuple, where x is the tuple's value at position modeX and y that at position
// modeY. tuples lists the tuples one after the other, each of arity values. x has dimX values. ok is false if some x has several y, or
// none.
func functionBetween(tuples []int32, arity, modeX, modeY, dimX int) (f []int, ok bool) {
	f = slices.Repeat([]int{-1}, dimX)
	for begin := 0; begin < len(tuples); begin += arity {
		x, y := tuples[begin+modeX], int(tuples[begin+modeY])
		if f[x] >= 0 && f[x] != y {
			return nil, false
		}
		f[x] = y
	}
	return f, !slices.Contains(f, -1) // x has no y only if the zeros have not been propagated yet
}

// isWorthReplacing reports whether no table becomes larger if index x replaces index y in all tables: x has no more values than y, or every
// table with y has x as well.
func isWorthReplacing(e *expression, y, x int) bool {
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
