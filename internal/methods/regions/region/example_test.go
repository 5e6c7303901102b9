package region_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A cycle of three indices that want to be equal: belief propagation sees 3 tables of mean 1.25, the
// region the cycle.
func Example() {
	equal := []float64{2, 0.5, 0.5, 2}
	e := &sumproduct.Expression{Dims: []int{2, 2, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0, 1}, Data: equal}, {Scope: []int{1, 2}, Data: equal}, {Scope: []int{2, 0}, Data: equal},
	}}
	ctx := context.Background()
	s, err := bp.Run(ctx, e, bp.Options{})
	if err != nil {
		panic(err)
	}
	f, err := region.Plan(ctx, e.Hypergraph(), region.Options{Kind: region.Balls, Size: 2})
	if err != nil {
		panic(err)
	}
	est, err := region.Run(ctx, e, s, f, 1)
	if err != nil {
		panic(err)
	}
	fmt.Printf("belief propagation: ln Z = %.6f\n", est.LnZBP)             // ln (8 · 1.25³)
	fmt.Printf("%d region:           ln Z = %.6f\n", est.Regions, est.LnZ) // ln (2·2³ + 6·2·½²)
	// Output:
	// belief propagation: ln Z = 2.748872
	// 1 region:           ln Z = 2.944439
}
