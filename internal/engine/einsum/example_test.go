package einsum_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Three binary variables in a row, neighbours twice as likely equal as not: Z = 2 · 3 · 3.
func ExampleContract() {
	equal := []float64{2, 1, 1, 2}
	e := &sumproduct.Expression{
		Dims:   []int{2, 2, 2},
		Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: equal}, {Scope: []int{1, 2}, Data: equal}},
		Scale:  scaled.One,
	}
	ctx := context.Background()
	order, err := contractionorder.MinFill(ctx, e.Hypergraph())
	if err != nil {
		panic(err)
	}
	z, stats, err := einsum.Contract(ctx, e, order, einsum.Options{})
	fmt.Println(z.Float64(), stats.Flops, err)
	// Output: 18 9 <nil>
}
