package form

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/countspace"
)

// maxLevels is the number of values that a byte distinguishes.
const maxLevels = 256

// NewLevels writes every distinct table once; thousands of legs usually share two or three.
func NewLevels(l countspace.Levels) Levels {
	w := Levels{D: l.D}
	if l.Of == nil {
		return w
	}
	w.Tables, w.Legs = [][]byte{}, make([]int, len(l.Of))
	seen := map[string]int{}
	for leg, of := range l.Of {
		if leg > 0 && shared(of, l.Of[leg-1]) {
			w.Legs[leg] = w.Legs[leg-1]
			continue
		}
		key := "no table"
		if of != nil {
			key = "=" + string(of)
		}
		at, ok := seen[key]
		if !ok {
			at = len(w.Tables)
			seen[key] = at
			w.Tables = append(w.Tables, of)
		}
		w.Legs[leg] = at
	}
	return w
}

// shared reports whether two tables are one list.
func shared(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Decode returns the levels; legs with one table share its slice.
func (w *Levels) Decode() (countspace.Levels, error) {
	l := countspace.Levels{D: w.D}
	if w.D < 0 || w.D > maxLevels {
		return l, codec.Invalid("d", "%d levels, at most %d", w.D, maxLevels)
	}
	for i, table := range w.Tables {
		for x, level := range table {
			if int(level) >= w.D {
				return l, codec.Invalid(fmt.Sprintf("tables[%d]", i), "value %d at level %d of %d", x, level, w.D)
			}
		}
	}
	if w.Legs == nil {
		return l, nil
	}
	l.Of = make([][]uint8, len(w.Legs))
	for leg, at := range w.Legs {
		if at < 0 || at >= len(w.Tables) {
			return l, codec.Invalid(fmt.Sprintf("legs[%d]", leg), "table %d of %d", at, len(w.Tables))
		}
		l.Of[leg] = w.Tables[at]
	}
	return l, nil
}

// CheckLevels checks that there is at least one level, and a table of the right length for every leg.
func CheckLevels(l countspace.Levels, dims []int) error {
	if l.D < 1 {
		return codec.Invalid("d", "%d levels", l.D)
	}
	if len(l.Of) != len(dims) {
		return codec.Invalid("legs", "%d for %d legs", len(l.Of), len(dims))
	}
	for leg, of := range l.Of {
		if len(of) != dims[leg] {
			return codec.Invalid(fmt.Sprintf("legs[%d]", leg), "a table of %d for %d values", len(of), dims[leg])
		}
	}
	return nil
}
