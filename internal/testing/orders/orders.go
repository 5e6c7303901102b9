// Package orders finds and prices elimination orders for tests and examples, without a context or errors.
package orders

import (
	"context"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/query"
)

// MinFill returns the elimination order of contractionorder.MinFill: next is always the variable that adds the fewest edges.
func MinFill(h contractionorder.Hypergraph) []int {
	return valueOf(contractionorder.MinFill(context.Background(), h))
}

// MinWeight returns the elimination order of contractionorder.MinWeight: next is always the variable whose table is smallest.
func MinWeight(h contractionorder.Hypergraph) []int {
	return valueOf(contractionorder.MinWeight(context.Background(), h))
}

// Best returns the elimination order that contractionorder.Best finds cheapest.
func Best(h contractionorder.Hypergraph) []int {
	order, _, err := contractionorder.Best(context.Background(), h)
	return valueOf(order, err)
}

// Evaluate returns the cost of elimination along this order, by contractionorder.EvaluateOrder.
func Evaluate(h contractionorder.Hypergraph, order []int) query.Cost {
	return valueOf(contractionorder.EvaluateOrder(context.Background(), h, order))
}

// valueOf returns x, and panics if err is not nil. Functions of this package have no error but the end of their context, which never ends.
func valueOf[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// PlanMarginals returns the cost of all marginals by elimination along this order, by einsum.PlanMarginals.
func PlanMarginals(h contractionorder.Hypergraph, order []int) query.Cost {
	return valueOf(einsum.PlanMarginals(context.Background(), h, order))
}
