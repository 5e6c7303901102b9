package codec

import (
	"encoding/binary"
	"math"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Values that a message has millions of are appended to a buffer without reflection, byte for byte as Value encodes them, and written by
// WriteEncoded.

// WriteEncoded writes bytes that are encoded already.
func (w *Writer) WriteEncoded(b []byte) error {
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
	b = appendLen(b, len(list), arrayCodes)
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
	b = appendLen(b, 8*len(list), binCodes)
	for _, x := range list {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

// AppendLists appends an array of lists of floats, nil as null.
func AppendLists(b []byte, lists [][]float64) []byte {
	if lists == nil {
		return append(b, msgpcode.Nil)
	}
	b = appendLen(b, len(lists), arrayCodes)
	for _, list := range lists {
		b = AppendFloats(b, list)
	}
	return b
}

// lengthCodes are the codes of msgpack before a length, for one type.
type lengthCodes struct {
	maxFixed              int  // the longest length that is in the code itself, −1 if none is
	fixed                 byte // the code that such a length is or-ed to
	code8, code16, code32 byte // the codes before a length of 8, 16 or 32 bits; 0 if there is none
}

var (
	arrayCodes = lengthCodes{15, msgpcode.FixedArrayLow, 0, msgpcode.Array16, msgpcode.Array32}
	binCodes   = lengthCodes{-1, 0, msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32}
)

// appendLen appends the length n of an array or a bin in its shortest form.
func appendLen(b []byte, n int, codes lengthCodes) []byte {
	switch {
	case n <= codes.maxFixed:
		return append(b, codes.fixed|byte(n))
	case n <= math.MaxUint8 && codes.code8 != 0: // 0: there is no such form
		return append(b, codes.code8, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, codes.code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, codes.code32), uint32(n))
}

// appendInt appends an integer in the shortest form that msgpack has for it. Integers from −32 to 127 are one byte.
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
