package frobenius_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/frobenius"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// twoFactors is the base tensor of two pairwise factors over four binary legs.
func twoFactors() *btn.Network {
	return &btn.Network{
		Dims: []int{2, 2, 2, 2}, Scale: scaled.One,
		Cores: []btn.Core{
			{Legs: []int{0, 1}, T: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{3, 1, 1, 3}}},
			{Legs: []int{2, 3}, T: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{2, 1, 1, 2}}},
		},
	}
}

// ExampleDecompose learns symmetry-rank-one components for a small base tensor: two of them are all of it.
func ExampleDecompose() {
	for _, r := range []int{1, 2} {
		d, err := frobenius.Decompose(context.Background(), twoFactors(), btn.Settings{Components: r, Sweeps: 100})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d of %s: ρ = %.3f\n", len(d.Components), d.Components[0].Class, d.Residual)
	}
	// Output:
	// 1 of symmetry-rank-one: ρ = 0.177
	// 2 of symmetry-rank-one: ρ = 0.000
}

// ExampleObjective_Weights fits the weights of a dictionary of one's own: ones on every leg, and the alternating vector.
func ExampleObjective_Weights() {
	net := twoFactors()
	o, err := frobenius.NewObjective(net, countspace.TwoLevels(net.Dims), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	minus := [][]float64{{1, -1}, {1, -1}, {1, -1}, {1, -1}}
	fit, err := o.Weights(context.Background(), []btn.Component{
		{Class: btn.ClassRankOne},
		{Class: btn.ClassRankOne, R: minus},
	}, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("α = %.3f, %.3f; ρ = %.3f\n", fit.Alpha[0].Float64(), fit.Alpha[1].Float64(), fit.Residual)
	// Output: α = 3.000, 0.500; ρ = 0.260
}
