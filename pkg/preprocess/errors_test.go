package preprocess_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/preprocess"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestErrorsAreBounded: chains of sums of terms of both signs that cancel further at every step. What is left is within the error
// stated, and that stays where the digits are.
func TestErrorsAreBounded(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	stated := 0
	for round := range 400 {
		e := &einsum.Expression{Scale: scaled.One, Dims: []int{2}}
		near := 1 - math.Ldexp(rng.Float64(), -rng.IntN(12))
		for i := range 2 + rng.IntN(6) {
			e.Dims = append(e.Dims, 2)
			a, b := 1+rng.Float64(), 1+rng.Float64()
			e.Tables = append(e.Tables, einsum.Table{Scope: []int{i, i + 1}, Data: []float64{a, -a * near, -b * near, b}})
		}
		r, err := preprocess.Run(context.Background(), e, preprocess.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := enumerate(e)
		got, size, _ := enumerate(r.Expression)
		bound := math.Ldexp(r.Rounding+float64(len(r.Expression.Tables)), -53)
		if d := away(got, want, size); d > bound {
			t.Errorf("round %d: off by %.3g of the terms left, %.3g is stated: %v", round, d, bound, r.Report)
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

// TestInputsAreRounded: terms that cancel to 0 are no zero where the numbers themselves have been rounded on the way.
func TestInputsAreRounded(t *testing.T) {
	e := &einsum.Expression{Scale: scaled.One, Dims: []int{2, 2}, Tables: []einsum.Table{
		{Scope: []int{0, 1}, Data: []float64{0.1, 1e15, 0.3, 1e15}},
		{Scope: []int{0}, Data: []float64{1, -1}},
	}}
	r, err := preprocess.Run(context.Background(), e, preprocess.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want, _, _ := enumerate(e); len(r.Expression.Tables) == 0 {
		t.Errorf("decided: %v, it is %v", r.Expression.Scale, want)
	}
}
