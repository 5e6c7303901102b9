package infer_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestBetheEstimateIsTheValueOfBeliefPropagation: without time for regions the answer
// is the value of belief propagation, with marginals and an upper bound, and states no uncertainty.
func TestBetheEstimateIsTheValueOfBeliefPropagation(t *testing.T) {
	m, err := generate.Grid(6, 6, generate.Ising{Delta: 0.2, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := query.Settings{Method: query.MethodRegions}
	net, err := stage.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	queries := []query.Query{{Marginals: true}}
	assignments, err := stage.Learn(proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second)), net,
		queries, s, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	chunks, _ := stage.Chunks(net, assignments)
	values, err := stage.Contract(t.Context(), net, assignments, stage.Demands(net, queries), slices.Concat(chunks...),
		stage.ContractOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := stage.Aggregate("j", assignments, values)[0]
	if r.Status != "ok" || r.LogZ == nil || r.Propagation == nil ||
		*r.LogZ != *r.Propagation.LogZ || r.Uncertainty != nil || r.Exact {
		t.Fatalf("%+v", r)
	}
	if r.Bounds == nil || r.Bounds.Upper == nil || *r.Bounds.Upper < *r.LogZ || r.Bounds.How != "above by messages" {
		t.Errorf("bounds %+v", r.Bounds)
	}
	exact, err := infer.Run(t.Context(), infer.Request{Model: m, Queries: queries})
	if err != nil {
		t.Fatal(err)
	}
	if d := math.Abs(*exact[0].LogZ - *r.LogZ); d > 0.005 {
		t.Errorf("ln Z is off by %v", d)
	}
	for v, row := range exact[0].Marginals {
		for x, p := range row.P {
			if math.Abs(p-r.Marginals[v].P[x]) > 0.01 {
				t.Errorf("P(x_%d = %d) = %v, exactly %v", v, x, r.Marginals[v].P[x], p)
			}
		}
	}
}

// TestTruncatedLegsBehindBeliefPropagation: under a deadline the value of belief propagation is the
// answer until the first truncated legs are there, and says nothing of them then; where there are
// none it is the answer.
func TestTruncatedLegsBehindBeliefPropagation(t *testing.T) {
	m, err := generate.Grid(12, 12, generate.Ising{Delta: 0.2, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	s := query.Settings{Method: query.MethodTruncated, Budget: 1e7}
	net, err := stage.Reparameterise(t.Context(), m, s)
	if err != nil {
		t.Fatal(err)
	}
	queries := []query.Query{
		{Marginals: true}, {Evidence: factorgraph.Observe(map[int]int{3: 1})},
		{Evidence: factorgraph.Observe(map[int]int{40: 0})},
	}
	learned := func(ctx context.Context, s query.Settings) []btn.Assignment {
		t.Helper()
		assignments, err := stage.Learn(ctx, net, queries, s, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return assignments
	}
	answers := func(assignments []btn.Assignment, chunks int) []query.Result {
		t.Helper()
		all, _ := stage.Chunks(net, assignments)
		var values []btn.UnitValue
		for _, units := range all[:min(chunks, len(all))] {
			v, err := stage.Contract(t.Context(), net, assignments, stage.Demands(net, queries), units,
				stage.ContractOptions{})
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v...)
		}
		return stage.AggregateNow("j", assignments, values)
	}
	timed := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour))
	assignments := learned(timed, s)
	if assignments[1].Plan != assignments[2].Plan {
		t.Error("two queries that one plan serves have two")
	}
	for q, r := range answers(assignments, 1) {
		if r.Status != "ok" || r.Propagation == nil || !sameBethe(r) ||
			r.Uncertainty != nil ||
			(r.Marginals != nil) != (q == 0) {
			t.Errorf("query %d, the first chunk: ln Z = %v, of belief propagation %v: %+v", q, *r.LogZ, *r.Propagation.LogZ, r)
		}
	}
	want := answers(learned(t.Context(), s), math.MaxInt)
	for q, r := range answers(assignments, math.MaxInt) {
		if len(r.Estimates) != len(want[q].Estimates)+1 || *r.LogZ != *want[q].LogZ ||
			r.Uncertainty == nil ||
			*r.Uncertainty != *want[q].Uncertainty {
			t.Errorf("query %d: %+v, without belief propagation %+v", q, r, want[q])
		}
	}
	first, err := stage.FirstResults(t.Context(), "j", net, queries, s, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.Memory = 1 << 10
	for q, r := range stage.ReplaceFailures(answers(learned(timed, s), math.MaxInt), first) {
		if r.Status != "ok" || !sameBethe(r) ||
			!strings.Contains(strings.Join(r.Warnings, " "), "belief propagation only") {
			t.Errorf("query %d without memory: %+v", q, r)
		}
	}
	if r := answers(learned(t.Context(), s), math.MaxInt)[0]; r.Status == "ok" {
		t.Errorf("without memory or deadline: %+v", r)
	}
}

// sameBethe reports whether ln Z is belief propagation's, up to rounding: the one is a sum over beliefs, the other over messages.
func sameBethe(r query.Result) bool {
	return math.Abs(*r.LogZ-*r.Propagation.LogZ) < 1e-12*math.Abs(*r.LogZ)
}
