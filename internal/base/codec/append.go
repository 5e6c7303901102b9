package codec

import (
	"encoding/binary"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Values that a message has millions of are appended to a buffer without reflection, byte for byte as Value encodes them, and written by
// Raw.

// Raw writes bytes that are encoded already.
func (w *Writer) Raw(b []byte) error {
	_, err := w.to.Write(b)
	return err
}

// AppendMap begins a map of fewer than 16 pairs.
func AppendMap(b []byte, pairs int) []byte { return append(b, msgpcode.FixedMapLow|byte(pairs)) }

// AppendText appends a string of fewer than 32 bytes, a key for instance.
func AppendText(b []byte, s string) []byte {
	return append(append(b, msgpcode.FixedStrLow|byte(len(s))), s...)
}

// AppendInts appends a list of integers, nil as null.
func AppendInts(b []byte, list []int) []byte {
	if list == nil {
		return append(b, msgpcode.Nil)
	}
	b = appendLen(b, len(list), msgpcode.FixedArrayLow, 15, 0, msgpcode.Array16, msgpcode.Array32)
	for _, x := range list {
		b = appendInt(b, int64(x))
	}
	return b
}

// AppendFloats appends a list of floats as little-endian bytes, nil as null.
func AppendFloats(b []byte, list []float64) []byte {
	if list == nil {
		return append(b, msgpcode.Nil)
	}
	b = appendLen(b, 8*len(list), 0, -1, msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32)
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// AppendLists appends lists of floats.
func AppendLists(b []byte, lists [][]float64) []byte {
	if lists == nil {
		return append(b, msgpcode.Nil)
	}
	b = appendLen(b, len(lists), msgpcode.FixedArrayLow, 15, 0, msgpcode.Array16, msgpcode.Array32)
	for _, list := range lists {
		b = AppendFloats(b, list)
	}
	return b
}

// appendLen appends a length up to fixed in the code itself, and a longer one after the code of its width; code 0 is none.
func appendLen(b []byte, n int, low byte, fixed int, code8, code16, code32 byte) []byte {
	switch {
	case n <= fixed:
		return append(b, low|byte(n))
	case n <= math.MaxUint8 && code8 != 0:
		return append(b, code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code32), uint32(n))
}

// appendInt appends an integer in its shortest form.
func appendInt(b []byte, x int64) []byte {
	switch {
	case x >= 0 && x <= math.MaxInt8:
		return append(b, byte(x))
	case x >= 0 && x <= math.MaxUint8:
		return append(b, msgpcode.Uint8, byte(x))
	case x >= 0 && x <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Uint16), uint16(x))
	case x >= 0 && x <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Uint32), uint32(x))
	case x >= 0:
		return binary.BigEndian.AppendUint64(append(b, msgpcode.Uint64), uint64(x))
	case x >= -32:
		return append(b, byte(x))
	case x >= math.MinInt8:
		return append(b, msgpcode.Int8, byte(x))
	case x >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, msgpcode.Int16), uint16(x))
	case x >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, msgpcode.Int32), uint32(x))
	}
	return binary.BigEndian.AppendUint64(append(b, msgpcode.Int64), uint64(x))
}
