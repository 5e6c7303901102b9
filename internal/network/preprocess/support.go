package preprocess

// The zeros of one table.

import "slices"

// support is where a table is not 0. The zero value has not been computed.
type support struct {
	// tuples has the values of all non-zero entries, index by index, in row-major order. Full tables
	// have none: nothing ever asks for them. It is not nil.
	tuples []int32
	full   bool    // no entry is 0
	hole   []int32 // the values of the only zero, index by index; nil if there are none or several
}

// support returns where t is not 0, computed at the first call after a change.
func (t *table) support(dims []int) *support {
	if t.nonzero.tuples == nil {
		t.findSupport(dims)
	}
	return &t.nonzero
}

// isFull reports whether t has no zeros.
func (t *table) isFull(dims []int) bool { return t.support(dims).full }

// findSupport computes the support.
func (t *table) findSupport(dims []int) {
	count := 0
	for _, v := range t.data {
		if v != 0 {
			count++
		}
	}

	s := support{full: count == len(t.data), tuples: make([]int32, 0, count*len(t.scope))}
	if !s.full {
		shape := t.shape(dims)
		x := make([]int32, len(shape))
		for _, v := range t.data {
			if v != 0 {
				s.tuples = append(s.tuples, x...)
			} else if count == len(t.data)-1 {
				s.hole = slices.Clone(x)
			}
			for k := len(x) - 1; k >= 0; k-- {
				if x[k]++; int(x[k]) < shape[k] {
					break
				}
				x[k] = 0
			}
		}
	}
	t.nonzero = s
}
