package learned

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// system draws r vectors in m dimensions and a target, and returns their scalar products.
func system(
	rng *rand.Rand, r, m int,
) (vectors [][]float64, target []float64, g [][]scaled.Number, b []scaled.Number, norm2 scaled.Number) {
	target = normal(rng, m)
	for range r {
		vectors = append(vectors, normal(rng, m))
	}
	g, b = products2(vectors, target)
	return vectors, target, g, b, scaled.FromFloat(inner(target, target))
}

func products2(vectors [][]float64, target []float64) ([][]scaled.Number, []scaled.Number) {
	g, b := make([][]scaled.Number, len(vectors)), make([]scaled.Number, len(vectors))
	for i := range vectors {
		b[i] = scaled.FromFloat(inner(vectors[i], target))
		for j := range vectors {
			g[i] = append(g[i], scaled.FromFloat(inner(vectors[i], vectors[j])))
		}
	}
	return g, b
}

func residualOf(vectors [][]float64, target []float64, fit fit) float64 {
	sum := make([]float64, len(target))
	for i, v := range vectors {
		for x := range v {
			sum[x] += fit.Alpha[i].Float64() * v[x]
		}
	}
	return distanceSq(sum, target) / inner(target, target)
}

// TestWeightsSolveTheNormalEquations: the objective is flat along weights above 0, and rises along those at 0.
func TestWeightsSolveTheNormalEquations(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 0))
		r := 1 + rng.IntN(8)
		vectors, target, g, b, norm2 := system(rng, r, r+rng.IntN(6))
		fit, err := fitWeights(g, b, norm2, 10)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "ρ", fit.Residual, residualOf(vectors, target, fit), 1e-11*fit.Condition, 1)
		for i := range vectors {
			left := b[i].Float64()
			for j := range vectors {
				left -= g[i][j].Float64() * fit.Alpha[j].Float64()
			}
			if fit.Alpha[i].IsZero() {
				left = math.Max(left, 0)
			}
			near(t, "gradient", left, 0, 1e-10*fit.Condition, math.Sqrt(g[i][i].Float64()))
		}
	}
}

// TestDependentComponents: a repeated, a scaled and a zero component change neither ρ nor make
// weights explode.
func TestDependentComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	vectors, target, g, b, norm2 := system(rng, 3, 8)
	plain, err := fitWeights(g, b, norm2, 10)
	if err != nil {
		t.Fatal(err)
	}
	double := append([]float64(nil), vectors[1]...)
	for x := range double {
		double[x] *= 2
	}
	vectors = append(vectors, vectors[0], double, make([]float64, 8))
	g, b = products2(vectors, target)
	fit, err := fitWeights(g, b, norm2, 10)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ρ", fit.Residual, plain.Residual, 1e-12, 1)
	near(t, "ρ of these weights", residualOf(vectors, target, fit), plain.Residual, 1e-12, 1)
	if fit.Condition < 1e14 {
		t.Errorf("condition %g", fit.Condition)
	}
	if !fit.Alpha[5].IsZero() {
		t.Errorf("a component of norm zero has weight %v", fit.Alpha[5])
	}
}

// TestWeightsOfAnyRange: G, b and ‖B‖² far outside float64, ρ that prints as 1.
func TestWeightsOfAnyRange(t *testing.T) {
	big := scaled.Make(1, 20_000)
	g := [][]scaled.Number{{big, {}}, {{}, scaled.Make(1, -30_000)}}
	b := []scaled.Number{scaled.Make(1.5, 4000), scaled.Make(1, -21_000)}
	norm2 := scaled.Make(1, 2000)
	fit, err := fitWeights(g, b, norm2, 10)
	if err != nil {
		t.Fatal(err)
	}
	// explained = Σ b_i²/G_ii/‖B‖² = 2.25·2^(8000−20000−2000) + 2^(−42000+30000−2000)
	want := math.Log(3.25) - 14_000*math.Ln2
	near(t, "ln(1−ρ)", fit.LnExplained(), want, 1e-15, math.Abs(want))
	if fit.Residual != 1 {
		t.Errorf("ρ is %v", fit.Residual)
	}
	near(t, "α", fit.Alpha[0].LogAbs(), math.Log(1.5)-16_000*math.Ln2, 1e-15, 16_000)
}

// TestNonNegativeWeightsAgainstAllActiveSets tries every subset of components.
func TestNonNegativeWeightsAgainstAllActiveSets(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 3))
		r := 1 + rng.IntN(6)
		vectors, target, g, b, norm2 := system(rng, r, r+2)
		best := 1.0
		for set := 1; set < 1<<r; set++ {
			var sub [][]float64
			for i := range r {
				if set>>i&1 == 1 {
					sub = append(sub, vectors[i])
				}
			}
			alpha := solveByElimination(sub, target)
			feasible := true
			for _, a := range alpha {
				feasible = feasible && a >= 0
			}
			if feasible {
				sum := make([]float64, len(target))
				for i, v := range sub {
					for x := range v {
						sum[x] += alpha[i] * v[x]
					}
				}
				best = math.Min(best, distanceSq(sum, target)/inner(target, target))
			}
		}
		fit, err := fitWeights(g, b, norm2, 10)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "ρ", fit.Residual, best, 1e-9, 1)
		near(t, "ρ of these weights", residualOf(vectors, target, fit), best, 1e-9, 1)
		for i, a := range fit.Alpha {
			if a.Sign() < 0 {
				t.Errorf("seed %d: weight %d is %v", seed, i, a.Float64())
			}
		}
	}
}

// solveByElimination is Gauss–Jordan on the normal equations.
func solveByElimination(vectors [][]float64, target []float64) []float64 {
	n := len(vectors)
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n+1)
		for j := range n {
			a[i][j] = inner(vectors[i], vectors[j])
		}
		a[i][n] = inner(vectors[i], target)
	}
	for k := range n {
		pivot := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[pivot][k]) {
				pivot = i
			}
		}
		a[k], a[pivot] = a[pivot], a[k]
		for i := range n {
			if i != k {
				f := a[i][k] / a[k][k]
				for j := k; j <= n; j++ {
					a[i][j] -= f * a[k][j]
				}
			}
		}
	}
	x := make([]float64, n)
	for i := range x {
		x[i] = a[i][n] / a[i][i]
	}
	return x
}

func TestNonNegativeWithDependentComponents(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	v := normal(rng, 5)
	minus := make([]float64, 5)
	for x := range v {
		minus[x] = -v[x]
	}
	g, b := products2([][]float64{minus, v, v}, v)
	fit, err := fitWeights(g, b, scaled.FromFloat(inner(v, v)), 5)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "ρ", fit.Residual, 0, 1e-14, 1)
	near(t, "α", fit.Alpha[1].Float64()+fit.Alpha[2].Float64()-fit.Alpha[0].Float64(), 1, 1e-13, 1)
}

func TestWeightsRefuseWhatIsNotANumber(t *testing.T) {
	one := []scaled.Number{scaled.One}
	nan := scaled.FromFloat(math.NaN())
	if _, err := fitWeights([][]scaled.Number{{nan}}, one, scaled.One, 1); !errors.Is(err,
		ErrNotFinite) {
		t.Errorf("NaN in G: %v", err)
	}
	if _, err := fitWeights([][]scaled.Number{one}, []scaled.Number{nan}, scaled.One, 1); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN in b: %v", err)
	}
	if _, err := fitWeights([][]scaled.Number{one}, one, nan, 1); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN norm: %v", err)
	}
	if _, err := fitWeights(nil, one, scaled.One, 1); err == nil ||
		!strings.Contains(err.Error(), "G has 0 rows, b has 1") {
		t.Errorf("shape: %v", err)
	}
	two := scaled.FromFloat(2)
	wrong := [][]scaled.Number{{scaled.One, two}, {two, scaled.One}}
	if _, err := fitWeights(wrong, []scaled.Number{two, two}, scaled.One, 1); err == nil ||
		!strings.Contains(err.Error(), "|G_ij| is 2 times √(G_ii·G_jj) for components 1 and 0") {
		t.Errorf("no Gram matrix: %v", err)
	}
	if _, err := fitWeights([][]scaled.Number{{two.Neg()}}, one, scaled.One, 1); err == nil ||
		!strings.Contains(err.Error(), "component 0 with itself is negative") {
		t.Errorf("negative norm: %v", err)
	}
	fit, err := fitWeights([][]scaled.Number{one}, one, scaled.Number{}, 1)
	if err != nil || fit.Residual != 0 || !fit.Alpha[0].IsZero() {
		t.Errorf("B = 0: %v, %v", fit, err)
	}
}
