package infer

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ask answers one query of a model.
func ask(t *testing.T, m *factorgraph.Model, q query.Query, s query.Settings) query.Result {
	t.Helper()
	results, err := Run(t.Context(),
		Request{Job: "t", Model: m, Queries: []query.Query{q}, Settings: s})

	if err != nil {
		t.Fatal(err)
	}
	if results[0].Status != "ok" {
		t.Fatalf("%+v: %+v", s, results[0].Error)
	}
	return results[0]
}

// Estimates with marginals, under evidence, with slices: within their stated uncertainty of the exact answer.
func TestApproximateAnswersHoldWhatTheyState(t *testing.T) {
	grid, err := generate.Grid(9, 9, generate.Ising{Delta: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	regular, err := generate.RandomRegular(36, 3, generate.Ising{Delta: 0.7, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := generate.Random(generate.RandomOptions{Variables: 24, Strength: 0.6, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*factorgraph.Model{"grid": grid, "regular": regular,
		"random arity 3": mixed} {
		for _, evidence := range []factorgraph.Evidence{{},
			factorgraph.Observe(map[int]int{3: 1, 17: 0, 20: 1})} {
			q := query.Query{Evidence: evidence, Marginals: true}
			want := ask(t, m, q, query.Settings{Method: query.MethodExact})
			for _, s := range []query.Settings{
				{Method: query.MethodTruncated, Budget: 1e9},
				{Method: query.MethodTruncated, Budget: 1e8, Memory: 1 << 18},
				{Method: query.MethodRegions, Budget: 2e8},
			} {
				r := ask(t, m, q, s)
				if r.Exact {
					continue // nothing was left to approximate
				}
				if r.Uncertainty == nil || math.Abs(*r.LogZ-*want.LogZ) > 3**r.Uncertainty+1e-9 {
					t.Errorf("%s, %+v: ln Z %v, want %v, stated %v: %+v",
						name, s, *r.LogZ, *want.LogZ, r.Uncertainty, r.Estimates)
				}
				for v := range r.Marginals {
					for a, p := range r.Marginals[v].P {
						if math.Abs(p-want.Marginals[v].P[a]) > 0.02 {
							t.Errorf("%s, %+v: P(x_%d = %d) is %v, want %v",
								name, s, v, a, p, want.Marginals[v].P[a])
						}
					}
				}
			}
		}
	}
}

// A network that simplification splits in two, or one without a cycle, is exact by any method.
func TestNothingToApproximateIsExact(t *testing.T) {
	chain := &factorgraph.Model{Domains: []int{2, 3, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 3},
			Data: []float64{1, 2, 3, 4, 5, 6}}},
		{Scope: []int{1, 2}, Table: &tensor.Dense{Shape: []int{3, 2},
			Data: []float64{1, 0.5, 2, 1, 1, 3}}},
	}}
	want := ask(t, chain, query.Query{}, query.Settings{Method: query.MethodExact})
	for _, method := range []query.Method{query.MethodTruncated, query.MethodRegions} {
		r := ask(t, chain, query.Query{Marginals: true}, query.Settings{Method: method})
		if !r.Exact || math.Abs(*r.LogZ-*want.LogZ) > 1e-12 || r.Marginals == nil {
			t.Errorf("%s on a chain: %+v", method, r)
		}
	}
	// Evidence that contradicts the model is Z = 0, with its reason, and no failed estimate.
	equal := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, scope := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		equal.Factors = append(
			equal.Factors,
			factorgraph.Factor{Scope: scope,
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}},
		)
	}
	for _, method := range []query.Method{query.MethodTruncated, query.MethodRegions} {
		r := ask(t, equal, query.Query{Evidence: factorgraph.Observe(map[int]int{0: 0, 2: 1})},
			query.Settings{Method: method})
		if !r.Zero || len(r.Warnings) == 0 {
			t.Errorf("%s under impossible evidence: %+v", method, r)
		}
	}
}

// Queries under other evidence share the model's plans,
// whichever comes first, and their answers have the bits of one asked alone.
func TestPlansOfTheModelServeOtherEvidence(t *testing.T) {
	m, err := generate.Grid(10, 10, generate.Ising{Delta: 1, Attractive: true, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	s := query.Settings{Method: query.MethodTruncated, Memory: 1 << 18, Budget: 1e8}
	queries := []query.Query{
		{}, {Evidence: factorgraph.Observe(map[int]int{44: 1})},
		{Evidence: factorgraph.Observe(map[int]int{0: 0, 99: 1, 50: 0})},
	}
	alone := make([]query.Result, len(queries))
	for i, q := range queries {
		alone[i] = ask(t, m, q, s)
	}
	backwards := []query.Query{queries[2], queries[1], queries[0]}
	together, err := Run(t.Context(), Request{Job: "t", Model: m, Queries: backwards, Settings: s})

	if err != nil {
		t.Fatal(err)
	}
	for i := range queries {
		got, want := together[len(queries)-1-i], alone[i]
		if math.Float64bits(*got.LogZ) != math.Float64bits(*want.LogZ) ||
			len(got.Estimates) != len(want.Estimates) {
			t.Errorf("query %d: %v together, %v alone", i, *got.LogZ, *want.LogZ)
		}
	}
	net, err := stage.Reparameterise(context.Background(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	assignments, err := stage.Learn(t.Context(), net, queries, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range assignments {
		if a.Plan != assignments[0].Plan {
			t.Errorf("query %d does not share the model's plan", i)
		}
		for k := range a.Plan.PartCount() {
			if p, _ := a.Plan.Part(k); !p.(*truncated.Truncated).Plan.Masked {
				t.Errorf("query %d: part %d is not of the model without evidence", i, k)
			}
		}
	}
}

// Slices of an estimate with truncated legs add up to the estimate without slices,
// marginals by their weights (Lemma 5).
func TestLemma5SlicesOfTruncatedLegs(t *testing.T) {
	m, err := generate.Grid(6, 6, generate.Ising{Delta: 1, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	q := query.Query{Evidence: factorgraph.Observe(map[int]int{2: 1}), Marginals: true}
	want := ask(t, m, q, query.Settings{Method: query.MethodExact})
	net, err := stage.Reparameterise(context.Background(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	assignments, err := stage.Learn(
		t.Context(), net, []query.Query{q}, query.Settings{Method: query.MethodTruncated,
			Memory: 1 << 17, Budget: 1e8}, nil, nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	p := *assignments[0].Plan
	e := p.Estimates[len(p.Estimates)-1]
	along := e.Parts[0].(*truncated.Truncated).Plan
	e.Slices, e.Parts = 8, nil
	var units []btn.Unit
	for s := range 8 {
		e.Parts = append(e.Parts,
			&truncated.Truncated{Plan: along, Bond: 64,
				Slice: btn.Slice{Variables: []int{20, 14, 2}, At: int64(s)}})
		units = append(units, btn.Unit{Part: s})
	}
	p.Estimates = []btn.Estimate{e}
	assignments[0].Plan = &p
	values, err := stage.Contract(t.Context(), net, assignments, stage.Demands(net, []query.Query{q}), units,
		stage.ContractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := stage.Aggregate("t", assignments, values)[0]
	if got.Status != "ok" || math.Abs(*got.LogZ-*want.LogZ) > 1e-9 {
		t.Fatalf("ln Z %v, want %v: %+v", got.LogZ, *want.LogZ, got.Error)
	}
	for v := range want.Marginals {
		for a := range want.Marginals[v].P {
			if math.Abs(got.Marginals[v].P[a]-want.Marginals[v].P[a]) > 1e-8 {
				t.Errorf("P(x_%d = %d) is %v in slices, %v exactly",
					v, a, got.Marginals[v].P[a], want.Marginals[v].P[a])
			}
		}
	}
	impossible := 0
	for _, v := range values {
		if v.Value.Z.IsZero() {
			impossible++
		}
	}
	if impossible != 4 {
		t.Errorf("%d slices contradict the evidence, 4 do", impossible)
	}
}
