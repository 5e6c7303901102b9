package bp_test

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A chain of three variables is a tree: the Bethe value is Z = 2·(1 + 2)·(1 + 2), beliefs are the
// marginals.
func ExampleRun() {
	equal := []float64{2, 1, 1, 2}
	e := &sumproduct.Expression{
		Dims:   []int{2, 2, 2},
		Scale:  scaled.One,
		Tables: []sumproduct.Table{{Scope: []int{0, 1}, Data: equal}, {Scope: []int{1, 2}, Data: equal}},
	}
	s, err := bp.Run(context.Background(), e, bp.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("converged %v, ln Z %.6f, P(X_0) %.2f\n", s.Converged, s.LnZ(), s.Belief(0))
	// Output: converged true, ln Z 2.890372, P(X_0) [0.50 0.50]
}
