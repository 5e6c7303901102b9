package preprocess

// The zeros of one table.

import "slices"

// support lists the entries of a table that are not 0. The zero value has not been computed.
type support struct {
	// tuples has a tuple for every entry that is not 0, in row-major order: the values of the table's indices. The tuples are one after the
	// other. It is empty, but not nil, for full tables, since nothing asks for it.
	tuples   []int32
	isFull   bool    // no entry is 0
	onlyZero []int32 // the tuple of the only entry that is 0; nil if there are none or several
}

// support returns the entries of t that are not 0. It computes them at the first call after a change.
func (t *table) support(dims []int) *support {
	if t.cachedSupport.tuples == nil {
		t.findSupport(dims)
	}
	return &t.cachedSupport
}

// isFull reports whether no entry of t is 0.
func (t *table) isFull(dims []int) bool { return t.support(dims).isFull }

// findSupport computes the support of t: a tuple of index values for every entry that is not 0. It lists no tuples if no entry is 0
// (isFull). If exactly one entry is 0, onlyZero is the tuple of that entry.
func (t *table) findSupport(dims []int) {
	nonzeros := 0
	for _, entry := range t.data {
		if entry != 0 {
			nonzeros++
		}
	}

	s := support{isFull: nonzeros == len(t.data), tuples: make([]int32, 0, nonzeros*len(t.scope))}
	if !s.isFull {
		shape := t.shape(dims)
		tuple := make([]int32, len(shape)) // of the present entry
		for _, entry := range t.data {
			if entry != 0 {
				s.tuples = append(s.tuples, tuple...)
			} else if nonzeros == len(t.data)-1 { // no other entry is 0
				s.onlyZero = slices.Clone(tuple)
			}
			// Advance the tuple, the last index first.
			for k := len(tuple) - 1; k >= 0; k-- {
				if tuple[k]++; int(tuple[k]) < shape[k] {
					break
				}
				tuple[k] = 0
			}
		}
	}
	t.cachedSupport = s
}
