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
// table n has only zeros for the values of the common indices at that entry. budget is the number of entries that may still be looked at;
// it ends after a few tables, and the rest is skipped.
func (f *filter) carryZeros(e *expression, n int) {
	t := e.tables[n]
	if t == nil || t.isFull(e.dims) {
		return
	}

	// Find the tables that share two or more indices with table n.
	for len(f.sharedCount) < len(e.tables) {
		f.sharedCount = append(f.sharedCount, 0)
	}
	var neighbours []int
	for _, i := range t.scope {
		for _, u := range e.tablesOf[i] {
			f.sharedCount[u]++
			if f.sharedCount[u] == 2 && u != n {
				neighbours = append(neighbours, u)
			}
		}
	}
	for _, i := range t.scope {
		for _, u := range e.tablesOf[i] {
			f.sharedCount[u] = 0
		}
	}

	// Carry the zeros over to them.
	slices.Sort(neighbours)
	for _, u := range neighbours {
		neighbour := e.tables[u]
		nonzeros := len(t.support(e.dims).tuples) / len(t.scope) // tuples has len(t.scope) values for each entry that is not 0
		f.budget -= nonzeros + len(neighbour.data)
		if f.budget < 0 {
			continue
		}
		if removed := neighbour.zeroUnsupported(e.dims, t); removed > 0 {
			e.report.EntriesRemoved += removed
			e.noteChange(u)
		}
	}
}

// zeroUnsupported sets an entry of t to 0 if the table other has only zeros at the entry's values of the common indices. It returns the
// number of entries that were not 0 before.
func (t *table) zeroUnsupported(dims []int, other *table) (removed int) {
	var common, rest []int // indices of t, with and without other
	for _, i := range t.scope {
		if slices.Contains(other.scope, i) {
			common = append(common, i)
		} else {
			rest = append(rest, i)
		}
	}

	// Mark the combinations of common values for which other has an entry that is not 0. They are numbered in row-major order.
	combinations := 1
	stride := make([]int, len(other.scope)) // by mode of other; 0 for an index that is not common
	for k := len(common) - 1; k >= 0; k-- {
		stride[slices.Index(other.scope, common[k])] = combinations
		combinations *= dims[common[k]]
	}
	isPossible := make([]bool, combinations)
	impossibleCount := combinations
	arity := len(other.scope)
	tuples := other.support(dims).tuples // arity values for each entry that is not 0
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
	if impossibleCount == 0 {
		return 0
	}

	// Set the entries of all other combinations to 0. An entry of t is at the sum of an offset for its common values and one for the rest.
	commonOffsets, restOffsets := t.offsets(dims, common), t.offsets(dims, rest)
	for combination, base := range commonOffsets {
		if isPossible[combination] {
			continue
		}
		for _, offset := range restOffsets {
			if t.data[base+offset] != 0 {
				t.ownData() // copies t.data before the first change if another table shares it
				t.data[base+offset] = 0
				removed++
			}
		}
	}
	return removed
}
