package digest_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/base/digest"
)

// TestBuilderHashesTheBytesItSays, beyond its buffer too. The bytes are written by encoding/binary.
func TestBuilderHashesTheBytesItSays(t *testing.T) {
	long := make([]int, 5000)
	for i := range long {
		long[i] = i*i - 7
	}
	b, want := digest.New(), bytes.Buffer{}
	write := func(values ...any) {
		for _, v := range values {
			if err := binary.Write(&want, binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Text("v1")
	write(int64(2), []byte("v1"))
	b.Int(-1)
	b.Word(math.MaxUint64)
	write(int64(-1), uint64(math.MaxUint64))
	b.Ints(long)
	write(int64(len(long)))
	for _, i := range long {
		write(int64(i))
	}
	zero := math.Copysign(0, -1)
	b.Floats([]float64{1.5, zero})
	write(int64(2), 1.5, 0.0)
	b.Bits([]float64{1.5, zero})
	write(1.5, zero)
	b.Bytes(nil)
	b.Raw([]byte{1, 2, 3})
	b.Values(long[:3])
	write(int64(0), []byte{1, 2, 3}, int64(-7), int64(-6), int64(-3))

	for range 1000 { // across the end of the buffer
		b.Text("seventeen letters")
		b.Raw([]byte{4, 5, 6})
		write(int64(17), []byte("seventeen letters"), []byte{4, 5, 6})
	}
	large := bytes.Repeat([]byte("large"), 5000)
	b.Text(string(large))
	b.Bytes(large)
	write(int64(len(large)), large, int64(len(large)), large)

	if got := b.Sum(); got != sha256.Sum256(want.Bytes()) {
		t.Errorf("%x", got)
	}
	if first, again := b.Hex(), b.Hex(); first != digest.HexOf(want.Bytes()) || again != first {
		t.Error("Hex is not Sum, or asking changes it")
	}
}
