package stage

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestEstimatesBehindAnExactPlan: where the exact plan has a value it is the answer, where it has none the estimates behind it go on, and
// where the model is at fault that is the answer.
func TestEstimatesBehindAnExactPlan(t *testing.T) {
	m, err := generate.Grid(13, 13, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	queries := []query.Query{{}}
	s := query.Settings{NoExact: true, Budget: 1e6}
	net, err := Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	assignments, err := Learn(t.Context(), net, queries, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	exactly, err := Learn(t.Context(), net, queries, query.Settings{Method: query.MethodExact}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := *assignments[0].Plan
	plan.Estimates = slices.Insert(slices.Clone(plan.Estimates), 1, exactly[0].Plan.Estimates[0])
	assignments[0].Plan = &plan
	if err := message.CheckAssignments(net, assignments); err != nil {
		t.Fatal(err)
	}

	chunks, _ := Chunks(net, assignments)
	var values []btn.UnitValue
	for _, units := range chunks {
		some, err := Contract(t.Context(), net, assignments, Demands(net, queries), units, ContractOptions{Memory: s.WithDefaults().Memory})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, some...)
	}
	want := *Aggregate("", exactly, contracted(t, net, exactly, queries))[0].LogZ
	if r := Aggregate("", assignments, values)[0]; !r.Exact || *r.LogZ != want || !Settled(assignments, values) {
		t.Errorf("ln Z %v, want %v: %+v", r.LogZ, want, r)
	}

	at := len(plan.Estimates[0].Parts)
	for i := range values {
		if values[i].Part == at {
			values[i].Value = btn.Value{}
			values[i].Error = &query.ErrorInfo{Code: fault.OverBudget, Message: "no digit is known", Stage: query.StageContract}
		}
	}
	r := Aggregate("", assignments, values)[0]
	if r.Error != nil || r.Exact || math.Abs(*r.LogZ-want) > 1 || !strings.Contains(strings.Join(r.Warnings, "\n"), "no digit is known") {
		t.Errorf("without a value: %+v, ln Z %v, want %v, %q", r.Error, r.LogZ, want, r.Warnings)
	}
	for i := range values {
		if values[i].Error != nil {
			values[i].Error.Code = fault.BadInput
		}
	}
	if r := Aggregate("", assignments, values)[0]; r.Error == nil || r.Error.Code != fault.BadInput {
		t.Errorf("a model at fault: %+v", r)
	}
}

// contracted returns the values of all parts.
func contracted(t *testing.T, net *btn.Network, assignments []btn.Assignment, queries []query.Query) (values []btn.UnitValue) {
	t.Helper()
	chunks, _ := Chunks(net, assignments)
	for _, units := range chunks {
		some, err := Contract(t.Context(), net, assignments, Demands(net, queries), units, ContractOptions{Memory: query.DefaultMemory})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, some...)
	}
	return values
}

// formula draws clauses in CP form, which have terms of both signs, over all variables but one each.
func formula(rng *rand.Rand, n, clauses int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for v := range n {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.3, 0.7}}})
	}
	for range clauses {
		scope := rng.Perm(n)[:n-1]
		positive := make([]bool, len(scope))
		for k := range positive {
			positive[k] = rng.IntN(5) == 0
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: factorgraph.Clause(positive...)})
	}
	return m
}

// TestSampledFormulas: components are sampled of formulas whose long clauses have terms of both signs.
func TestSampledFormulas(t *testing.T) {
	m := formula(rand.New(rand.NewPCG(1, 5)), 12, 9)
	z, _ := oracle.Z(m, factorgraph.Evidence{}).Float64()
	results, err := Run(t.Context(), Request{Model: m, Queries: []query.Query{{}},
		Settings: query.Settings{Method: query.MethodSampled, Budget: 1e7}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if r.Error != nil || math.Abs(*r.LogZ-math.Log(z)) > 0.1 {
		t.Errorf("ln Z %v, want %v: %+v", r.LogZ, math.Log(z), r.Error)
	}
}

// TestNoNumberWithoutADigit: factors that are the difference of two nearly equal products lose more digits together than float64 has.
// With any memory the answer is exact, or there is none: never a number of which no digit is certain.
func TestNoNumberWithoutADigit(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	const n = 9
	m := &factorgraph.Model{Domains: slices.Repeat([]int{3}, n)}
	for k := range 7 {
		scope := []int{k, (k + 2) % n, (k + 5) % n}
		f := &tensor.CP{Shape: []int{3, 3, 3}, Weights: []float64{1, -1}}
		for range scope {
			a, b := make([]float64, 3), make([]float64, 3)
			for x := range a {
				a[x] = 0.5 + rng.Float64()
				b[x] = a[x] * (1 - 1e-4*rng.Float64())
			}
			f.Vectors = append(f.Vectors, append(a, b...))
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: f})
	}
	z, _ := oracle.Z(m, factorgraph.Evidence{}).Float64()
	none := 0
	for memory := int64(1 << 8); memory <= 1<<22; memory += memory / 4 {
		results, err := Run(t.Context(), Request{Model: m, Queries: []query.Query{{}},
			Settings: query.Settings{Method: query.MethodExact, Memory: memory}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		switch {
		case r.Error == nil && math.Abs(*r.LogZ-math.Log(z)) > 0.2:
			t.Errorf("memory %d: ln Z %v, want %v, exact %v, %q", memory, *r.LogZ, math.Log(z), r.Exact, r.Warnings)
		case r.Error != nil && strings.Contains(r.Error.Message, "no digit of the total is known"):
			none++
		}
	}
	if none == 0 {
		t.Error("no memory lets numbers without a digit come about")
	}
}
