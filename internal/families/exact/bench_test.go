package exact_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// BenchmarkWhole compares three ways to the marginals of models in between: along an elimination
// order, and along a tree over the network as it is, or simplified. Search and simplification are
// apart from the contraction.
func BenchmarkWhole(b *testing.B) {
	ctx := context.Background()
	for _, name := range []string{"Segmentation_11", "Segmentation_15", "Alchemy_11", "Pedigree_11"} {
		net := reference.Network(b, "uai/"+name)
		e, err := lower.Build(ctx, net)
		if err != nil {
			b.Fatal(err)
		}
		order := orders.Best(e.Hypergraph())
		b.Run(name+"/order", func(b *testing.B) {
			for b.Loop() {
				_, stats, err := einsum.Marginals(ctx, e, order, einsum.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(stats.Flops, "flops")
			}
		})

		for kind, prepare := range map[string]func() (*exact.Prepared, error){
			"whole":      func() (*exact.Prepared, error) { return exact.Whole(ctx, net, true) },
			"simplified": func() (*exact.Prepared, error) { return exact.Prepare(ctx, net, true) },
		} {
			p, err := prepare()
			if err != nil {
				b.Fatal(err)
			}
			tree, cost, err := p.Plan(ctx, 0, 0)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(name+"/"+kind+"/plan", func(b *testing.B) {
				for b.Loop() {
					if p, err = prepare(); err == nil {
						_, _, err = p.Plan(ctx, 0, 0)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/"+kind+"/contract", func(b *testing.B) {
				for b.Loop() {
					if _, err := p.Answer(ctx, tree, exact.Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(cost.Flops, "flops")
			})
		}
	}
}
