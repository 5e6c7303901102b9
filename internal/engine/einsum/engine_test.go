package einsum_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// orderFor is min-fill or any order.
func orderFor(p *enginetest.Problem, h contractionorder.Hypergraph) []int {
	if p.Seed%2 == 0 || len(h.Dims) > 20 {
		return orders.MinFill(h)
	}
	return contractionorder.RestrictOrder(rand.New(rand.NewPCG(p.Seed, 1)).Perm(len(h.Dims)), h)
}

func TestTableEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (enginetest.Value, error) {
			o, order := einsum.Options{Threads: w.Threads, Memory: w.Memory}, orderFor(p, p.Expression.Hypergraph())
			if !w.Marginals {
				z, _, err := einsum.Contract(ctx, p.Expression, order, o)
				return enginetest.Value{Z: z}, err
			}
			r, _, err := einsum.Marginals(ctx, p.Expression, order, o)
			if err != nil {
				return enginetest.Value{}, err
			}
			return enginetest.Value{Z: r.Z, Marginals: p.ByVariable(enginetest.Normalised(r.Z, r.Marginals))}, nil
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint:  "an expression with an index over the cells has them as marginals of that index",
			enginetest.Slices: "an elimination is not sliced",
		},
	})
}
