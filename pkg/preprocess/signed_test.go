package preprocess

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestSumsOfRoundedSums: Σ_t (Σ_y s_t(y)) (Σ_x v_t(x)) with Σ s = (1, −1) and Σ v_0 = Σ v_1 + 25 among entries of 4e17: the inner
// sums are rounded, their difference is not, and has no digit of 25. Nothing may take it for that.
func TestSumsOfRoundedSums(t *testing.T) {
	e := &einsum.Expression{Dims: []int{3, 2, 3}, Scale: scaled.One, Tables: []einsum.Table{
		{Scope: []int{1, 2}, Data: []float64{0.5, 0.25, 0.25, -0.25, -0.5, -0.25}},
		{Scope: []int{1, 0}, Data: []float64{4e17, 3e17, 75, 3e17, 4e17, 50}},
	}}
	r, err := Run(context.Background(), e, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Expression.Tables) > 0 { // what comes of the rest is for the contraction to say, whose terms cancel for all to see
		return
	}
	if z := r.Expression.Scale.Float64(); math.Abs(z-25) > 1e-9 {
		t.Errorf("summed to %v, want 25", z)
	}
}
