package stage

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLikelihoodsBeyondFloat64: where the products of weights and likelihoods leave float64, plans are made for the network with the
// likelihoods as tensors of their own, pass as messages, and are contracted for it.
func TestLikelihoodsBeyondFloat64(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 3}, Factors: []factorgraph.Factor{
		{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1e200, 1e-200}}},
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}},
		{Scope: []int{1, 2}, Table: &tensor.Dense{Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}}},
	}}
	evidence := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 2, Value: 1}},
		Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{1e-200, 3e-200}}, {Var: 2, Weights: []float64{1, 0.5, 2}}},
	}
	// Z = (1·2 + 2·5)·1/2 and terms of 1e-400 of it
	far := factorgraph.Evidence{
		Hard: evidence.Hard, Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{1e-300, 3e300}}, evidence.Soft[1]},
	}
	// 1e-100·6 + 3e100·(3·2 + 4·5)/2
	queries := []query.Query{
		{Evidence: far}, {Evidence: far, Marginals: true}, {Evidence: far, MPE: true, Map: []int{1}, Samples: 3},
		{Evidence: far, Joint: []int{0, 1}},
		{Evidence: evidence}, {Evidence: far, Gradients: true}, {Evidence: far, Sensitivity: &query.Sensitivity{Variable: 1, Value: 1}},
	}
	for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
		s := query.Settings{Cores: cores}
		queries := queries
		if cores == query.CoresAreVariables {
			queries = queries[:5]
		}
		net, err := ReparameteriseFor(t.Context(), m, s, queries)
		if err != nil {
			t.Fatal(err)
		}
		assignments, err := Learn(t.Context(), net, queries, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := message.EncodeAssignments(assignments)
		if err != nil {
			t.Fatal(err)
		}
		if assignments, err = message.DecodeAssignments(blob); err != nil {
			t.Fatal(err)
		}
		if err := message.CheckAssignments(net, assignments); err != nil {
			t.Fatal(err)
		}
		for q, r := range Aggregate("", assignments, contracted(t, net, assignments, queries)) {
			want := math.Log(3e100 * 13)
			if q == 4 {
				want = math.Log(6)
			}
			if r.Error != nil || !r.Exact || math.Abs(*r.LogZ-want) > 1e-11 {
				t.Fatalf("cores %s, query %d: ln Z %v, want %v: %+v", cores, q, r.LogZ, want, r.Error)
			}
			if p := r.Marginals; p != nil && (math.Abs(p[0].P[1]-1) > 1e-12 || math.Abs(p[1].P[1]-20.0/26) > 1e-12) {
				t.Errorf("cores %s: marginals %v", cores, p)
			}
			if r.Joint != nil && math.Abs(r.Joint.P[3]-20.0/26) > 1e-12 {
				t.Errorf("cores %s: %v", cores, r.Joint)
			}
			if queries[q].MPE && (r.MPE.Assignment[0] != 1 || r.MPE.Assignment[1] != 1 || r.Map.Assignment[0] != 1 ||
				len(r.Samples.Assignments) != 3) {
				t.Errorf("cores %s: %+v %+v", cores, r.MPE, r.Map)
			}
			if queries[q].Gradients && (len(r.Gradients.By) != 3 || math.Abs(r.Gradients.By[0][1]*1e-200-1) > 1e-12 ||
				math.Abs(r.Gradients.By[1][3]*4-20.0/26) > 1e-12) {
				t.Errorf("cores %s: gradients %v", cores, r.Gradients)
			}
			if queries[q].Sensitivity != nil && (len(r.Sensitivity.Derivatives.By) != 3 || math.Abs(r.Sensitivity.P-20.0/26) > 1e-12) {
				t.Errorf("cores %s: %+v", cores, r.Sensitivity)
			}
		}
	}
}
