package pairwise_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A triangle of three binary variables that like to agree, in two slices over the first one.
func ExampleMarginals() {
	agree := []float64{2, 1, 1, 2}
	e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2, 2}, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: agree}, {Scope: []int{1, 2}, Data: agree}, {Scope: []int{2, 0},
			Data: agree},
		{Scope: []int{0}, Data: []float64{1, 3}},
	}}
	tree := contractionorder.Tree{Leaves: 4, Merges: [][2]int{{0, 3}, {1, 2}, {4, 5}}}
	plan, err := pairwise.Plan(e.Hypergraph(), tree, []int{0})
	if err != nil {
		fmt.Println(err)
		return
	}
	got, _, err := pairwise.Marginals(context.Background(), e, tree,
		pairwise.Options{Slices: []int{0}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.0f slices, Z = %.0f, P(0) = %.2f, P(1) = %.3f\n",
		plan.Slices, got.Z.Float64(), got.Marginals[0], got.Marginals[1])
	// Output: 2 slices, Z = 56, P(0) = [0.25 0.75], P(1) = [0.393 0.607]
}
