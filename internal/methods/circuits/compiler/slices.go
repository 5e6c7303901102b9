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
	factor   float64 // its first entry: the ratio of the slice to the one that stands for its class
	constant bool    // all entries are the same, or there is only one
	digest   digest  // of the table and the class
}

// sliceTable finds the slices of one table. Slices are numbered as they are met; number 0 is the whole table.
type sliceTable struct {
	table   *softTable
	numbers drawer
	strides []int32         // of values, by position in the scope
	number  map[int64]int32 // by code: the values in the radix of one more than the dimension, which stands for open
	met     []slice
	classes map[string]digest
	bytes   []byte
	size    int64   // bytes of all of it, roughly
	span    float64 // log2 of the largest entry by the smallest, both counted from 1
}

// sliceBytes is the memory of a slice beside its class.
const sliceBytes = 128

func newSliceTable(t *softTable, numbers drawer) *sliceTable {
	st := &sliceTable{
		table: t, numbers: numbers, strides: make([]int32, len(t.scope)), number: map[int64]int32{}, classes: map[string]digest{},
	}
	st.span = math.Abs(math.Log2(slices.Max(t.values))) + math.Abs(math.Log2(slices.Min(t.values)))
	stride := int32(1)
	for i := len(t.scope) - 1; i >= 0; i-- {
		st.strides[i] = stride
		stride *= t.dims[i]
	}
	return st
}

// whole returns the number of the whole table.
func (st *sliceTable) whole() int32 { return st.find(slices.Repeat([]int32{-1}, len(st.table.scope))) }

// find returns the number of the slice at values, −1 for open ones.
func (st *sliceTable) find(values []int32) int32 {
	code := int64(0)
	for i, a := range values {
		code = code*int64(st.table.dims[i]+1) + int64(a+1)
	}
	if number, ok := st.number[code]; ok {
		return number
	}
	number := int32(len(st.met))
	st.number[code] = number
	st.met = append(st.met, st.make(values))
	return number
}

// make computes a slice: its entries, divided by the first, name its class. Where a quotient would leave the range of a
// float64's digits the entries themselves do.
func (st *sliceTable) make(values []int32) slice {
	base := int32(0)
	for i, a := range values {
		base += max(a, 0) * st.strides[i]
	}
	out := slice{factor: st.table.values[base], constant: true}
	if !st.describe(values, base, &out) {
		out = slice{factor: 1, constant: true}
		st.describe(values, base, &out)
	}

	class, ok := st.classes[string(st.bytes)]
	if !ok {
		class = st.numbers.draw()
		st.classes[string(st.bytes)] = class
	}
	st.size += int64(len(st.bytes)) + sliceBytes
	out.digest = class
	return out
}

// describe writes which positions are open, and the entries over them divided by the slice's factor. It reports whether all
// quotients have all digits.
func (st *sliceTable) describe(values []int32, base int32, out *slice) bool {
	st.bytes = st.bytes[:0]
	for i, a := range values {
		if a < 0 {
			st.bytes = append(st.bytes, byte(i), byte(i>>8))
		}
	}
	return st.entries(values, 0, base, out) || out.factor == 1
}

// entries appends the bits of all entries of a slice from position i on, divided by its factor.
func (st *sliceTable) entries(values []int32, i int, at int32, out *slice) bool {
	if i == len(values) {
		x := st.table.values[at] / out.factor
		out.constant = out.constant && x == 1
		st.bytes = binary.LittleEndian.AppendUint64(st.bytes, math.Float64bits(x))
		return x >= 0x1p-1000 && x <= 0x1p1000
	}
	if values[i] >= 0 {
		return st.entries(values, i+1, at, out)
	}
	fine := true
	for a := range st.table.dims[i] {
		fine = st.entries(values, i+1, at+a*st.strides[i], out) && fine
	}
	return fine
}
