package floats_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestLn: Ln(x) equals the logarithm of x as a Number, also for subnormal x.
func TestLn(t *testing.T) {
	for _, x := range []float64{5e-324, 1.5e-322, 1.12e-312, 2.2e-308, 0x1p-1022, 1e-300, 0.3, 1, 1e308} {
		if got, want := floats.Ln(x), scaled.FromFloat(x).LogAbs(); !(math.Abs(got-want) < 1e-12*math.Max(1, math.Abs(want))) {
			t.Errorf("ln %v = %v, want %v", x, got, want)
		}
	}
	if got := floats.Ln(0); !math.IsInf(got, -1) {
		t.Errorf("ln 0 = %v", got)
	}
	if got := floats.Ln(-1); !math.IsNaN(got) {
		t.Errorf("ln −1 = %v", got)
	}
}
