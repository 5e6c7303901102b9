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

// filter carries zeros over. Its cost is counted in entries looked at, and ends with the budget.
type filter struct {
	budget int
	shared []int // scratch: by table, the number of indices that it shares with the one at hand
}

// carry sets entries to 0 in the tables around table n.
func (f *filter) carry(e *expression, n int) {
	t := e.tables[n]
	if t == nil || t.isFull(e.dims) {
		return
	}

	for len(f.shared) < len(e.tables) {
		f.shared = append(f.shared, 0)
	}
	var near []int
	for _, i := range t.scope {
		for _, u := range e.tablesOf[i] {
			if f.shared[u]++; f.shared[u] == 2 && u != n {
				near = append(near, u)
			}
		}
	}
	for _, i := range t.scope {
		for _, u := range e.tablesOf[i] {
			f.shared[u] = 0
		}
	}

	slices.Sort(near)
	for _, u := range near {
		o := e.tables[u]
		if f.budget -= len(t.support(e.dims).tuples)/len(t.scope) + len(o.data); f.budget < 0 {
			continue
		}
		if removed := o.mask(e.dims, t); removed > 0 {
			e.report.EntriesRemoved += removed
			e.changed(u)
		}
	}
}

// mask sets to 0 the entries of o for which t has none, and returns how many were not.
func (o *table) mask(dims []int, t *table) (removed int) {
	var common, others []int // indices of o
	for _, i := range o.scope {
		if slices.Contains(t.scope, i) {
			common = append(common, i)
		} else {
			others = append(others, i)
		}
	}

	size := 1 // of the projection of t, whose axes are common
	step := make([]int, len(t.scope))
	for k := len(common) - 1; k >= 0; k-- {
		step[slices.Index(t.scope, common[k])] = size
		size *= dims[common[k]]
	}

	possible := make([]bool, size) // the combinations of common values that t has an entry for
	missing := size
	tuples := t.support(dims).tuples
	for p := 0; p < len(tuples) && missing > 0; p += len(t.scope) {
		place := 0
		for k, x := range tuples[p : p+len(t.scope)] {
			place += int(x) * step[k]
		}
		if !possible[place] {
			possible[place] = true
			missing--
		}
	}

	if missing == 0 {
		return 0
	}

	bases, offsets := o.offsets(dims, common), o.offsets(dims, others)
	for s, base := range bases {
		if possible[s] {
			continue
		}
		for _, offset := range offsets {
			if o.data[base+offset] != 0 {
				o.unshare()
				o.data[base+offset] = 0
				removed++
			}
		}
	}
	return removed
}
