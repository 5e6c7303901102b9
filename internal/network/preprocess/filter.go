package preprocess

// Filtering: zeros of one table are carried over to others that share two or more indices with it.
//
// An entry whose values of the common indices the first table has no entry for is set to 0: all terms
// with it are 0.
//
// Source: P. Janssen, P. Jégou, B. Nouguier and M. C. Vilarem, A filtering process for general
// constraint-satisfaction problems: achieving pairwise-consistency using an associated binary
// representation (1989).

import "slices"

// filter carries zeros over from table to table.
type filter struct {
	budget      int   // entries that may still be looked at
	sharedCount []int // scratch of carryZeros: by table, the number of indices that it shares with one table; else 0
}

// carryZeros carries the zeros of table n over to the tables that share two or more indices with it. An entry of such a table becomes 0 if
// table n has only zeros for the values of the common indices at that entry. budget is the number of entries that may still be looked at.
// The first table that would exceed it, and all tables after that, are skipped.
func (f *filter) carryZeros(e *expression, n int) {
	t := e.tables[n]
	if t == nil || t.isFull(e.dims) {
		return
	}

	for _, u := range f.tablesSharingTwo(e, n) {
		neighbour := e.tables[u]
		nonzeros := len(t.support(e.dims).tuples) / len(t.scope) // tuples has len(t.scope) values for each entry that is not 0
		f.budget -= nonzeros + len(neighbour.data)
		if f.budget < 0 { // and stays below 0
			continue
		}
		if removed := neighbour.zeroUnsupported(e.dims, t); removed > 0 {
			e.report.EntriesRemoved += removed
			e.noteChange(u)
		}
	}
}

// tablesSharingTwo returns the tables that share two or more indices with table n, ascending and without n.
func (f *filter) tablesSharingTwo(e *expression, n int) []int {
	for len(f.sharedCount) < len(e.tables) {
		f.sharedCount = append(f.sharedCount, 0)
	}
	scope := e.tables[n].scope
	var sharing []int
	for _, i := range scope {
		for _, u := range e.tablesOf[i] {
			f.sharedCount[u]++
			if f.sharedCount[u] == 2 && u != n { // at 2, so that u is listed once
				sharing = append(sharing, u)
			}
		}
	}
	for _, i := range scope { // back to 0 for the next call
		for _, u := range e.tablesOf[i] {
			f.sharedCount[u] = 0
		}
	}
	slices.Sort(sharing)
	return sharing
}

// zeroUnsupported sets an entry of t to 0 if the table other has only zeros at the entry's values of the common indices. It returns the
// number of entries that were not 0 before.
func (t *table) zeroUnsupported(dims []int, other *table) (removed int) {
	var common, private []int // indices of t that other has, and that it has not
	for _, i := range t.scope {
		if slices.Contains(other.scope, i) {
			common = append(common, i)
		} else {
			private = append(private, i)
		}
	}

	isPossible, impossibleCount := other.possibleCombinations(dims, common)
	if impossibleCount == 0 {
		return 0
	}

	// Set the entries of t at the impossible combinations to 0. An entry is at the sum of two offsets: one for its values of the common
	// indices, and one for those of its private ones.
	commonOffsets, privateOffsets := t.offsets(dims, common), t.offsets(dims, private)
	for combination, base := range commonOffsets {
		if isPossible[combination] {
			continue
		}
		for _, offset := range privateOffsets {
			if t.data[base+offset] != 0 {
				t.ownData() // copies t.data before the first change if another table shares it
				t.data[base+offset] = 0
				removed++
			}
		}
	}
	return removed
}

// possibleCombinations returns for each combination of values of the given indices of t, in row-major order, whether t has an entry there
// that is not 0, and the number of combinations without one. t must have a zero: the support of a full table lists no tuples.
func (t *table) possibleCombinations(dims, indices []int) (isPossible []bool, impossibleCount int) {
	combinations := 1
	stride := make([]int, len(t.scope)) // by mode of t: the stride in isPossible; 0 for an index that is not among the given ones
	for k := len(indices) - 1; k >= 0; k-- {
		stride[slices.Index(t.scope, indices[k])] = combinations
		combinations *= dims[indices[k]]
	}

	isPossible = make([]bool, combinations)
	impossibleCount = combinations
	arity := len(t.scope)
	tuples := t.support(dims).tuples // the values of the indices at each entry that is not 0, arity of them for an entry
	for begin := 0; begin < len(tuples) && impossibleCount > 0; begin += arity {
		combination := 0
		for k, x := range tuples[begin : begin+arity] {
			combination += int(x) * stride[k]
		}
		if !isPossible[combination] {
			isPossible[combination] = true
			impossibleCount--
		}
	}
	return isPossible, impossibleCount
}
