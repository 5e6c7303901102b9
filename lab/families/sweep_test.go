package families

import (
	"context"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
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
	for _, f := range hard {
		size, ok := sizes[f.name]
		if !ok {
			size = 10
		}
		if size == 0 {
			continue // counted below: their least members are too large to be enumerated
		}
		for seed, strength := range f.strengths {
			m, err := f.draw(size, strength, uint64(seed))
			if err != nil {
				t.Fatal(err)
			}
			check(t, f.name, truthOf(f.name), m)
		}
	}
	for name, draw := range map[string]generator{"rbm": rbm, "bayesian": bayesian, "potts": potts, "softSAT": softSAT} {
		m, err := draw(map[string]int{"rbm": 5, "bayesian": 9, "potts": 3, "softSAT": 9}[name], 1, 3)
		if err != nil {
			t.Fatal(err)
		}
		check(t, name, sweep, m)
	}
}

// TestTruthsAreKnownCounts: dimers (Kasteleyn, 1961), ice on tori (Lieb, 1967), Latin squares (OEIS A002860), derangements.
func TestTruthsAreKnownCounts(t *testing.T) {
	count := func(by truth, m *factorgraph.Model, err error) float64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
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
	m, err := dimers(8, 0, 1)
	if got, want := count(sweep, m, err), kasteleyn(8, 14); math.Abs(got-want) > 1e-10 {
		t.Errorf("dimers: %v, want %v", got, want)
	}
	for order, want := range map[int]float64{4: 576, 5: 161280, 6: 812851200} {
		m, err := latin(order, 0, 1)
		if got := count(square, m, err); math.Abs(got-math.Log(want)) > 1e-10 {
			t.Errorf("Latin squares of order %d: %v, want %v", order, math.Exp(got), want)
		}
	}
	m, err = permanent(10, 0, 1)
	if got, want := count(assigned, m, err), math.Log(3628800); math.Abs(got-want) > 1e-10 {
		t.Errorf("permutations: %v, want %v", got, want)
	}
}

// TestLinear: parities by elimination, where enumeration ends, against sweeps; contradictions have no state.
func TestLinear(t *testing.T) {
	m, err := hardParity(30, 0.9, 4)
	if err != nil {
		t.Fatal(err)
	}
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
	b := spins(3)
	b.constrain([]int{0, 1}, func(x uint) bool { return x == 0 || x == 3 })
	b.constrain([]int{0, 1}, func(x uint) bool { return x == 1 || x == 2 })
	for _, by := range []truth{linear, sweep} {
		if lnZ, _, err := by(t.Context(), b.model()); err != nil || !math.IsInf(lnZ, -1) {
			t.Errorf("a contradiction: %v, %v", lnZ, err)
		}
	}
}

// TestSweepsEnd: a sweep with too many states is refused before it is computed, and a context ends a sweep.
func TestSweepsEnd(t *testing.T) {
	m, err := complete(12, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
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
	for name, draw := range map[string]generator{"hidden": hidden, "dense": hiddenDense} {
		m, err := draw(12, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		_, marginals, err := sweep(t.Context(), m)
		if p := marginals[12][1]; err != nil || !(p > 0.8 && p < 0.95) {
			t.Errorf("%s: the narrow mode has %v: %v", name, p, err)
		}
	}
}
