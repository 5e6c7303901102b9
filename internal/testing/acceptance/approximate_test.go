package acceptance

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/pkg/query"
)

// generated writes a model with btn generate and returns its path.
func generated(t *testing.T, args ...string) string {
	t.Helper()
	needBinaries(t)
	model := filepath.Join(t.TempDir(), "model.uai")
	if out, code := command(t, "btn",
		append(append([]string{"generate", "ising"}, args...), "-o", model)...); code != 0 {
		t.Fatalf("generate: exit code %d\n%s", code, out)
	}
	return model
}

// Truncated legs, slices of nothing, and regions: the same bits in one process and over three
// contract workers, and errors within their stated uncertainty.
func TestApproximateAnswersOverThreeContractWorkers(t *testing.T) {
	t.Parallel()
	d := deploy(t, 3)
	grid := generated(t, "grid", "--rows", "12", "--columns", "12", "--attractive", "--seed", "3")
	mixed := generated(t, "grid", "--rows", "12", "--columns", "12", "--delta", "0.7", "--seed", "3")
	regular := generated(t, "regular", "-n", "40", "--seed", "4")
	for name, args := range map[string][]string{
		"truncated, lossless": {grid, "--method", "truncated", "--set", "truncated.bond=32", "--mar"},
		"truncated": {
			grid, "--method", "truncated", "--memory", "128KiB", "--budget", "200ms", "--deadline", "10m",
			"--mar",
		},
		"auto":               {regular, "--set", "auto.exact=no", "--memory", "64KiB", "--budget", "500ms", "--deadline", "10m"},
		"regions":            {regular, "--method", "regions", "--budget", "100ms", "--deadline", "10m"},
		"regions, marginals": {mixed, "--method", "regions", "--budget", "20ms", "--deadline", "10m", "--mar"},
	} {
		if !nightly.On() && name != "truncated" && name != "regions, marginals" {
			continue // make nightly takes them all
		}
		here, there := (*deployment)(nil).infer(t, args...), d.infer(t, args...)
		sameBits(t, name, there, here)
		r := there[0]
		if r.Exact || r.Uncertainty == nil || len(r.Estimates) == 0 || r.Ended == "" {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		if a, b := *r.Uncertainty, *here[0].Uncertainty; math.Float64bits(a) != math.Float64bits(b) ||
			len(r.Estimates) != len(here[0].Estimates) {
			t.Errorf("%s: other estimates here and there: %+v and %+v", name, here[0].Estimates, r.Estimates)
		}
		for v := range r.Marginals {
			for a := range r.Marginals[v].P {
				if math.Float64bits(r.Marginals[v].P[a]) != math.Float64bits(here[0].Marginals[v].P[a]) {
					t.Errorf("%s: P(x_%d = %d) has other bits here and there", name, v, a)
				}
			}
		}
		truth := (*deployment)(nil).infer(t, args[0], "--method", "exact", "--mar")[0]
		if off := math.Abs(*r.LogZ - *truth.LogZ); off > 5**r.Uncertainty+1e-10 {
			t.Errorf("%s: ln Z is off by %.2g, stated %.2g: %+v", name, off, *r.Uncertainty, r.Estimates)
		}
		for v := range r.Marginals {
			for a := range r.Marginals[v].P {
				if off := math.Abs(r.Marginals[v].P[a] - truth.Marginals[v].P[a]); off > 0.05 {
					t.Errorf("%s: P(x_%d = %d) is off by %v", name, v, a, off)
				}
			}
		}
	}
}

// Other evidence on a model with truncated legs finds the model's plans in the cache, and gives the
// same answer as without a cache.
func TestOtherEvidenceReusesTheTruncatedPlan(t *testing.T) {
	t.Parallel()
	d := deploy(t, 2)
	model := generated(t, "grid", "--rows", "12", "--columns", "12", "--seed", "5")
	for i, evidence := range []string{"0", "1 17 1", "3 5 0 80 1 143 1"} {
		file := filepath.Join(t.TempDir(), "e.evid")
		write(t, file, evidence)
		args := []string{
			model, "--evid", file, "--method", "truncated", "--memory", "256KiB", "--budget", "200ms",
			"--deadline", "10m",
		}
		r := d.infer(t, args...)
		want := "hit"
		if i == 0 {
			want = "miss"
		}
		if r[0].Cache != want {
			t.Errorf("evidence %q: cache %q, want %q", evidence, r[0].Cache, want)
		}
		sameBits(t, evidence, r, (*deployment)(nil).infer(t, args...))
		truth := (*deployment)(nil).infer(t, model, "--evid", file, "--method", "exact")[0]
		if off := math.Abs(*r[0].LogZ - *truth.LogZ); off > 5**r[0].Uncertainty+1e-10 {
			t.Errorf("evidence %q: ln Z is off by %v, stated %v", evidence, off, *r[0].Uncertainty)
		}
	}
}

// At its deadline a job is answered with the best estimate there is, marked so: bond 128 takes
// minutes, a quarter of it seconds.
func TestDeadlineAnswersWithTheBestEstimateSoFar(t *testing.T) {
	if !nightly.On() {
		t.Skip("takes all cores for 20 seconds: make nightly")
	}
	model := generated(t, "complete", "-n", "50", "--delta", "0.3", "--seed", "6")
	r := (*deployment)(nil).infer(t, model, "--method", "truncated", "--set", "truncated.bond=128", "--deadline", "20s")[0]
	if r.Status != query.StatusOK || r.Ended != "deadline" || len(r.Estimates) == 0 {
		t.Errorf("%+v, error %+v", r, r.Error)
	}
}
