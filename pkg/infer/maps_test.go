package infer

// Symmetry-CP under the three kinds of maps: the claims of docs/explanation/method.md.

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// BenchmarkSymmetryCPUnderMaps has |Δ ln Z| and ρ for 1, 4 and 8 components under identity, orthogonal and bp maps as metrics.
func BenchmarkSymmetryCPUnderMaps(b *testing.B) {
	ising := func(m *factorgraph.Model, err error) *factorgraph.Model {
		if err != nil {
			b.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name  string
		model *factorgraph.Model
	}{
		{"K5,Δ=0.5", ising(generate.Complete(5, generate.Ising{Delta: 0.5}))},
		{"K5,Δ=1", ising(generate.Complete(5, generate.Ising{Delta: 1}))},
		{"3×3,Δ=0.5", ising(generate.Grid(3, 3, generate.Ising{Delta: 0.5}))},
		{"3×3,Δ=1", ising(generate.Grid(3, 3, generate.Ising{Delta: 1}))},
		{"4×4,Δ=1", ising(generate.Grid(4, 4, generate.Ising{Delta: 1}))},
		{"4×4,attractive,Δ=1", ising(generate.Grid(4, 4, generate.Ising{Delta: 1, Attractive: true}))},
		{"Curie–Weiss,n=8,J=0.1", modeltest.CurieWeiss(8, 0.1, 1, 1)},
	} {
		exact := *answer(b, c.model, query.Settings{Method: query.MethodExact}).LogZ
		for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal, query.MapBP} {
			for _, components := range []int{1, 4, 8} {
				b.Run(fmt.Sprintf("%s/%s/r=%d", c.name, maps, components), func(b *testing.B) {
					var r query.Result
					for b.Loop() {
						r = answer(b, c.model, query.Settings{
							Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Maps: maps, Components: components,
						})
					}
					if r.LogZ != nil {
						b.ReportMetric(math.Abs(*r.LogZ-exact), "|ΔlnZ|")
					}
					b.ReportMetric(*r.Residual, "ρ")
				})
			}
		}
	}
}

// TestOneComponentInTheGauge: on a model that is large for it, the best component is the surroundings of e_0 on every
// leg, and its ln Z is the Bethe value.
func TestOneComponentInTheGauge(t *testing.T) {
	m, err := generate.Grid(4, 4, generate.Ising{Delta: 1, Attractive: true})
	if err != nil {
		t.Fatal(err)
	}
	state := messages(t, m)
	r := answer(t, m, query.Settings{
		Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Maps: query.MapBP, Components: 1,
	})
	if r.LogZ == nil || math.Abs(*r.LogZ-state.LnZ()) > 1e-3 {
		t.Errorf("ln Z = %v, the Bethe value is %v", r.LogZ, state.LnZ())
	}
}

// messages is the state of belief propagation on a model of tables.
func messages(t *testing.T, m *factorgraph.Model) *bp.State {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(t.Context(), net)
	if err != nil {
		t.Fatal(err)
	}
	state, err := bp.Run(t.Context(), e, bp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func answer(t testing.TB, m *factorgraph.Model, s query.Settings) query.Result {
	t.Helper()
	results, err := Run(context.Background(),
		Request{Job: "t", Model: m, Queries: []query.Query{{}}, Settings: s})

	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}
