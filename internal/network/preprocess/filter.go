package preprocess

// Entries that no term can have:
// zeros of one table carried over to others that share two or more indices with it.
//
// Source: P. Janssen, P. Jégou, B. Nouguier and M. C. Vilarem, A filtering process for general
// constraint-satisfaction problems: achieving pairwise-consistency using an associated binary
// representation (1989).

import (
	"slices"
)

// filter sets to 0 the entries of tables around table n
// whose values of the common indices n has no entry for.
func (w *work) filter(n int) {
	t := w.tables[n]
	if t.gone || t.isFull(w.dims) {
		return
	}

	for len(w.shared) < len(w.tables) {
		w.shared = append(w.shared, 0)
	}
	var near []int
	for _, i := range t.scope {
		for _, u := range w.at[i] {
			if w.shared[u]++; w.shared[u] == 2 && u != n {
				near = append(near, u)
			}
		}
	}
	for _, i := range t.scope {
		for _, u := range w.at[i] {
			w.shared[u] = 0
		}
	}

	slices.Sort(near)
	for _, u := range near {
		w.mask(u, n)
	}
}

// mask sets to 0 the entries of table u for which table n has none.
func (w *work) mask(u, n int) {
	t, o := w.tables[n], w.tables[u]
	var common []int
	size := 1
	for _, i := range o.scope {
		if slices.Contains(t.scope, i) {
			common = append(common, i)
			size *= w.dims[i]
		}
	}

	arity := len(t.scope)
	tuples := t.support(w.dims).tuples
	if w.filtering += len(tuples)/arity + len(o.data); w.filtering > w.options.Probes {
		return
	}

	step := make([]int, arity) // into the projection, whose axes are common
	for k, s := len(common)-1, 1; k >= 0; k-- {
		step[slices.Index(t.scope, common[k])] = s
		s *= w.dims[common[k]]
	}

	// The combinations of common values that n has an entry for.
	possible := make([]bool, size)
	missing := size
	for p := 0; p < len(tuples) && missing > 0; p += arity {
		at := 0
		for k, x := range tuples[p : p+arity] {
			at += int(x) * step[k]
		}
		if !possible[at] {
			possible[at] = true
			missing--
		}
	}

	if missing == 0 {
		return
	}

	from := o.offsets(w.dims, common)
	var rest []int
	for _, i := range o.scope {
		if !slices.Contains(common, i) {
			rest = append(rest, i)
		}
	}

	others := o.offsets(w.dims, rest)
	removed := 0
	for s, base := range from {
		if possible[s] {
			continue
		}
		for _, r := range others {
			if o.data[base+r] != 0 {
				o.own()
				o.data[base+r] = 0
				removed++
			}
		}
	}

	if removed > 0 {
		w.report.EntriesRemoved += removed
		w.changed(u)
	}
}
