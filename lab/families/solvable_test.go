package families

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// narrower is a model of a strip without its last columns, so that sweeps reach it: a strip of so many columns.
func narrower(t *testing.T, m *factorgraph.Model, width, columns int) *factorgraph.Model {
	t.Helper()
	small := &factorgraph.Model{Domains: m.Domains[:len(m.Domains)/width*columns]}
	for _, f := range m.Factors {
		scope := slices.Clone(f.Scope)
		if slices.ContainsFunc(scope, func(v int) bool { return v%width >= columns }) {
			continue
		}
		for k, v := range scope {
			scope[k] = v/width*columns + v%width
		}
		small.Factors = append(small.Factors, factorgraph.Factor{Scope: scope, Table: f.Table})
	}
	return small
}

// TestSolvableModels: the truths of small members are what sweeps over their states give, which share nothing with them.
func TestSolvableModels(t *testing.T) {
	for _, c := range []struct {
		member         Member
		width, columns int // of a strip, and those that it keeps; 0: all
	}{
		{Member{"planar-glass", 11, 0.5, 1}, 0, 0},
		{Member{"planar-glass", 12, 2, 2}, 0, 0},
		{Member{"planar-strip", 40, 1, 3}, 40, 9},
		{Member{"field-strip", 30, 1, 1}, 24, 8},
		{Member{"field-strip", 1, 1, 1}, 24, 6},
		{Member{"dimers-square", 8, 1, 1}, 0, 0},
		{Member{"parities", 28, 1, 1}, 0, 0},
		{Member{"parities", 34, 4, 2}, 0, 0},
		{Member{"rbm-narrow", 11, 0.2, 1}, 0, 0},
		{Member{"rbm-narrow", 11, 0.6, 2}, 0, 0},
		{Member{"rank-two", 16, 1, 1}, 0, 0},
		{Member{"rank-two", 14, 4, 2}, 0, 0},
	} {
		m := drawn(t, c.member.Family, c.member.Size, c.member.Strength, c.member.Seed)
		if c.width > 0 {
			m = narrower(t, m, c.width, c.columns)
		}
		want, _, err := sweep(t.Context(), m)
		if err != nil {
			t.Fatalf("%s: %v", c.member, err)
		}
		got, _, ok, err := c.member.Truth(t.Context(), m)
		if !ok || err != nil || !(math.Abs(got-want) <= 1e-11*math.Abs(want)) {
			t.Errorf("%s: ln Z = %v, %v by a sweep: %v, %v", c.member, got, want, ok, err)
		}
	}
}

// TestDeterminantsOfLargeGrids: where sweeps end, a planar glass is what a transfer matrix gives.
func TestDeterminantsOfLargeGrids(t *testing.T) {
	for _, strength := range []float64{0.5, 2} {
		m := narrower(t, drawn(t, "planar-strip", 400, strength, 1), 40, 12)
		want, _, err := transfer(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := planar(t.Context(), m)
		if err != nil || math.Abs(got-want) > 1e-11*want {
			t.Errorf("Δ = %v: ln Z = %v, want %v: %v", strength, got, want, err)
		}
	}
}

// TestDominoesOfAChessboard: there are 12,988,816 (Kasteleyn, 1961), and none of an odd number of squares.
func TestDominoesOfAChessboard(t *testing.T) {
	got, _, err := dominoes(t.Context(), drawn(t, "dimers-square", 8, 0, 1))
	if err != nil || math.Abs(got-math.Log(12988816)) > 1e-10 {
		t.Errorf("%v: %v", math.Exp(got), err)
	}
	if got, _, err := dominoes(t.Context(), drawn(t, "dimers-square", 7, 1, 1)); err != nil || !math.IsInf(got, -1) {
		t.Errorf("49 squares: %v, %v", got, err)
	}
}

// TestTruthsSayWhereTheyEnd: models that are too large or of another kind are refused before anything is computed.
func TestTruthsSayWhereTheyEnd(t *testing.T) {
	wide := narrower(t, drawn(t, "planar-strip", 2, 1, 1), 40, 27)
	if _, _, err := transfer(t.Context(), wide); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("27 columns: %v", err)
	}
	if _, _, err := hiddenLayer(t.Context(), drawn(t, "rbm-narrow", 31, 1, 1)); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("31 hidden units: %v", err)
	}
	if _, _, err := dependencies(t.Context(), drawn(t, "xor-soft", 80, 1, 1)); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("120 parities of 80 bits: %v", err)
	}
	if ln, _, err := dependencies(t.Context(), drawn(t, "xor-soft", 14, 80, 1)); fault.CodeOf(err) != fault.FailedEstimate {
		t.Errorf("terms that cancel: %v, %v", ln, err)
	}
	if ln, _, err := hiddenLayer(t.Context(), drawn(t, "rbm-narrow", 4, 120, 1)); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("odds above float64: %v, %v", ln, err)
	}
	for name, way := range map[string]truth{"planar": planar, "dependencies": dependencies} {
		if _, _, err := way(t.Context(), drawn(t, "grid-mixed", 4, 1, 1)); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s of a model with fields: %v", name, err)
		}
	}
	for name, way := range map[string]truth{"planar": planar, "transfer": transfer, "hiddenLayer": hiddenLayer} {
		if _, _, err := way(t.Context(), drawn(t, "sherrington-kirkpatrick", 9, 1, 1)); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s of another graph: %v", name, err)
		}
	}
	line := narrower(t, drawn(t, "planar-strip", 6, 1, 1), 40, 1)
	want, _, _ := sweep(t.Context(), line)
	if got, _, err := planar(t.Context(), line); err != nil || math.Abs(got-want) > 1e-11*want {
		t.Errorf("one column: %v, want %v: %v", got, want, err)
	}
	m := drawn(t, "planar-glass", 3, 1, 1)
	m.Factors[0].Table.(*tensor.Dense).Data[0] *= 2
	if _, _, err := planar(t.Context(), m); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("a table that is no product: %v", err)
	}
}
