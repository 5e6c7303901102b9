package infer_test

import (
	"math"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/generate"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/learn"
)

// TestBetheRungIsTheValueOfBeliefPropagation: without time for regions the answer is what belief propagation says, with marginals, and
// nothing is stated of its quality.
func TestBetheRungIsTheValueOfBeliefPropagation(t *testing.T) {
	m, err := generate.Grid(6, 6, generate.Ising{Delta: 0.2, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := btn.Settings{Method: btn.MethodRegions}
	net, err := infer.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	queries := []infer.Query{{Marginals: true}}
	job, err := infer.Learn(learn.PlanUntil(t.Context(), time.Now().Add(-time.Second)), net, queries, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	chunks, _ := infer.Chunks(net, job)
	values, err := infer.Contract(t.Context(), net, job, queries, chunks[len(chunks)-1], infer.ContractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := infer.Aggregate("j", job, nil, values)[0]
	if r.Status != "ok" || r.LogZ == nil || r.Propagation == nil || *r.LogZ != *r.Propagation.LogZ || r.Uncertainty != nil || r.Exact {
		t.Fatalf("%+v", r)
	}
	exact, err := infer.Run(t.Context(), infer.Request{Model: m, Queries: queries}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := math.Abs(*exact[0].LogZ - *r.LogZ); d > 0.005 {
		t.Errorf("ln Z is off by %v", d)
	}
	for v, row := range exact[0].Marginals {
		for x, p := range row {
			if math.Abs(p-r.Marginals[v][x]) > 0.01 {
				t.Errorf("P(x_%d = %d) = %v, exactly %v", v, x, r.Marginals[v][x], p)
			}
		}
	}
}
