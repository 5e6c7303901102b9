package infer_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestRareDiseases: findings that are there and have rare causes alone, whose two terms each agree in their first digits, some that
// are not there, and clauses beside them: no digit is lost, of Z or of a marginal.
func TestRareDiseases(t *testing.T) {
	const diseases, findings, there = 10, 5, 3
	rng := rand.New(rand.NewPCG(3, 9))
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, diseases+findings)}
	for v := range diseases {
		p := 1e-6 * rng.Float64()
		table, err := factorgraph.Table([]int{2}, []float64{1 - p, p})
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: table})
	}
	var q query.Query
	q.Marginals = true
	for f := range findings {
		p := make([]float64, 9)
		for i := range p {
			p[i] = rng.Float64()
		}
		or, err := factorgraph.NoisyOr(0, p...)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: append(rng.Perm(diseases)[:9], diseases+f), Table: or})
		x := 0
		if f < there {
			x = 1
		}
		q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: diseases + f, Value: x})
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(diseases)[:9],
		Table: factorgraph.Clause(slices.Repeat([]bool{true}, 9)...)})

	results, err := infer.Run(context.Background(), infer.Request{Model: m, Queries: []query.Query{q}})
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	want := oracle.Ln(oracle.Z(m, q.Evidence))
	if r.Status != query.StatusOK || !r.Exact || math.Abs(*r.LogZ-want) > 1e-13*math.Abs(want) ||
		r.CancellationDigits != nil && *r.CancellationDigits != 0 {
		t.Fatalf("%+v, ln Z %v, want %v, %v digits cancelled", r.Error, *r.LogZ, want, *r.CancellationDigits)
	}
	for v, row := range oracle.Marginals(m, q.Evidence) {
		for x, p := range row {
			if math.Abs(r.Marginals[v].P[x]-p) > 1e-13 {
				t.Errorf("P(x_%d = %d) is %v, want %v", v, x, r.Marginals[v].P[x], p)
			}
		}
	}
}
