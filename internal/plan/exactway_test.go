package plan

import (
	"math"
	"math/big"
	"testing"
)

func TestChunksOfSlicesLeaveNoGap(t *testing.T) {
	for _, count := range []int64{1, 2, 7, 1000, 1 << 40, math.MaxInt64} {
		for _, chunks := range []int64{1, 2, 3, 1024} {
			if chunks > count {
				continue
			}
			if bound(count, chunks, 0) != 0 || bound(count, chunks, chunks) != count {
				t.Errorf("%d slices in %d chunks do not begin at 0 and end at the last", count, chunks)
			}
			for k := range chunks {
				want := new(big.Int).Mul(big.NewInt(count), big.NewInt(k))
				if want.Div(want, big.NewInt(chunks)); bound(count, chunks, k) != want.Int64() {
					t.Errorf("%d slices, chunk %d of %d begins at %d, want %v", count, k, chunks, bound(count, chunks, k), want)
				}
				if bound(count, chunks, k) >= bound(count, chunks, k+1) {
					t.Errorf("%d slices: chunk %d of %d is empty", count, k, chunks)
				}
			}
		}
	}
}
