package codec

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Bounds of all messages and blobs.
const (
	MaxDepth = 16      // nested arrays and maps, the outermost included
	MaxKeys  = 64      // keys of one map
	MaxBytes = 1 << 30 // size of a message or blob
)

var (
	// ErrMalformed: the bytes are not a message: not msgpack, of a wrong type, or without a
	// required field.
	ErrMalformed = errors.New("wire: malformed message")
	// ErrTooLarge: the message is larger than its bound, or decodes to more memory than its size
	// allows.
	ErrTooLarge = errors.New("wire: message too large")
	// ErrVersion: the message has a major version that this program does not read.
	ErrVersion = errors.New("wire: unknown version")
	// ErrInvalid: the message is well formed, but its content is wrong.
	ErrInvalid = errors.New("wire: invalid message")
)

// Scan checks that b is exactly one msgpack value that is safe to decode: at most limit bytes, at
// most MaxDepth containers deep, every declared length within the bytes that remain, maps with at
// most MaxKeys distinct string keys, strings in UTF-8, no extension types, nothing after the value.
// Time O(len(b)); it allocates only to report an error.
func Scan(b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(b), limit)
	}

	c := cursor{b: b}
	if err := c.skip(MaxDepth); err != nil {
		return err
	}
	if c.i != len(b) {
		return c.malformed("%d bytes after the value", len(b)-c.i)
	}
	return nil
}

// Part returns the bytes of one value of a message's outermost map, or nil if the key is not there.
// The message must have been decoded without an error. The result shares b's memory.
func Part(b []byte, key string) []byte {
	r := &Reader{cursor: cursor{b: b}}
	h, err := r.readHead()
	if err != nil || h.class != classMap {
		return nil
	}
	for range h.length {
		k, err := r.readKey()
		if err != nil {
			return nil
		}
		start := r.i
		if err := r.skip(MaxDepth); err != nil {
			return nil
		}
		if string(k) == key {
			return b[start:r.i]
		}
	}
	return nil
}

// class is the msgpack type of a value, without its width.
type class byte

const (
	classNil class = iota
	classBool
	classInt
	classFloat
	classString
	classBin
	classArray
	classMap
)

var classNames = [...]string{"null", "bool", "integer", "float", "string", "bin", "array", "map"}

// String returns the name of the class for error messages.
func (c class) String() string { return classNames[c] }

// head is the header of a value: its class, and its length or its value.
type head struct {
	class      class
	length     int    // of a string or bin, in bytes; of an array, in elements; of a map, in pairs
	bits       uint64 // an integer in two's complement; a bool as 0 or 1; the bits of a float64
	isNegative bool   // an integer is below 0
}

// cursor reads headers from b. No length that it returns reaches beyond b.
type cursor struct {
	b []byte
	i int // position of the next byte
}

// malformed returns an error at the present position.
func (c *cursor) malformed(format string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrMalformed, c.i, fmt.Sprintf(format, args...))
}

// readBigEndian reads an unsigned integer of n ≤ 8 bytes, the most significant byte first.
func (c *cursor) readBigEndian(n int) (uint64, error) {
	if len(c.b)-c.i < n {
		return 0, c.malformed("the message ends inside a value")
	}

	var u uint64
	for _, x := range c.b[c.i : c.i+n] {
		u = u<<8 | uint64(x)
	}

	c.i += n
	return u, nil
}

// readHead reads the header of the next value. For a string, bin, array or map it returns an error if the content cannot be within the
// remaining bytes; the content is left to be read or skipped.
func (c *cursor) readHead() (head, error) {
	if c.i == len(c.b) {
		return head{}, c.malformed("the message ends inside a value")
	}
	code := c.b[c.i]
	c.i++

	// Codes that have the value or the length in themselves. An item of an array or string takes at least one byte, a pair two.
	switch {
	case code <= msgpcode.PosFixedNumHigh:
		return head{class: classInt, bits: uint64(code)}, nil
	case code >= msgpcode.NegFixedNumLow:
		return head{class: classInt, bits: uint64(int64(int8(code))), isNegative: true}, nil
	case msgpcode.IsFixedMap(code):
		return c.headOfLength(classMap, uint64(code&msgpcode.FixedMapMask), 2)
	case msgpcode.IsFixedArray(code):
		return c.headOfLength(classArray, uint64(code&msgpcode.FixedArrayMask), 1)
	case msgpcode.IsFixedString(code):
		return c.headOfLength(classString, uint64(code&msgpcode.FixedStrMask), 1)
	}

	// Codes before a value or a length. Those of one type follow each other by width.
	switch code {
	case msgpcode.Nil:
		return head{class: classNil}, nil
	case msgpcode.False, msgpcode.True:
		return head{class: classBool, bits: uint64(code - msgpcode.False)}, nil
	case msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32, msgpcode.Uint64:
		u, err := c.readBigEndian(1 << (code - msgpcode.Uint8))
		return head{class: classInt, bits: u}, err
	case msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64:
		width := 1 << (code - msgpcode.Int8)
		u, err := c.readBigEndian(width)
		signed := int64(u<<(64-8*width)) >> (64 - 8*width) // with the sign in all higher bits
		return head{class: classInt, bits: uint64(signed), isNegative: signed < 0}, err
	case msgpcode.Float:
		u, err := c.readBigEndian(4)
		x := float64(math.Float32frombits(uint32(u)))
		return head{class: classFloat, bits: math.Float64bits(x)}, err
	case msgpcode.Double:
		u, err := c.readBigEndian(8)
		return head{class: classFloat, bits: u}, err
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return c.readLength(classString, 1<<(code-msgpcode.Str8), 1)
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return c.readLength(classBin, 1<<(code-msgpcode.Bin8), 1)
	case msgpcode.Array16, msgpcode.Array32:
		return c.readLength(classArray, 2<<(code-msgpcode.Array16), 1)
	case msgpcode.Map16, msgpcode.Map32:
		return c.readLength(classMap, 2<<(code-msgpcode.Map16), 2)
	}
	c.i--
	return head{}, c.malformed("code 0x%02x: extension types have no place here", code)
}

// readLength reads a length of width bytes and returns the header of a value of that length, whose items have at least itemBytes bytes
// each.
func (c *cursor) readLength(k class, width int, itemBytes uint64) (head, error) {
	n, err := c.readBigEndian(width)
	if err != nil {
		return head{}, err
	}
	return c.headOfLength(k, n, itemBytes)
}

// headOfLength returns the header of a value of n items. It returns an error if they cannot be within the remaining bytes, with at least
// itemBytes bytes each.
func (c *cursor) headOfLength(k class, n, itemBytes uint64) (head, error) {
	if remaining := uint64(len(c.b) - c.i); n*itemBytes > remaining { // n < 2³², no overflow
		return head{}, c.malformed("a %s of %d where %d bytes remain", k, n, remaining)
	}
	return head{class: k, length: int(n)}, nil
}

// readBytes returns the n bytes of a string or bin whose header was just read. They share the message's memory.
func (c *cursor) readBytes(n int) []byte {
	c.i += n
	return c.b[c.i-n : c.i : c.i]
}

// skip skips one value. It returns an error if arrays and maps are nested more than depth levels deep, or if a string is not UTF-8.
func (c *cursor) skip(depth int) error {
	h, err := c.readHead()
	if err != nil {
		return err
	}
	switch h.class {
	case classString:
		if !utf8.Valid(c.readBytes(h.length)) {
			return c.malformed("a string that is not UTF-8")
		}
	case classBin:
		c.i += h.length
	case classArray, classMap:
		if depth == 0 {
			return c.malformed("more than %d levels of arrays and maps", MaxDepth)
		}
		if h.class == classMap {
			return c.skipPairs(h.length, depth-1)
		}
		for range h.length {
			if err := c.skip(depth - 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipPairs skips the n pairs of a map, whose values have at most depth levels. It returns an error if there are more than MaxKeys, or if a
// key comes twice. With so few keys, the search for duplicates takes time linear in the bytes.
func (c *cursor) skipPairs(n, depth int) error {
	if n > MaxKeys {
		return c.malformed("a map of %d keys, at most %d", n, MaxKeys)
	}

	var starts, ends [MaxKeys]uint32 // of the keys so far; MaxBytes < 2³²
	for k := range n {
		key, err := c.readKey()
		if err != nil {
			return err
		}
		starts[k] = uint32(c.i - len(key))
		ends[k] = uint32(c.i)

		for j := range k {
			if string(c.b[starts[j]:ends[j]]) == string(key) {
				return c.malformed("key %q twice in one map", key)
			}
		}

		if err := c.skip(depth); err != nil {
			return err
		}
	}
	return nil
}

// readKey reads the key of a map's pair. It returns an error if the key is not a string in UTF-8.
func (c *cursor) readKey() ([]byte, error) {
	h, err := c.readHead()
	if err != nil {
		return nil, err
	}
	if h.class != classString {
		return nil, c.malformed("a map's key is a %s, not a string", h.class)
	}

	key := c.readBytes(h.length)
	if !utf8.Valid(key) {
		return nil, c.malformed("a key that is not UTF-8")
	}
	return key, nil
}
