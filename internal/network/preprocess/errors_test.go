package preprocess_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestErrorsAreBounded: chains of sums of terms of both signs that cancel further at every step.
// The result is within the error stated, and the error stays where the digits are.
func TestErrorsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	stated := 0
	for round := range 400 {
		e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2}}
		near := 1 - math.Ldexp(rng.Float64(), -rng.IntN(12))
		for i := range 2 + rng.IntN(6) {
			e.Dims = append(e.Dims, 2)
			a, b := 1+rng.Float64(), 1+rng.Float64()
			e.Tables = append(e.Tables,
				sumproduct.Table{Scope: []int{i, i + 1},
					Data: []float64{a, -a * near, -b * near, b}, Rounded: round%2 == 0})
		}
		r, err := preprocess.Run(context.Background(), e, preprocess.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want := oracle.Sum(e, 0).Z
		left := oracle.Sum(r.Expression, 0)
		got, size := left.Z, left.Terms
		bound := math.Ldexp(r.Rounding+float64(len(r.Expression.Tables)), -53)
		if d := away(got, want, size); d > bound {
			t.Errorf("round %d: off by %.3g of the terms left, %.3g is stated: %v",
				round, d, bound, r.Report)
		}
		if len(r.Expression.Tables) == 0 {
			stated++
		}
		if r.Rounding > 1<<20 {
			t.Errorf("round %d: %v roundings", round, r.Rounding)
		}
	}
	if stated == 0 || stated == 400 {
		t.Errorf("%d of 400 were decided", stated)
	}
}

// TestRoundedTables: terms that cancel to 0 are no zero where the numbers
// themselves have been rounded on the way, and are one where they have not.
func TestRoundedTables(t *testing.T) {
	for _, rounded := range []bool{false, true} {
		e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2},
			Tables: []sumproduct.Table{
				{Scope: []int{0, 1}, Data: []float64{0.99, 0.7, -0.99, -0.7}, Rounded: rounded},
				{Scope: []int{1}, Data: []float64{0.3, 0.4}},
			}}
		if r := run(t, e, preprocess.Options{}); (len(r.Expression.Tables) == 0) == rounded ||
			r.Expression.Scale.IsZero() == rounded {
			t.Errorf("rounded %v: %v", rounded, r.Expression)
		}
	}
}

// TestRoundedSumsDoNotCancel: a sum that is rounded must not cancel with another.
func TestRoundedSumsDoNotCancel(t *testing.T) {
	r := run(t, &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2},
		Tables: []sumproduct.Table{
			{Scope: []int{0, 1}, Data: []float64{0.1, 1e15, 0.3, 1e15}},
			{Scope: []int{0}, Data: []float64{1, -1}},
		}}, preprocess.Options{})
	if z := r.Expression.Scale.Float64(); len(r.Expression.Tables) == 0 && math.Abs(z+0.2) > 1e-16 {
		t.Errorf("decided: %v, it is -0.2", z)
	}
}
