package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// hidden is a model of n weakly coupled spins with a switch (the last variable) that pulls all of them to one pattern: a wide
// mode and a narrow one, of about equal weight.
func hidden(t *testing.T, n int, seed uint64) *factorgraph.Model {
	t.Helper()
	m, err := generate.RandomRegular(n, 4, generate.Ising{Delta: 0.3, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 27))
	m.Domains = append(m.Domains, 2)
	lift := 0.73 + 0.03*r.NormFloat64()
	for i := range n {
		data := []float64{1, 1, math.Exp(lift - 7), math.Exp(lift - 7)}
		data[2+r.IntN(2)] = math.Exp(lift)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{n, i}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: data}})
	}
	return m
}

// TestNarrowModesAreNotMissed: chains from uniform draws alone never see the narrow mode, and stated a fiftieth of their
// error. ln Z, marginals and samples cover both modes.
func TestNarrowModesAreNotMissed(t *testing.T) {
	narrow, seeds := 0, nightly.Rounds(4, 6)
	for seed := range uint64(seeds) {
		m := hidden(t, 40, seed)
		ask := func(s query.Settings, q query.Query) query.Result {
			results, err := infer.Run(t.Context(), infer.Request{Job: "modes", Model: m, Queries: []query.Query{q}, Settings: s})
			if err != nil || results[0].LogZ == nil || results[0].Marginals == nil {
				t.Fatalf("seed %d: %v, %+v", seed, err, results)
			}
			return results[0]
		}
		exact := ask(query.Settings{Method: query.MethodExact}, query.Query{Marginals: true})
		share := exact.Marginals[40].P[1]
		if share > 0.05 {
			narrow++
		}
		within := query.Settings{Method: query.MethodSampled, Memory: 64 << 10, Budget: 3e8, Seed: seed}
		sampled := ask(within, query.Query{Marginals: true})
		drawn := ask(within, query.Query{Marginals: true, Samples: 300})
		within.Method, within.NoExact = query.MethodAuto, true
		for name, r := range map[string]query.Result{"sampled": sampled, "auto": ask(within, query.Query{Marginals: true}), "samples": drawn} {
			if r.Uncertainty == nil || math.Abs(*r.LogZ-*exact.LogZ) > 3**r.Uncertainty || *r.Uncertainty > 0.2 {
				t.Errorf("seed %d, %s: ln Z %v, uncertain by %v; want %v", seed, name, *r.LogZ, r.Uncertainty, *exact.LogZ)
			}
			off := math.Abs(r.Marginals[40].P[1] - share)
			if r.MarginalUncertainty == nil || off > 3**r.MarginalUncertainty || off > 0.05 {
				t.Errorf("seed %d, %s: the narrow mode has %v, uncertain by %v; want %v",
					seed, name, r.Marginals[40].P[1], r.MarginalUncertainty, share)
			}
		}
		weight, total := 0.0, 0.0
		for k, w := range drawn.Samples.Weights {
			total += w
			if drawn.Samples.Assignments[k][40] == 1 {
				weight += w
			}
		}
		if math.Abs(weight/total-share) > 0.15 {
			t.Errorf("seed %d: %v of the weight of samples is in the narrow mode, want %v", seed, weight/total, share)
		}
	}
	if 3*narrow < 2*seeds {
		t.Errorf("the narrow mode counts in %d of %d models", narrow, seeds)
	}
}
