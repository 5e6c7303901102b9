package learned_test

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestObjectives: draws state a standard error under every evidence; the plain objective states ρ, where the request sets an option of it
// and where an entry is below 0.
func TestObjectives(t *testing.T) {
	m, err := generate.Complete(10, generate.Ising{Delta: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := generate.Complete(10, generate.Ising{Delta: 1, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	signed.Factors[len(signed.Factors)-1].Table.(*tensor.Dense).Data[0] *= -0.1
	observed := func(value int) factorgraph.Evidence {
		return factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 3, Value: value}}}
	}
	for name, c := range map[string]struct {
		model *factorgraph.Model
		s     query.Settings
		drawn bool
	}{
		"by default":   {m, query.Settings{}, true},
		"by name":      {m, query.Settings{Objective: query.ObjectiveFrobenius}, false},
		"learned maps": {m, query.Settings{Maps: query.MapLearned}, false},
		"signed":       {signed, query.Settings{}, false},
		"under maps":   {m, query.Settings{Maps: query.MapBP}, false},
	} {
		s := c.s
		s.Method, s.Budget, s.Memory = query.MethodSymmetryCP, 1e8, 16<<10
		queries := []query.Query{{}, {Evidence: observed(0)}, {Evidence: observed(1), Marginals: true}}
		results, err := infer.Run(t.Context(), infer.Request{Job: "t", Model: c.model, Queries: queries, Settings: s})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for k, r := range results {
			if r.LogZ == nil {
				t.Errorf("%s, query %d: %+v", name, k, r.Error)
				continue
			}
			said := strings.Join(r.Warnings, "; ")
			if fallen := strings.Contains(said, "by the plain objective"); fallen != (name == "signed") {
				t.Errorf("%s, query %d: %s", name, k, said)
			}
			if !c.drawn {
				if r.Residual == nil || len(r.Estimates) > 0 {
					t.Errorf("%s, query %d: no residual, or estimates: %+v", name, k, r)
				}
				continue
			}
			lnZ, _ := oracle.LogZ(c.model, queries[k].Evidence)
			last := r.Estimates[len(r.Estimates)-1]
			if r.Residual != nil || !strings.HasSuffix(last.Kind, "mixture") || last.StandardError == nil ||
				r.Uncertainty == nil || r.Bounds == nil ||
				math.Abs(*last.LogZ-lnZ) > 4**last.StandardError || math.Abs(*r.LogZ-lnZ) > 3**r.Uncertainty {
				t.Errorf("%s, query %d: %+v, last %+v, ln Z = %v", name, k, r, last, lnZ)
			}
		}
	}
}
