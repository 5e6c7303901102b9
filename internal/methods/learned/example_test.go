package learned_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/learned"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
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

// ExampleLearn learns symmetry-rank-one components for a small base tensor: two of them are all of
// it.
func ExampleLearn() {
	for _, r := range []int{1, 2} {
		d, err := learned.Learn(context.Background(), twoFactors(), query.Settings{Components: r, Budget: 1e9})
		if err != nil {
			fmt.Println(err)
			return
		}
		e := d.Estimates[0]
		fmt.Printf("%d of %s: ρ = %.3f\n", len(e.Parts), e.Parts[0].Class(), e.Quality.Residual)
	}
	// Output:
	// 1 of symmetry-rank-one: ρ = 0.177
	// 2 of symmetry-rank-one: ρ = 0.000
}
