package infer_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// findings is a network of diseases and of findings that are each a noisy-or of some of them.
func findings(t *testing.T, diseases, findings, causes int, seed uint64) *factorgraph.Model {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	m := &factorgraph.Model{}
	for d := range diseases {
		p := 0.3 * rng.Float64()
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{d}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1 - p, p}},
		})
	}
	for f := range findings {
		m.Domains = append(m.Domains, 2)
		scope := rng.Perm(diseases)[:causes]
		var activate []float64
		for range causes {
			activate = append(activate, rng.Float64())
		}
		or, err := factorgraph.NoisyOr(0.05*rng.Float64(), activate...)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: append(scope, diseases+f), Table: or})
	}
	return m
}

// logZ answers one query.
func logZ(t *testing.T, m *factorgraph.Model, q query.Query) query.Result {
	t.Helper()
	results, err := infer.Run(t.Context(), infer.Request{Job: "summed", Model: m, Queries: []query.Query{q}})
	if err != nil {
		t.Fatal(err)
	}
	if results[0].LogZ == nil || !results[0].Exact {
		t.Fatalf("%+v", results[0])
	}
	return results[0]
}

// Unobserved findings cost one look each if Z alone is asked for: they sum to 1.
func TestUnobservedEffectsTakeOneLook(t *testing.T) {
	const diseases, all, observed = 60, 300, 8
	m := findings(t, diseases, all, 30, 1)
	few := &factorgraph.Model{Domains: m.Domains[:diseases+observed], Factors: m.Factors[:diseases+observed]}
	values := map[int]int{}
	for f := range observed {
		values[diseases+f] = f % 2
	}
	q := query.Query{Evidence: factorgraph.Observe(values)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := logZ(t, m, q)
	runtime.ReadMemStats(&after)
	want := logZ(t, few, q)
	if off := math.Abs(*got.LogZ - *want.LogZ); off > 1e-9 {
		t.Errorf("ln Z %v, want %v", *got.LogZ, *want.LogZ)
	}
	// Chains and circuits of all findings would allocate hundreds of megabytes.
	entries := uint64((all - observed) * 2 * 31)
	if made := after.TotalAlloc - before.TotalAlloc; made > 10_000*entries {
		t.Errorf("%d bytes were made for %d entries that nobody asked for", made, entries)
	}
}

// Z and marginals are right under hard and soft evidence, also where Z alone is asked for.
func TestEffectsThatAreSummedOut(t *testing.T) {
	for seed := range uint64(12) {
		const diseases, all = 8, 6
		m := findings(t, diseases, all, 3+int(seed%3), 100+seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		var e factorgraph.Evidence
		for v := range m.Domains {
			switch rng.IntN(5) {
			case 0:
				e.Hard = append(e.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(2)})
			case 1:
				e.Soft = append(e.Soft, factorgraph.Likelihood{Var: v, Weights: []float64{rng.Float64(), 1}})
			}
		}
		want, _ := oracle.LogZ(m, e)
		for _, marginals := range []bool{false, true} {
			got := logZ(t, m, query.Query{Evidence: e, Marginals: marginals})
			if off := math.Abs(*got.LogZ - want); off > 1e-11*(1+math.Abs(want)) {
				t.Errorf("seed %d, marginals %v: ln Z %v, want %v", seed, marginals, *got.LogZ, want)
			}
			if !marginals {
				continue
			}
			for v, p := range oracle.Marginals(m, e) {
				for x := range p {
					if math.Abs(got.Marginals[v].P[x]-p[x]) > 1e-10 {
						t.Errorf("seed %d: P(%d = %d) is %v, want %v", seed, v, x, got.Marginals[v].P[x], p[x])
					}
				}
			}
		}
	}
}
