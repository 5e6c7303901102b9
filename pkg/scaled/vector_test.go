package scaled_test

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestVectors(t *testing.T) {
	xs := []scaled.Number{scaled.FromFloat(3), {}, scaled.Make(-5, 4000)}
	v := scaled.NewVector(len(xs))
	for i, x := range xs {
		v.Set(i, x)
	}
	if got := v.Numbers(); !slices.Equal(got, xs) {
		t.Errorf("set, then Numbers: %v, want %v", got, xs)
	}
	v.Set(1, scaled.Number{Mant: 12, Exp: 1})
	if got := v.At(1); got != scaled.FromFloat(24) || v.Mant[1] != 1.5 {
		t.Errorf("an entry that was not normalised is kept as %v·2^%d", v.Mant[1], v.Exp[1])
	}
	if w := (scaled.Vector{Mant: []float64{6, 0}}); w.At(0) != scaled.FromFloat(6) || w.Len() != 2 {
		t.Error("a vector without exponents reads wrongly")
	}
	if !v.IsFinite() || scaled.FromFloats([]float64{1, math.NaN()}).IsFinite() ||
		scaled.FromFloats([]float64{math.Inf(-1)}).IsFinite() {
		t.Error("IsFinite is wrong")
	}
}
