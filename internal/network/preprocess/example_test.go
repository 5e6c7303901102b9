package preprocess_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Index 1 equals index 0, index 2 is a barren child, and value 2 of index 0 is impossible.
func ExampleRun() {
	e := &sumproduct.Expression{Dims: []int{3, 3, 2}, Scale: scaled.One, Tables: []sumproduct.Table{
		{Scope: []int{0}, Data: []float64{2, 3, 0}},
		{Scope: []int{0, 1}, Data: []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}},
		{Scope: []int{1, 2}, Data: []float64{0.25, 0.75, 0.5, 0.5, 0.125, 0.875}},
	}}
	r, err := preprocess.Run(context.Background(), e, preprocess.Options{Marginals: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("Z =", r.Expression.Scale.Float64(), "with",
		len(r.Expression.Tables), "tables left")
	for i := range e.Dims {
		p, err := r.Recover(i, nil)
		fmt.Printf("%d %.2f %v\n", i, p, err)
	}
	// Output:
	// Z = 5 with 0 tables left
	// 0 [0.40 0.60 0.00] <nil>
	// 1 [0.40 0.60 0.00] <nil>
	// 2 [0.40 0.60] <nil>
}
