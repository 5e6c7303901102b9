package einsum

// Derivatives by tables of the expression: all of them from one pass forth and one back.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Derivatives are the derivatives of a value by tables of its expression: ∂Z/∂Tables[t][k] = By[t][k]·2^Exp[t]. By[t] is nil
// for tables whose derivative was not wanted, and where all of it is 0.
type Derivatives struct {
	Z         scaled.Number
	By        [][]float64
	Exp       []int64
	Marginals [][]scaled.Number // as of Result; nil unless asked for
}

// Differentiate returns the value of e along order and its derivatives by the entries of the tables that wanted names, entries
// of 0 included, and all marginals where they are asked for. It is the pass back of Marginals, led on to those tables. Nothing
// is divided by. Stats.Lost says that an entry of a derivative, however small beside others, may lack terms.
//
// Errors: as Marginals. Cost: PlanDerivatives, and the derivatives that are returned.
func Differentiate(
	ctx context.Context, e *sumproduct.Expression, order []int, wanted []bool, marginals bool, o Options,
) (Derivatives, Stats, error) {
	return both(ctx, e, order, wanted, marginals, o)
}

// PlanDerivatives prices Differentiate, except for its result. The only error is the context's.
func PlanDerivatives(
	ctx context.Context, h contractionorder.Hypergraph, order []int, wanted []bool, marginals bool,
) (btn.Cost, error) {
	plan, err := contractionorder.EvaluateOrder(ctx, h, order)
	if err != nil || plan.Log2Table >= hopeless {
		return plan, err
	}
	t, err := newTape(ctx, h, order, scaled.One)
	if err != nil {
		return btn.Cost{}, err
	}
	t.want(wanted, marginals)
	return t.plan(), nil
}
