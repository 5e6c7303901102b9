package compiler

// Tables under assignments. A slice is a table with some of its variables fixed. Slices that are
// multiples of one another are one class, and the multiple is a number; a slice that is constant
// says nothing more.

import (
	"encoding/binary"
	"math"
	"slices"
)

// slice is one slice that was met.
type slice struct {
	factor   float64 // the ratio of the slice to the one that stands for its class: its first entry, or 1 (computeSlice)
	constant bool    // all entries are the same, or there is only one
	digest   digest  // of the table and the class
}

// sliceTable finds the slices of one table. Slices are numbered as they are met; number 0 is the whole table.
type sliceTable struct {
	table        *softTable
	digestDrawer drawer
	strides      []int32         // of values, by position in the scope
	number       map[int64]int32 // by code: the values in the radix of one more than the dimension, which stands for open
	met          []slice
	classes      map[string]digest // by key of the class (writeKey)
	key          []byte            // scratch of writeKey
	size         int64             // bytes of all of it, roughly
	span         float64           // log2 of the largest entry by the smallest, both counted from 1
}

// sliceBytes is the memory of a slice beside its class.
const sliceBytes = 128

// newSliceTable returns the list of the slices of table t that were met, none yet. A slice is a part of the table at fixed values of some
// variables; digestDrawer draws its random digest.
func newSliceTable(t *softTable, digestDrawer drawer) *sliceTable {
	st := &sliceTable{
		table: t, digestDrawer: digestDrawer, strides: make([]int32, len(t.scope)), number: map[int64]int32{}, classes: map[string]digest{},
	}
	// The powers of two that entries and their quotients span at most. All entries are positive.
	st.span = math.Abs(math.Log2(slices.Max(t.values))) + math.Abs(math.Log2(slices.Min(t.values)))
	stride := int32(1)
	for i := len(t.scope) - 1; i >= 0; i-- {
		st.strides[i] = stride
		stride *= t.dims[i]
	}
	return st
}

// whole returns the number of the slice that is the whole table: the one in which all variables are open (−1).
func (st *sliceTable) whole() int32 { return st.find(slices.Repeat([]int32{-1}, len(st.table.scope))) }

// find returns the number of a slice of the table: the part of it at the given values of the variables of its scope, −1 for open variables.
// It computes a slice that was not met before.
func (st *sliceTable) find(values []int32) int32 {
	code := int64(0) // digits a + 1, of which 0 stands for open
	for i, a := range values {
		code = code*int64(st.table.dims[i]+1) + int64(a+1)
	}
	if number, ok := st.number[code]; ok {
		return number
	}
	number := int32(len(st.met))
	st.number[code] = number
	st.met = append(st.met, st.computeSlice(values))
	return number
}

// computeSlice returns the slice of the table at values, where −1 stands for an open variable. The factor of a slice is its first entry.
// Its key consists of the positions of the open variables and the entries divided by the factor. Slices with the same key are multiples of
// each other and form a class. Each class has a digest, a random number that stands for it, drawn when its first slice is met. If a
// quotient would leave the range in which float64 keeps all digits, the factor of the slice is 1, and its key has the entries themselves.
func (st *sliceTable) computeSlice(values []int32) slice {
	first := int32(0) // index of the first entry of the slice, in which all open variables have value 0
	for i, a := range values {
		first += max(a, 0) * st.strides[i]
	}
	// writeKey writes st.key, and clears result.constant if a quotient is not 1.
	result := slice{factor: st.table.values[first], constant: true}
	if isInRange := st.writeKey(values, first, &result); !isInRange {
		result = slice{factor: 1, constant: true}
		st.writeKey(values, first, &result)
	}

	class, ok := st.classes[string(st.key)]
	if !ok {
		class = st.digestDrawer.draw()
		st.classes[string(st.key)] = class
	}
	st.size += int64(len(st.key)) + sliceBytes
	result.digest = class
	return result
}

// writeKey sets st.key to the key of a slice, a part of the table at fixed values of some variables. Slices with the same key are one
// class. The key is the numbers of the open positions, 2 bytes each, and the entries divided by result.factor. Open positions have value
// −1. first is the index of the first entry. It clears result.constant if a quotient is not 1. It returns false if a quotient is too large
// or too small to have all digits.
func (st *sliceTable) writeKey(values []int32, first int32, result *slice) (isInRange bool) {
	st.key = st.key[:0]
	for i, a := range values {
		if a < 0 {
			st.key = append(st.key, byte(i), byte(i>>8))
		}
	}
	return st.appendEntries(values, 0, first, result) || result.factor == 1 // entries divided by 1 keep all digits
}

// appendEntries appends to st.key the bits of the entries of a slice, a part of the table at fixed values of some variables. The entries
// are divided by result.factor, and are those of all values of the open positions from i on. values has the values of the table's
// variables, −1 at open positions. offset is the index of the first of these entries. It clears result.constant if a quotient is not 1, and
// returns false if one is too large or too small to have all digits.
func (st *sliceTable) appendEntries(values []int32, i int, offset int32, result *slice) (isInRange bool) {
	if i == len(values) {
		x := st.table.values[offset] / result.factor
		result.constant = result.constant && x == 1
		st.key = binary.LittleEndian.AppendUint64(st.key, math.Float64bits(x))
		return x >= 0x1p-1000 && x <= 0x1p1000
	}
	if values[i] >= 0 { // fixed: offset has this value from the beginning
		return st.appendEntries(values, i+1, offset, result)
	}
	isInRange = true
	for a := range st.table.dims[i] {
		isInRange = st.appendEntries(values, i+1, offset+a*st.strides[i], result) && isInRange
	}
	return isInRange
}
