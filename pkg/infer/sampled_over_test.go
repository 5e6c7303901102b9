package infer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestSampledEventsAndTargets holds P(event | evidence) and the marginals of targets by sampled components against brute force: within
// the stated uncertainty, and never above 1. Questions beyond such components are refused.
func TestSampledEventsAndTargets(t *testing.T) {
	wrong, tested := 0, 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 37))
		m := &factorgraph.Model{Domains: []int{2, 2, 3, 2, 2, 2, 2, 2}}
		for i := range m.Domains {
			for j := range i {
				table := &tensor.Dense{Shape: []int{m.Domains[j], m.Domains[i]}}
				for range m.Domains[j] * m.Domains[i] {
					table.Data = append(table.Data, math.Exp(0.7*rng.NormFloat64()))
				}
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{j, i}, Table: table})
			}
		}
		given := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 6, Weights: []float64{0.5, 3}}}}
		event := factorgraph.Evidence{Soft: given.Soft, Hard: []factorgraph.Observation{{Var: 3, Value: int(seed % 2)}}}
		results, err := infer.Run(context.Background(), infer.Request{
			Job: "t", Model: m, Settings: query.Settings{Method: query.MethodSampled, Budget: 1e7, Seed: seed},
			Queries: []query.Query{
				{Evidence: given, Marginals: true, Targets: []int{5, 2}}, {Evidence: event, Over: 1}, {Evidence: given, MPE: true, Samples: 3},
			},
		})

		if err != nil {
			t.Fatal(err)
		}
		r, over := results[0], results[1]
		if r.Status != query.StatusOK || over.Status != query.StatusOK || over.Ratio == nil || *over.Ratio.Ln > 0 {
			t.Fatalf("seed %d: %+v, %+v, ratio %v", seed, r.Error, over.Error, over.Ratio)
		}
		if e := results[2].Error; e == nil || e.Code != "unsupported" {
			t.Fatalf("seed %d: the most probable explanation: %+v", seed, e)
		}
		if len(r.Marginals) != 2 ||
			r.Marginals[0].Variable != 5 || r.Marginals[1].Variable != 2 || r.MarginalUncertainty == nil || *r.MarginalUncertainty > 1 {
			t.Fatalf("seed %d: marginals %+v, uncertainty %v", seed, r.Marginals, r.MarginalUncertainty)
		}
		tested += 2
		all := oracle.Marginals(m, given)
		p := all[3][seed%2]
		if math.Abs(*over.Ratio.Ln-math.Log(p)) > 1.5*(*r.Uncertainty+*over.Uncertainty) {
			wrong++
		}
		worst := 0.0
		for _, posterior := range r.Marginals {
			for x, p := range all[posterior.Variable] {
				worst = max(worst, math.Abs(posterior.P[x]-p))
			}
		}
		if worst > 1.5**r.MarginalUncertainty {
			wrong++
		}
	}
	if wrong > tested/20 {
		t.Errorf("%d of %d are further off than one and a half times what is stated", wrong, tested)
	}
}
