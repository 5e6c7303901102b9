package problem_test

// Simplification happens once for all parts of a task.

import (
	"testing"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestSimplifiedOncePerTask plans a query and contracts all of its units as one task, where it was
// planned and elsewhere: slices of a tree, and estimates along truncated legs whose evidence is a
// mask.
func TestSimplifiedOncePerTask(t *testing.T) {
	m, err := generate.Grid(16, 16, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings query.Settings
		query    query.Query
	}{
		"slices": {query.Settings{Method: query.MethodExact, Memory: 1 << 16}, query.Query{}},
		"slices, evidence": {query.Settings{Method: query.MethodExact, Memory: 1 << 16},
			query.Query{Evidence: factorgraph.Observe(map[int]int{5: 1})}},
		"truncated": {query.Settings{Method: query.MethodTruncated, Bond: 4}, query.Query{}},
		"masked": {query.Settings{Method: query.MethodTruncated, Bond: 4},
			query.Query{Evidence: factorgraph.Observe(map[int]int{5: 1})}},
	} {
		net, err := stage.Reparameterise(t.Context(), m, c.settings)
		if err != nil {
			t.Fatal(err)
		}
		queries := []query.Query{c.query}
		shared := &problem.Shared{}
		known := &plan.NetworkMemory{Problems: shared,
			Options: problem.Options{Memory: c.settings.WithDefaults().Memory}}
		assignments, err := stage.Learn(t.Context(), net, queries, c.settings, nil, known)
		if err != nil {
			t.Fatal(err)
		}
		if e := assignments[0].Error; e != nil {
			t.Fatalf("%s: %s", name, e.Message)
		}
		splitSlices(&assignments[0].Plan.Estimates[0])
		var units []btn.Unit
		for i := range assignments[0].Plan.PartCount() {
			units = append(units, btn.Unit{Part: i})
		}
		if len(units) < 2 {
			t.Fatalf("%s: %d parts show nothing", name, len(units))
		}
		contract := func(with *problem.Shared) {
			t.Helper()
			values, err := stage.Contract(t.Context(), net, assignments, stage.Demands(net, queries), units,
				stage.ContractOptions{Memory: known.Options.Memory, Shared: with})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				if v.Error != nil {
					t.Fatalf("%s: part %d: %s", name, v.Part, v.Error.Message)
				}
			}
		}
		planned := problem.FormsBegun(shared)
		contract(shared)
		if n := problem.FormsBegun(shared); n != planned {
			t.Errorf("%s: simplified %d times for the plan, %d more for its %d parts",
				name, planned, n-planned, len(units))
		}
		another := &problem.Shared{}
		contract(another)
		if n := problem.FormsBegun(another); n != 1 {
			t.Errorf("%s, in another process: simplified %d times for %d parts",
				name, n, len(units))
		}
		t.Logf("%s: %d parts of class %s",
			name, len(units), assignments[0].Plan.Estimates[0].Parts[0].Class())
	}
}

// splitSlices makes every slice of a tree a part of its own. It does nothing if the parts are no slices.
func splitSlices(e *btn.Estimate) {
	all, ok := e.Parts[0].(*exact.Slices)
	if !ok {
		return
	}
	e.Parts = nil
	for k := range all.Tree.Count {
		e.Parts = append(e.Parts, &exact.Slices{Tree: all.Tree, From: k, To: k + 1})
	}
}
