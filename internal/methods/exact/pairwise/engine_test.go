package pairwise_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/internal/testing/orders"
)

// TestTreeEngine: along the tree of the min-fill order, and along random trees.
func TestTreeEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem,
			w enginetest.Want) (v enginetest.Value, err error) {
			h, rng := p.Expression.Hypergraph(), rand.New(rand.NewPCG(p.Seed, 1))
			tree := randomTree(rng, len(h.Edges))
			if p.Seed%2 == 0 || len(h.Edges) > 30 {
				if tree, err = contractionorder.FromOrder(h, orders.MinFill(h)); err != nil {
					return v, err
				}
			}
			o := pairwise.Options{Threads: w.Threads, Memory: w.Memory, From: w.From, To: w.To}
			if w.Sliced {
				o.Slices = randomSlices(rng, h.Dims)
			}
			plan, err := pairwise.Plan(h, tree, o.Slices)
			if err != nil {
				return v, err
			}
			v.Slices = int64(plan.Slices)
			if !w.Marginals {
				v.Z, _, err = pairwise.Contract(ctx, p.Expression, tree, o)
				return v, err
			}
			r, _, err := pairwise.Marginals(ctx, p.Expression, tree, o)
			v.Z, v.Marginals = r.Z, p.ByVariable(r.Marginals)
			return v, err
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint: "an expression with an index over the cells has them as " +
				"marginals of that index: see package exact",
		},
	})
}
