package families

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// check compares a truth with enumeration.
func check(t *testing.T, name string, by truth, m *factorgraph.Model) {
	t.Helper()
	got, marginals, err := by(t.Context(), m)
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
		"hidden": 8, "hidden-dense": 8, "hidden-three": 3, "hidden-pair": 8, "needle": 6, "dimers": 0, "ice": 0, "blume-capel": 1,
		"permanent": 5, "latin-squares": 3, "rbm-strong": 5, "independent-sets": 3, "noisy-gates": 12, "solid-on-solid": 1,
	}
	for _, f := range generate.Hard() {
		size, ok := sizes[f.Name]
		if !ok {
			size = 10
		}
		if size == 0 {
			continue // counted below: their least members are too large to be enumerated
		}
		by := truths[f.Name]
		if by == nil {
			by = sweep
		}
		for seed, strength := range f.Strengths {
			check(t, f.Name, by, drawn(t, f.Name, size, strength, uint64(seed)))
		}
	}
	for name, size := range map[string]int{"rbm": 5, "bayesian-network": 9, "potts": 3, "soft-sat": 9} {
		check(t, name, sweep, drawn(t, name, size, 1, 3))
	}
}

// drawn is a model of a family.
func drawn(t *testing.T, family string, size int, strength float64, seed uint64) *factorgraph.Model {
	t.Helper()
	m, err := generate.Draw(family, size, strength, seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestTruthsAreKnownCounts: dimers (Kasteleyn, 1961), ice on tori (Lieb, 1967), Latin squares (OEIS A002860), derangements.
func TestTruthsAreKnownCounts(t *testing.T) {
	count := func(by truth, family string, size int) float64 {
		t.Helper()
		m := drawn(t, family, size, 0, 1)
		lnZ, _, err := by(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return lnZ
	}
	kasteleyn := func(rows, columns int) (ln float64) {
		for j := 1; j <= rows; j++ {
			for k := 1; k <= columns; k++ {
				x, y := math.Cos(math.Pi*float64(j)/float64(rows+1)), math.Cos(math.Pi*float64(k)/float64(columns+1))
				ln += math.Log(4*x*x+4*y*y) / 4
			}
		}
		return ln
	}
	if got, want := count(sweep, "dimers", 8), kasteleyn(8, 14); math.Abs(got-want) > 1e-10 {
		t.Errorf("dimers: %v, want %v", got, want)
	}
	for order, want := range map[int]float64{4: 576, 5: 161280, 6: 812851200} {
		if got := count(square, "latin-squares", order); math.Abs(got-math.Log(want)) > 1e-10 {
			t.Errorf("Latin squares of order %d: %v, want %v", order, math.Exp(got), want)
		}
	}
	if got, want := count(assigned, "permanent", 10), math.Log(3628800); math.Abs(got-want) > 1e-10 {
		t.Errorf("permutations: %v, want %v", got, want)
	}
}

// TestLinear: parities by elimination, where enumeration ends, against sweeps; contradictions have no state.
func TestLinear(t *testing.T) {
	m := drawn(t, "xor-hard", 30, 0.9, 4)
	want, marginals, err := sweep(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	got, mine, _ := linear(t.Context(), m)
	if math.Abs(got-want) > 1e-10 {
		t.Errorf("ln Z = %v, want %v", got, want)
	}
	for v := range mine {
		if math.Abs(mine[v][0]-marginals[v][0]) > 1e-10 {
			t.Errorf("variable %d: %v, want %v", v, mine[v], marginals[v])
		}
	}
	none := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, entries := range [][]float64{{1, 0, 0, 1}, {0, 1, 1, 0}} {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: entries}
		none.Factors = append(none.Factors, factorgraph.Factor{Scope: []int{0, 1}, Table: table})
	}
	for _, by := range []truth{linear, sweep} {
		if lnZ, _, err := by(t.Context(), none); err != nil || !math.IsInf(lnZ, -1) {
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
