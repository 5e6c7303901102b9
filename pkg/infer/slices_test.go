package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// independentSets is the hard-core model of n vertices with three neighbours each, some edges twice, of a fugacity.
func independentSets(rng *rand.Rand, n int, fugacity float64) *factorgraph.Model {
	m := &factorgraph.Model{}
	for range n {
		m.Domains = append(m.Domains, 2)
	}
	for v := range n {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, fugacity}}})
	}
	for range 3 {
		ends := rng.Perm(n)
		for k := 0; k < n; k += 2 {
			m.Factors = append(m.Factors, factorgraph.Factor{
				Scope: []int{ends[k], ends[k+1]}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 1, 1, 0}},
			})
		}
	}
	return m
}

// TestSlicesAreChosenWhereTheyAreBest: independent sets of sparse graphs, against elimination; statements hold, and marginals are near.
func TestSlicesAreChosenWhereTheyAreBest(t *testing.T) {
	chosen := 0
	for seed := range uint64(3) {
		m := independentSets(rand.New(rand.NewPCG(seed, 7)), 120, []float64{1, 3}[seed%2])
		q := []query.Query{{Marginals: true}}
		exact, err := Run(context.Background(), Request{Job: "e", Model: m, Queries: q, Settings: query.Settings{Method: query.MethodExact}})
		if err != nil || !exact[0].Exact {
			t.Fatalf("seed %d: %v, %+v", seed, err, exact[0].Error)
		}
		results, err := Run(context.Background(), Request{
			Job: "t", Model: m, Queries: q, Settings: query.Settings{Method: query.MethodSampled, Budget: 2e9, Seed: seed},
		})

		if err != nil {
			t.Fatal(err)
		}
		r, want := results[0], *exact[0].LogZ
		if r.Status != query.StatusOK || len(r.Estimates) == 0 {
			t.Fatalf("seed %d: %+v", seed, r.Error)
		}
		last := r.Estimates[len(r.Estimates)-1]
		if last.Kind == string(sampled.BySlices) {
			chosen++
		}
		if r.Bounds == nil || *r.Bounds.Lower > want || *r.Bounds.Upper < want {
			t.Errorf("seed %d: bounds %+v, ln Z %v", seed, r.Bounds, want)
		}
		if math.Abs(*r.LogZ-want) > 3**r.Uncertainty {
			t.Errorf("seed %d: ln Z %v ± %v, want %v", seed, *r.LogZ, *r.Uncertainty, want)
		}
		for v, row := range r.Marginals {
			for a, x := range row.P {
				if math.Abs(x-exact[0].Marginals[v].P[a]) > 3**r.MarginalUncertainty {
					t.Errorf("seed %d: P(%d = %d) is %v ± %v, want %v", seed, v, a, x, *r.MarginalUncertainty, exact[0].Marginals[v].P[a])
				}
			}
		}
	}
	if chosen < 1 {
		t.Errorf("slices are chosen on %d of 3 models", chosen)
	}
}
