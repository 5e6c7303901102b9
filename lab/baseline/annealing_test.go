package baseline_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/lab/baseline"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func expression(t testing.TB, m *factorgraph.Model, err error) *sumproduct.Expression {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func lnZ(t *testing.T, e *sumproduct.Expression) float64 {
	t.Helper()
	z, _, err := einsum.Contract(context.Background(), e, orders.Best(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z.LogAbs()
}

// randomModels are small ones of any arity and mixed domains, with zeros.
func randomModels(n int) (list []*factorgraph.Model) {
	for seed := range uint64(n) {
		list = append(list, modeltest.Small(rand.New(rand.NewPCG(seed, 1)), modeltest.SmallOptions{
			Factors: 9, Zeros: 0.1 * float64(seed%2), Kinds: []modeltest.Kind{modeltest.Dense}, Constant: true,
		}))
	}
	return list
}

func TestRefusals(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2}, Scale: scaled.One, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{1, 1}}}}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := baseline.Annealing(cancelled, e, baseline.AnnealingOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
	e.Tables[0].Data[1] = -1
	if _, _, err := baseline.Annealing(t.Context(), e, baseline.AnnealingOptions{}); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("an entry −1: %v", err)
	}
}

// The mean of Z over seeds is Z: within four of its standard errors, on models of spins and of other kinds, with zeros too.
func TestAnnealingIsUnbiased(t *testing.T) {
	grid, err := generate.Grid(3, 4, generate.Ising{Delta: 1, Seed: 3})
	models := append([]*factorgraph.Model{grid}, randomModels(6)...)
	for k, m := range models {
		e := expression(t, m, err)
		want := lnZ(t, e)
		if math.IsInf(want, -1) {
			continue
		}
		const seeds = 400
		sum, squares := 0.0, 0.0
		for seed := range uint64(seeds) {
			r, _, err := baseline.Annealing(t.Context(), e, baseline.AnnealingOptions{Temperatures: 5, Chains: 4, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			z := math.Exp(r.LnZ - want)
			sum += z
			squares += z * z
		}
		mean := sum / seeds
		deviation := math.Sqrt((squares/seeds - mean*mean) / seeds)
		if !(math.Abs(mean-1) <= 4*deviation+1e-12) {
			t.Errorf("model %d: the mean of Z is %.4f ± %.4f of Z", k, mean, deviation)
		}
	}
}

// On an easy model ln Z and marginals are right, the error as stated, and the same seed gives the same bits.
func TestAnnealingOfAGrid(t *testing.T) {
	m, err := generate.Grid(4, 4, generate.Ising{Delta: 1, Seed: 5})
	e := expression(t, m, err)
	o := baseline.AnnealingOptions{Temperatures: 200, Chains: 200, Seed: 1}
	r, deviation, err := baseline.Annealing(t.Context(), e, o)
	if err != nil || !r.Converged {
		t.Fatalf("%v, %+v", err, r)
	}
	if off := math.Abs(r.LnZ - lnZ(t, e)); !(off <= 5*deviation) || deviation > 0.1 {
		t.Errorf("ln Z is %.4f off, stated %.4f", off, deviation)
	}
	again, _, _ := baseline.Annealing(t.Context(), e, o)
	if math.Float64bits(again.LnZ) != math.Float64bits(r.LnZ) {
		t.Errorf("%v, then %v", r.LnZ, again.LnZ)
	}
	for i, p := range r.Marginals {
		if e.Dims[i] == 2 && !(math.Abs(p[0]+p[1]-1) <= 1e-12) {
			t.Errorf("index %d: %v", i, p)
		}
	}
	e.Scale = scaled.FromFloat(-1)
	if _, _, err := baseline.Annealing(t.Context(), e, o); err == nil {
		t.Error("a negative scale is accepted")
	}
}

// BenchmarkAnnealing tells single-site steps per second, of sparse, dense and bipartite models.
func BenchmarkAnnealing(b *testing.B) {
	for name, make := range map[string]func() (*factorgraph.Model, error){
		"regular-300": func() (*factorgraph.Model, error) {
			return generate.RandomRegular(300, 3, generate.Ising{Delta: 1, Seed: 1})
		},
		"complete-40": func() (*factorgraph.Model, error) { return generate.Complete(40, generate.Ising{Delta: 1, Seed: 1}) },
	} {
		b.Run(name, func(b *testing.B) {
			m, err := make()
			e := expression(b, m, err)
			steps := 0
			for b.Loop() {
				r, _, err := baseline.Annealing(b.Context(), e, baseline.AnnealingOptions{Chains: 10})
				if err != nil {
					b.Fatal(err)
				}
				steps += r.Rounds
			}
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
		})
	}
}

// TestLogisticStepsAreExact: whole numbers are below 2^53 σ(x) as the exponential says, at the ends of steps and beyond them all.
func TestLogisticStepsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	check := func(u uint64, x float64) {
		sigma := 1 / (1 + math.Exp(-x))
		if off := float64(u)/(1<<53) - sigma; math.Abs(off) > 1e-15 && baseline.Below(u, x) != (off < 0) {
			t.Fatalf("u = %v, x = %v, σ = %v: %v", float64(u)/(1<<53), x, sigma, off >= 0)
		}
	}
	for k := -25 * 64; k <= 25*64; k++ {
		x := float64(k) / 64
		for _, at := range []float64{x, math.Nextafter(x, -100), math.Nextafter(x, 100), x + r.Float64()/64} {
			sigma := (1 << 53) / (1 + math.Exp(-at))
			for _, near := range []float64{0, -40, 40, -1e9, 1e9, -1e13, 1e13} {
				check(uint64(min(max(0, sigma+near), 1<<53-1)), at)
			}
			check(r.Uint64N(1<<53), at)
		}
	}
	for _, x := range []float64{-1e300, -750, 750, 1e300} {
		check(0, x)
		check(1<<53-1, x)
	}
}
