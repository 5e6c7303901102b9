package linalg

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// TestBinaryNormalised compares with exact arithmetic: out·2^e is v, and the largest entry lies in [1, 2)
// unless v came back as it is.
func TestBinaryNormalised(t *testing.T) {
	const least = 0x1p-1074
	for _, v := range [][]float64{
		nil, {0, 0}, {1}, {-3, 5}, {0x1p1000, 0x1p-20}, {least, 3 * least}, {0, -0.75}, {math.MaxFloat64, 1},
		{0x1p1000, 0x1p-1000}, {0x1.8p1023, 3 * least},
	} {
		out, e, ok := BinaryNormalised(v)
		if !ok || len(out) != len(v) {
			t.Fatalf("%g: %g, %t", v, out, ok)
		}
		most := 0.0
		for i, x := range out {
			most = max(most, math.Abs(x))
			scaled := new(big.Float).SetMantExp(big.NewFloat(x), int(e))
			if scaled.Cmp(big.NewFloat(v[i])) != 0 {
				t.Errorf("%g: entry %d is %g·2^%d", v, i, x, e)
			}
		}
		if (most < 1 || most >= 2) && !(e == 0 && slices.Equal(out, v)) {
			t.Errorf("%g: %g·2^%d", v, out, e)
		}
	}
	for _, v := range [][]float64{{1, math.NaN()}, {math.Inf(1)}, {0, math.Inf(-1)}} {
		if _, _, ok := BinaryNormalised(v); ok {
			t.Errorf("%g: no error", v)
		}
	}
}
