package wide_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/wide"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
)

func TestWideEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (enginetest.Value, error) {
			e, err := lower.BuildWide(ctx, p.Network)
			if err != nil {
				return enginetest.Value{}, err
			}
			p.Expression = e
			r, err := wide.Contract(ctx, e, wide.Options{Memory: w.Memory, Marginals: w.Marginals})
			return enginetest.Value{Z: r.Z, Marginals: p.ByVariable(enginetest.Normalised(r.Z, r.Marginals))}, err
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Joint:       "an expression with an index over the cells has them as marginals of that index",
			enginetest.Expressions: "it contracts what lower.BuildWide makes of networks",
			enginetest.Zeros: "a map and its inverse leave dust where the model has zeros, and wide " +
				"numbers keep it: see TestAgainstExactSums",
			enginetest.Slices:  "an elimination is not sliced",
			enginetest.Threads: "it runs in one goroutine",
		},
	})
}
