// Package orders finds and prices elimination orders for tests and examples, without a context or errors.
package orders

import (
	"context"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/query"
)

// MinFill is contractionorder.MinFill.
func MinFill(h contractionorder.Hypergraph) []int {
	return must(contractionorder.MinFill(context.Background(), h))
}

// MinWeight is contractionorder.MinWeight.
func MinWeight(h contractionorder.Hypergraph) []int {
	return must(contractionorder.MinWeight(context.Background(), h))
}

// Best is contractionorder.Best.
func Best(h contractionorder.Hypergraph) []int {
	order, _, err := contractionorder.Best(context.Background(), h)
	return must(order, err)
}

// Evaluate is contractionorder.EvaluateOrder.
func Evaluate(h contractionorder.Hypergraph, order []int) query.Cost {
	return must(contractionorder.EvaluateOrder(context.Background(), h, order))
}

// must returns x: no error but the context's exists, and a context without an end has none.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// PlanMarginals is einsum.PlanMarginals.
func PlanMarginals(h contractionorder.Hypergraph, order []int) query.Cost {
	return must(einsum.PlanMarginals(context.Background(), h, order))
}
