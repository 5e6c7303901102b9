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
	h, err := r.next()
	if err != nil || h.class != classMap {
		return nil
	}
	for range h.n {
		k, err := r.key()
		if err != nil {
			return nil
		}
		from := r.i
		if err := r.skip(MaxDepth); err != nil {
			return nil
		}
		if string(k) == key {
			return b[from:r.i]
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

func (c class) String() string { return classNames[c] }

// head is the header of a value: its class, and its length (string, bin: bytes; array: elements;
// map: pairs) or its value.
type head struct {
	class class
	n     int
	u     uint64 // integers: two's complement; bool: 0 or 1; float: bits of the float64
	neg   bool   // integers: u is below zero
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

// be reads an integer of n ≤ 8 bytes, big-endian.
func (c *cursor) be(n int) (uint64, error) {
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

// next reads one header and checks its length against the remaining bytes. The bytes of strings and
// bins are left to be read or skipped.
func (c *cursor) next() (head, error) {
	if c.i == len(c.b) {
		return head{}, c.malformed("the message ends inside a value")
	}
	x := c.b[c.i]
	c.i++
	switch {
	case x <= msgpcode.PosFixedNumHigh:
		return head{class: classInt, u: uint64(x)}, nil
	case x >= msgpcode.NegFixedNumLow:
		return head{class: classInt, u: uint64(int64(int8(x))), neg: true}, nil
	case msgpcode.IsFixedMap(x):
		return c.sized(classMap, uint64(x&msgpcode.FixedMapMask), 2)
	case msgpcode.IsFixedArray(x):
		return c.sized(classArray, uint64(x&msgpcode.FixedArrayMask), 1)
	case msgpcode.IsFixedString(x):
		return c.sized(classString, uint64(x&msgpcode.FixedStrMask), 1)
	}

	switch x {
	case msgpcode.Nil:
		return head{class: classNil}, nil
	case msgpcode.False, msgpcode.True:
		return head{class: classBool, u: uint64(x - msgpcode.False)}, nil
	case msgpcode.Uint8, msgpcode.Uint16, msgpcode.Uint32, msgpcode.Uint64:
		u, err := c.be(1 << (x - msgpcode.Uint8))
		return head{class: classInt, u: u}, err
	case msgpcode.Int8, msgpcode.Int16, msgpcode.Int32, msgpcode.Int64:
		n := 1 << (x - msgpcode.Int8)
		u, err := c.be(n)
		s := int64(u<<(64-8*n)) >> (64 - 8*n)
		return head{class: classInt, u: uint64(s), neg: s < 0}, err
	case msgpcode.Float:
		u, err := c.be(4)
		x := float64(math.Float32frombits(uint32(u)))
		return head{class: classFloat, u: math.Float64bits(x)}, err
	case msgpcode.Double:
		u, err := c.be(8)
		return head{class: classFloat, u: u}, err
	case msgpcode.Str8, msgpcode.Str16, msgpcode.Str32:
		return c.prefixed(classString, 1<<(x-msgpcode.Str8), 1)
	case msgpcode.Bin8, msgpcode.Bin16, msgpcode.Bin32:
		return c.prefixed(classBin, 1<<(x-msgpcode.Bin8), 1)
	case msgpcode.Array16, msgpcode.Array32:
		return c.prefixed(classArray, 2<<(x-msgpcode.Array16), 1)
	case msgpcode.Map16, msgpcode.Map32:
		return c.prefixed(classMap, 2<<(x-msgpcode.Map16), 2)
	}
	c.i--
	return head{}, c.malformed("code 0x%02x: extension types have no place here", x)
}

// prefixed reads a length of width bytes.
func (c *cursor) prefixed(k class, width int, least uint64) (head, error) {
	n, err := c.be(width)
	if err != nil {
		return head{}, err
	}
	return c.sized(k, n, least)
}

// sized checks a declared length against the remaining bytes: n items of at least least bytes each.
func (c *cursor) sized(k class, n, least uint64) (head, error) {
	if rest := uint64(len(c.b) - c.i); n*least > rest { // n < 2³², no overflow
		return head{}, c.malformed("a %s of %d where %d bytes remain", k, n, rest)
	}
	return head{class: k, n: int(n)}, nil
}

// take returns the n bytes of a string or bin whose header was just read.
func (c *cursor) take(n int) []byte {
	c.i += n
	return c.b[c.i-n : c.i : c.i]
}

// skip skips one value that may have depth nested arrays and maps.
func (c *cursor) skip(depth int) error {
	h, err := c.next()
	if err != nil {
		return err
	}
	switch h.class {
	case classString:
		if !utf8.Valid(c.take(h.n)) {
			return c.malformed("a string that is not UTF-8")
		}
	case classBin:
		c.i += h.n
	case classArray, classMap:
		if depth == 0 {
			return c.malformed("more than %d levels of arrays and maps", MaxDepth)
		}
		if h.class == classMap {
			return c.skipPairs(h.n, depth-1)
		}
		for range h.n {
			if err := c.skip(depth - 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipPairs skips the pairs of a map. Because there are at most MaxKeys keys the search for
// duplicates is linear in the bytes.
func (c *cursor) skipPairs(n, depth int) error {
	if n > MaxKeys {
		return c.malformed("a map of %d keys, at most %d", n, MaxKeys)
	}

	var from, to [MaxKeys]uint32 // MaxBytes < 2³²
	for k := range n {
		key, err := c.key()
		if err != nil {
			return err
		}
		from[k] = uint32(c.i - len(key))
		to[k] = uint32(c.i)

		for j := range k {
			if string(c.b[from[j]:to[j]]) == string(key) {
				return c.malformed("key %q twice in one map", key)
			}
		}

		if err := c.skip(depth); err != nil {
			return err
		}
	}
	return nil
}

// key reads the key of a map's pair.
func (c *cursor) key() ([]byte, error) {
	h, err := c.next()
	if err != nil {
		return nil, err
	}
	if h.class != classString {
		return nil, c.malformed("a map's key is a %s, not a string", h.class)
	}

	key := c.take(h.n)
	if !utf8.Valid(key) {
		return nil, c.malformed("a key that is not UTF-8")
	}
	return key, nil
}
