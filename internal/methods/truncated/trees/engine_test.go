package trees_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
)

// TestCompressedEngine: with bonds that truncate nothing, along the tree that Search finds and along random ones.
func TestCompressedEngine(t *testing.T) {
	const bond = 1 << 20
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (v enginetest.Value, err error) {
			h := p.Expression.Hypergraph()
			plan, _, err := trees.Search(ctx, h, trees.SearchOptions{Bond: bond, Seed: p.Seed, Memory: w.Memory, Moves: 1 << 20})
			if err != nil {
				return v, err
			}
			if more := trees.Attempts(h, 4, p.Seed, 1); p.Seed%2 == 1 && len(more) > 0 && len(h.Edges) < 30 {
				plan = more[0]
			}
			got, err := trees.Contract(ctx, p.Expression, plan, trees.Options{Bond: bond, Memory: w.Memory, Marginals: w.Marginals})
			if err == nil && got.Truncated {
				t.Errorf("seed %d: something was truncated", p.Seed)
			}
			return enginetest.Value{Z: got.Z, Marginals: p.ByVariable(got.Marginals)}, err
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint: "it has marginals of indices only",
			enginetest.Slices: "a compressed contraction is not sliced: wires are truncated " +
				"instead",
			enginetest.Threads: "it runs in one goroutine",
		},
	})
}
