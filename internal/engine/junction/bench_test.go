package junction_test

import (
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// BenchmarkQueries answers queries of Bayesian networks, each with five observations that were drawn from the network: P(e) and all
// marginals, one by one and 64 together. An operation is a query.
func BenchmarkQueries(b *testing.B) {
	for _, name := range []string{"alarm", "andes", "barley", "hailfinder", "hepar2", "mildew", "munin", "munin1", "pathfinder"} {
		m := reference.Read(b, "bn/"+name+".bif.gz")
		net := build(b, m, reparam.Options{})
		h, ok := junction.Shape(net)
		if !ok {
			b.Fatalf("%s has no tree", name)
		}
		plan, err := contractionorder.Search(b.Context(), h, contractionorder.Options{Moves: 1 << 24})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name+"/compile", func(b *testing.B) {
			for b.Loop() {
				if _, ok := junction.Compile(net, plan.Tree); !ok {
					b.Fatal("not compiled")
				}
			}
		})
		tree, _ := junction.Compile(net, plan.Tree)
		under := observed(b, m, net)
		for _, c := range []struct {
			name      string
			marginals bool
			together  int
		}{{"Z/alone", false, 1}, {"Z/together", false, len(under)}, {"marginals/alone", true, 1}, {"marginals/together", true, len(under)}} {
			queries := make([]junction.Query, len(under))
			for k := range queries {
				queries[k].Net = under[k]
				if c.marginals {
					queries[k].Marginals = make([]scaled.Number, values(m))
				}
			}
			b.Run(name+"/"+c.name, func(b *testing.B) {
				flops, at := 0.0, 0
				for n := 0; n < b.N; n += c.together {
					for _, a := range run(b, tree, queries[at:at+c.together]...) {
						flops += a.Flops
					}
					at = (at + c.together) % len(queries)
				}
				b.ReportMetric(flops/float64(b.N), "flops/op")
				b.ReportMetric(flops/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

// observed conditions a network on five variables of each of 64 samples.
func observed(b *testing.B, m *factorgraph.Model, net *btn.Network) (under []*btn.Network) {
	results, err := infer.Run(b.Context(), infer.Request{Model: m, Queries: []query.Query{{Samples: 64, Seed: 1}}})
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for _, sample := range results[0].Samples.Assignments {
		some := map[int]int{}
		for len(some) < 5 {
			v := rng.IntN(len(m.Domains))
			some[v] = sample[v]
		}
		given, err := net.Condition(factorgraph.Observe(some))
		if err != nil {
			b.Fatal(err)
		}
		under = append(under, given)
	}
	return under
}
