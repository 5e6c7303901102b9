// Package digest makes SHA-256 digests of values in one canonical form: every integer and float64 has 8 bytes, little endian, and a list
// that is preceded by its length cannot be taken for another.
package digest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
)

// Size is the bytes of a digest.
const Size = sha256.Size

// Builder makes the digest of a value whose parts are added in sequence. Make one by New; it is for one goroutine.
type Builder struct {
	h   hash.Hash
	buf []byte // bytes that are not passed on to h yet
}

// New returns a Builder to which nothing was added.
func New() *Builder { return &Builder{h: sha256.New(), buf: make([]byte, 0, 1<<13)} }

// Reset forgets all that was added.
func (b *Builder) Reset() {
	b.h.Reset()
	b.buf = b.buf[:0]
}

// Word adds 8 bytes.
func (b *Builder) Word(u uint64) {
	if len(b.buf)+8 > cap(b.buf) {
		b.flush()
	}
	b.buf = binary.LittleEndian.AppendUint64(b.buf, u)
}

// Int adds an integer.
func (b *Builder) Int(i int) { b.Word(uint64(int64(i))) }

// Values adds integers to the digest, without their number.
func (b *Builder) Values(list []int) {
	for _, i := range list {
		b.Int(i)
	}
}

// Ints adds a list of integers: their number, then each.
func (b *Builder) Ints(list []int) {
	b.Int(len(list))
	b.Values(list)
}

// Float adds a number. −0 counts as 0.
func (b *Builder) Float(f float64) {
	if f == 0 {
		f = 0 // −0
	}
	b.Word(math.Float64bits(f))
}

// Floats adds a list of numbers: its length, then each as Float.
func (b *Builder) Floats(list []float64) {
	b.Int(len(list))
	for _, f := range list {
		b.Float(f)
	}
}

// Bits adds numbers without their count, each with all its bits: −0 and 0 differ.
func (b *Builder) Bits(list []float64) {
	for _, f := range list {
		b.Word(math.Float64bits(f))
	}
}

// Bytes adds bytes: their number, then all of them.
func (b *Builder) Bytes(list []byte) {
	b.Int(len(list))
	b.Raw(list)
}

// Raw adds bytes without their number.
func (b *Builder) Raw(list []byte) {
	if len(b.buf)+len(list) <= cap(b.buf) {
		b.buf = append(b.buf, list...)
		return
	}
	b.flush()
	b.h.Write(list)
}

// Text adds a string as Bytes adds its bytes.
func (b *Builder) Text(s string) {
	b.Int(len(s))
	if len(b.buf)+len(s) > cap(b.buf) {
		b.Raw([]byte(s))
		return
	}
	b.buf = append(b.buf, s...)
}

// Sum returns the digest of all that was added. More may be added afterwards.
func (b *Builder) Sum() (out [Size]byte) {
	b.flush()
	b.h.Sum(out[:0])
	return out
}

// Hex returns Sum in 64 hexadecimal digits.
func (b *Builder) Hex() string {
	sum := b.Sum()
	return hex.EncodeToString(sum[:])
}

// flush passes the buffered bytes on to the hash.
func (b *Builder) flush() {
	b.h.Write(b.buf)
	b.buf = b.buf[:0]
}

// HexOf returns the SHA-256 of b in 64 hexadecimal digits.
func HexOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
