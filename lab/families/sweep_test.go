package families

import (
	"cmp"
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// check compares the truth of a family with enumeration.
func check(t *testing.T, name string, m *factorgraph.Model) {
	t.Helper()
	way, ok := truths[name]
	if !ok {
		way = sweep
	}
	got, marginals, err := way(t.Context(), m)
	want, _ := oracle.LogZ(m, factorgraph.Evidence{})
	if err != nil || !(math.Abs(got-want) < 1e-11*max(1, math.Abs(want))) {
		t.Errorf("%s: ln Z = %v, %v enumerated: %v", name, got, want, err)
	}
	for v, p := range oracle.Marginals(m, factorgraph.Evidence{}) {
		for x := range p {
			if math.Abs(p[x]-marginals[v][x]) > 1e-11 {
				t.Fatalf("%s: variable %d: %v, %v enumerated", name, v, marginals[v], p)
			}
		}
	}
}

// TestTruthsAreEnumerations: small members of every hard family, and of others of all kinds, against enumeration with large numbers.
func TestTruthsAreEnumerations(t *testing.T) {
	sizes := map[string]int{
		"hidden": 8, "hidden-dense": 8, "hidden-three": 3, "hidden-pair": 8, "needle": 6, "blume-capel": 1, "permanent": 5,
		"latin-squares": 3, "rbm-strong": 5, "independent-sets": 3, "noisy-gates": 12, "solid-on-solid": 1,
	}
	for _, f := range modeltest.Hard() {
		if f.Name == "dimers" || f.Name == "ice" {
			continue // counted by other tests: their least members are too large to be enumerated
		}
		size := cmp.Or(sizes[f.Name], 10)
		for seed, strength := range f.Strengths {
			check(t, f.Name, drawn(t, f.Name, size, strength, uint64(seed)))
		}
	}
	for name, size := range map[string]int{"rbm": 5, "bayesian-network": 9, "potts": 3, "soft-sat": 9} {
		check(t, name, drawn(t, name, size, 1, 3))
	}
}

// drawn is a model of a family.
func drawn(t *testing.T, family string, size int, strength float64, seed uint64) *factorgraph.Model {
	t.Helper()
	m, err := modeltest.Draw(family, size, strength, seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestDimersAreCounted: without weights as many coverings of a grid 8 × 14 as there are (Kasteleyn, 1961).
func TestDimersAreCounted(t *testing.T) {
	want := 0.0
	for j := 1; j <= 8; j++ {
		for k := 1; k <= 14; k++ {
			x, y := math.Cos(math.Pi*float64(j)/9), math.Cos(math.Pi*float64(k)/15)
			want += math.Log(4*x*x+4*y*y) / 4
		}
	}
	got, _, err := sweep(t.Context(), drawn(t, "dimers", 8, 0, 1))
	if err != nil || math.Abs(got-want) > 1e-10 {
		t.Errorf("dimers: ln Z = %v, want %v: %v", got, want, err)
	}
}

// TestContradictions have no state.
func TestContradictions(t *testing.T) {
	none := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, entries := range [][]float64{{1, 0, 0, 1}, {0, 1, 1, 0}} {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: entries}
		none.Factors = append(none.Factors, factorgraph.Factor{Scope: []int{0, 1}, Table: table})
	}
	for _, way := range []truth{linear, sweep} {
		if lnZ, _, err := way(t.Context(), none); err != nil || !math.IsInf(lnZ, -1) {
			t.Errorf("a contradiction: %v, %v", lnZ, err)
		}
	}
}

// TestSweepsEnd: a sweep with too many states is refused before it is computed, and a context ends a sweep.
func TestSweepsEnd(t *testing.T) {
	m := drawn(t, "complete", 12, 1, 1)
	if _, _, err := sweepWithin(t.Context(), m, 1<<12); err == nil {
		t.Error("a sweep of 2^12 states in the last column alone")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := sweep(ctx, m); err == nil {
		t.Error("it goes on without its context")
	}
}

// TestHiddenModes: the narrow mode holds most of Z, and the switch says so.
func TestHiddenModes(t *testing.T) {
	for _, name := range []string{"hidden", "hidden-dense"} {
		_, marginals, err := sweep(t.Context(), drawn(t, name, 12, 2, 3))
		if p := marginals[12][1]; err != nil || !(p > 0.8 && p < 0.95) {
			t.Errorf("%s: the narrow mode has %v: %v", name, p, err)
		}
	}
}
