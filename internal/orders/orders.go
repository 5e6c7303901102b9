// Package orders is planning for tests and examples, which have no context that ends.
package orders

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/einsum"
	"github.com/basetensor/basetensor/internal/elimination"
)

// MinFill is elimination.MinFill.
func MinFill(h elimination.Hypergraph) []int {
	return must(elimination.MinFill(context.Background(), h))
}

// MinWeight is elimination.MinWeight.
func MinWeight(h elimination.Hypergraph) []int {
	return must(elimination.MinWeight(context.Background(), h))
}

// Best is elimination.Best.
func Best(h elimination.Hypergraph) []int { return must(elimination.Best(context.Background(), h)) }

// Evaluate is elimination.Evaluate.
func Evaluate(h elimination.Hypergraph, order []int) btn.Cost {
	return must(elimination.Evaluate(context.Background(), h, order))
}

// must returns x: no error but the context's exists, and a context without an end has none.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// PlanMarginals is einsum.PlanMarginals.
func PlanMarginals(h elimination.Hypergraph, order []int) btn.Cost {
	return must(einsum.PlanMarginals(context.Background(), h, order))
}
