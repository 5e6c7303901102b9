package region

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestRegionEngine: where one region covers the network. Balls as large as the network are such.
func TestRegionEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (v enginetest.Value, err error) {
			e := p.Expression
			s, err := bp.Run(ctx, e, bp.Options{Tolerance: 1e-13})
			if err != nil {
				return v, err
			}
			f, err := Plan(ctx, e.Hypergraph(), Options{Kind: Balls, Size: len(e.Dims), Marginals: w.Marginals})
			if err != nil {
				return v, err
			}
			est, err := Run(ctx, e, s, f, w.Threads)
			if err != nil {
				return v, err
			}
			if est.Regions > 1 { // parts that hang together by a single index, each a region
				return v, enginetest.ErrDeclined
			}
			return enginetest.Value{Z: scaled.FromLog(est.LnZ), Marginals: p.ByVariable(est.Marginals)}, nil
		},
		Tolerance: 1e-9,
		Lacks: map[enginetest.Property]string{
			enginetest.Expressions: "indices of dimension 1 are in no scope of what lowering makes, and " +
				"no elimination order has them",
			enginetest.Joint:      "it has marginals of indices only",
			enginetest.Signs:      "ln of a region's Z is taken: estimates are of entries above 0",
			enginetest.Zeros:      "belief propagation may find a contradiction where Z is above 0",
			enginetest.Slices:     "families of regions are cut by region: see TestPartsDoNotChangeBits",
			enginetest.OverBudget: "regions are bounded by their width, not by memory: see Options.MaxWidth",
			enginetest.ZeroZ:      "a contradiction is found by belief propagation, before any region",
		},
	})
}
