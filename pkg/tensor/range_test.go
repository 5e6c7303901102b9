package tensor

import (
	"fmt"
	"math"
	"testing"
)

// TestLowRankNearTheEndsOfFloat64: tables of rank two whose sums of two entries overflow, or whose
// entries are subnormal. An eigenvalue routine that was handed an infinite entry never came back.
func TestLowRankNearTheEndsOfFloat64(t *testing.T) {
	hang := &Dense{
		Shape: []int{2, 2, 2},
		Data:  []float64{1.7e308, 1.1e308, 0.9e308, 1.6e308, 1.2e308, 1.0e308, 1.5e308, 1.3e308},
	}
	if c, _, ok := LowRank(hang, 4); ok {
		sameTable(t, "hang", c, hang)
	}
	plain := &Dense{Shape: []int{2, 3, 2}}
	for x := range 12 {
		a, b, c := float64(x/6), float64(x/2%3), float64(x%2)
		plain.Data = append(plain.Data, (1+a)*(2-b/2)*(1+c)+0.25*(2-a)*(1+b*b)*(3-2*c))
	}
	for _, e := range []int{0, 1019, -1010, -1040} {
		wild := &Dense{Shape: plain.Shape}
		for _, v := range plain.Data {
			wild.Data = append(wild.Data, math.Ldexp(v, e))
		}
		name := fmt.Sprintf("rank two times 2^%d", e)
		c, _, ok := LowRank(wild, 2)
		switch {
		case ok:
			sameTable(t, name, c, wild)
		case e >= -1010:
			t.Errorf("%s: nothing found", name)
		}
	}
}

// sameTable compares in terms of the largest entry: subnormal ones have few digits themselves.
func sameTable(t *testing.T, name string, c *CP, want *Dense) {
	t.Helper()
	got, err := ToDense(c, len(want.Data))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for i, w := range want.Data {
		if d := math.Abs(got.Data[i] - w); !(d <= 1e-12*maxAbs(want.Data)) {
			t.Errorf("%s: entry %d is %g, want %g", name, i, got.Data[i], w)
		}
	}
}
