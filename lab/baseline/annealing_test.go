package baseline_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/lab/baseline"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

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
