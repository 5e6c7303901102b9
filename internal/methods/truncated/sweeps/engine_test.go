package sweeps

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/enginetest"
)

// TestSweepEngine: with bonds that truncate nothing,
// along the plan of Search and along any order and places.
func TestSweepEngine(t *testing.T) {
	const bond = 1 << 20
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem,
			w enginetest.Want) (v enginetest.Value, err error) {
			h := p.Expression.Hypergraph()
			plan := randomPlan(rand.New(rand.NewPCG(p.Seed, 1)), h)
			if p.Seed%2 == 0 || len(h.Dims) > 12 {
				if plan, _, err = Search(ctx, h,
					SearchOptions{Bond: bond, Seed: p.Seed, Memory: w.Memory,
						Moves: 1 << 12}); err != nil {
					return v, err
				}
			}
			got, err := Contract(ctx, p.Expression, plan,
				Options{Bond: bond, Memory: w.Memory, Marginals: w.Marginals})
			return enginetest.Value{Z: got.Z, Marginals: p.ByVariable(got.Marginals)}, err
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint:   "it has marginals of indices only",
			enginetest.Slices:  "a sweep is not sliced: bonds are truncated instead",
			enginetest.Threads: "it runs in one goroutine",
		},
	})
}
