package codec

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"github.com/vmihailenco/msgpack/v5"
)

// TestListsHaveTheBytesOfTheLibrary: integers in their shortest form, and lengths of every width.
func TestListsHaveTheBytesOfTheLibrary(t *testing.T) {
	numbers := []int{
		0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt,
		-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt,
	}
	for _, n := range []int{0, 1, 15, 16, 255, 256, 65535, 65536} {
		list := slices.Repeat(numbers, n/len(numbers)+1)[:n]
		var want bytes.Buffer
		enc := msgpack.NewEncoder(&want)
		enc.EncodeArrayLen(n)
		for _, x := range list {
			enc.EncodeInt(int64(x))
		}
		if got := AppendInts(nil, list); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%d integers: %x…, want %x…", n, got[:min(len(got), 80)], want.Bytes()[:min(want.Len(), 80)])
		}
		want.Reset()
		enc.EncodeBytes(make([]byte, 8*n))
		if got := AppendFloats(nil, make([]float64, n)); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%d floats: %x…", n, got[:min(len(got), 8)])
		}
	}
	if b := AppendLists(AppendFloats(AppendInts(nil, nil), nil), nil); !bytes.Equal(b, []byte{0xc0, 0xc0, 0xc0}) {
		t.Errorf("no lists: %x", b)
	}
}
