package infer

// Symmetry-CP under the three kinds of maps: what docs/explanation/method.md says of it.

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestSymmetryCPUnderMaps prints |Δ ln Z| and ρ for 1, 4 and 8 components under identity,
// orthogonal and bp maps: the table in docs/explanation/method.md, by BTN_COMPARE=1 go test ./pkg/infer -run
// TestSymmetryCPUnderMaps -v.
func TestSymmetryCPUnderMaps(t *testing.T) {
	if os.Getenv("BTN_COMPARE") == "" {
		t.Skip("BTN_COMPARE is not set")
	}
	ising := func(m *factorgraph.Model, err error) *factorgraph.Model {
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name  string
		model *factorgraph.Model
	}{
		{"K5, Δ=0.5", ising(generate.Complete(5, generate.Ising{Delta: 0.5}))},
		{"K5, Δ=1", ising(generate.Complete(5, generate.Ising{Delta: 1}))},
		{"3×3 grid, Δ=0.5", ising(generate.Grid(3, 3, generate.Ising{Delta: 0.5}))},
		{"3×3 grid, Δ=1", ising(generate.Grid(3, 3, generate.Ising{Delta: 1}))},
		{"4×4 grid, Δ=1", ising(generate.Grid(4, 4, generate.Ising{Delta: 1}))},
		{"4×4 grid, attractive, Δ=1",
			ising(generate.Grid(4, 4, generate.Ising{Delta: 1, Attractive: true}))},
		{"Curie–Weiss n=8, J=0.1, as pairs", ising(generate.CurieWeiss(8, 0.1, 1, 1))},
	} {
		exact := answer(t, c.model, btn.Settings{Method: btn.MethodExact})
		state := messages(t, c.model)
		line := fmt.Sprintf("| %s | %.1e |", c.name, math.Abs(state.LnZ()-*exact.LogZ))
		for _, maps := range []btn.MapKind{btn.MapIdentity, btn.MapOrthogonal, btn.MapBP} {
			for _, components := range []int{1, 4, 8} {
				r := answer(t, c.model,
					btn.Settings{Method: btn.MethodSymmetryCP, Maps: maps, Components: components})
				if r.LogZ == nil {
					line += " none"
				} else {
					line += fmt.Sprintf(" %.1e", math.Abs(*r.LogZ-*exact.LogZ))
				}
				line += fmt.Sprintf(" (%.2g)", *r.Residual)
			}
			line += " |"
		}
		t.Log(line)
	}
}

// TestOneComponentInTheGauge: on a model that is large for it,
// the best component is what surrounds e_0 on every leg, and its ln Z is the Bethe value.
func TestOneComponentInTheGauge(t *testing.T) {
	m, err := generate.Grid(4, 4, generate.Ising{Delta: 1, Attractive: true})
	if err != nil {
		t.Fatal(err)
	}
	state := messages(t, m)
	r := answer(t, m, btn.Settings{Method: btn.MethodSymmetryCP, Maps: btn.MapBP, Components: 1})
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

func answer(t *testing.T, m *factorgraph.Model, s btn.Settings) btn.Result {
	t.Helper()
	results, err := Run(context.Background(),
		Request{Job: "t", Model: m, Queries: []query.Query{{}}, Settings: s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return results[0]
}
