package preprocess

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestSumsOfRoundedSums: Σ_t s_t (Σ_x v_t(x)) with s = (1, −1), v_1 = v_0 + 25 at one x, other entries of 4e17: the inner
// sums are rounded, their difference is not, and still has no digit of 25. Nothing may take it for one.
func TestSumsOfRoundedSums(t *testing.T) {
	e := &einsum.Expression{Dims: []int{3, 2}, Scale: scaled.One, Tables: []einsum.Table{
		{Scope: []int{1}, Data: []float64{1, -1}},
		{Scope: []int{1, 0}, Data: []float64{4e17, 3e17, 75, 4e17, 3e17, 50}},
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
