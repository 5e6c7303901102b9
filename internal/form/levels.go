package form

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/countspace"
)

// maxLevels is the number of values that a byte distinguishes.
const maxLevels = 256

// NewLevels returns levels as they go on the wire: each distinct table once, and for each leg the number of its table. Thousands of legs
// usually share two or three tables. l.Of[leg] is the table of a leg, the level of each of its values, or nil.
func NewLevels(l countspace.Levels) Levels {
	w := Levels{D: l.D}
	if l.Of == nil {
		return w
	}
	w.Tables, w.Legs = [][]byte{}, make([]int, len(l.Of))
	numberOf := map[string]int{} // by table
	for leg, table := range l.Of {
		if leg > 0 && isSameSlice(table, l.Of[leg-1]) {
			w.Legs[leg] = w.Legs[leg-1] // the usual case, without a look at the entries
			continue
		}
		key := "no table" // no key of a table begins so
		if table != nil {
			key = "=" + string(table)
		}
		number, ok := numberOf[key]
		if !ok {
			number = len(w.Tables)
			numberOf[key] = number
			w.Tables = append(w.Tables, table)
		}
		w.Legs[leg] = number
	}
	return w
}

// isSameSlice reports whether two tables are the same slice in memory, and not empty.
func isSameSlice(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// Decode returns levels from the wire. Legs with the same table share its slice. It returns an error if there are too many levels, or if a
// table or a level that is named does not exist.
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
	for leg, number := range w.Legs {
		if number < 0 || number >= len(w.Tables) {
			return l, codec.Invalid(fmt.Sprintf("legs[%d]", leg), "table %d of %d", number, len(w.Tables))
		}
		l.Of[leg] = w.Tables[number]
	}
	return l, nil
}

// CheckLevels returns an error unless there is at least one level, and for every leg a table l.Of[leg] with a level for each value. A leg
// is a variable of a symmetric tensor, whose entries depend on how many legs are at each level. dims[leg] is the number of values of a leg.
func CheckLevels(l countspace.Levels, dims []int) error {
	if l.D < 1 {
		return codec.Invalid("d", "%d levels", l.D)
	}
	if len(l.Of) != len(dims) {
		return codec.Invalid("legs", "%d for %d legs", len(l.Of), len(dims))
	}
	for leg, table := range l.Of {
		if len(table) != dims[leg] {
			return codec.Invalid(fmt.Sprintf("legs[%d]", leg), "a table of %d for %d values", len(table), dims[leg])
		}
	}
	return nil
}
