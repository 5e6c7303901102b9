package load

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func config() Config {
	return Config{
		Models: []Model{
			{Name: "a", Graph: AlarmSized(1), Weight: 3},
			{Name: "b", Graph: AlarmSized(2), Weight: 1},
		}, Variants: 8, Zipf: 1,
		Batch: 2, Rate: 1000, Duration: time.Second, Seed: 7, Tenants: []Tenant{{"x", 1}, {"y", 9}},
	}.withDefaults()
}

func drawn(t *testing.T, c Config, n int) []*job {
	t.Helper()
	p := newPlanner(c)
	jobs := make([]*job, n)
	for i := range jobs {
		var err error
		if jobs[i], err = p.job(); err != nil {
			t.Fatal(err)
		}
	}
	return jobs
}

func TestPlanIsDrawnFromTheSeed(t *testing.T) {
	a, b := drawn(t, config(), 50), drawn(t, config(), 50)
	if !reflect.DeepEqual(a, b) {
		t.Error("the same seed gave other jobs")
	}
	c := config()
	c.Seed++
	if reflect.DeepEqual(a, drawn(t, c, 50)) {
		t.Error("another seed gave the same jobs")
	}
}

// The times between arrivals are exponential: mean 1/λ, standard deviation the same, and a share
// e^−1 above the mean. The shares of models, variants and tenants are those asked for. Bounds are
// four standard errors.
func TestPlanHasTheDistributionsAskedFor(t *testing.T) {
	const n = 20_000
	c := config()
	c.Batch = 1
	jobs := drawn(t, c, n)
	sum, square, above := 0.0, 0.0, 0.0
	var models [2]float64
	var variants [8]float64
	var tenants [2]float64
	last := time.Duration(0)
	for _, j := range jobs {
		gap := (j.at - last).Seconds() * c.Rate
		last = j.at
		sum, square = sum+gap, square+gap*gap
		if gap > 1 {
			above++
		}
		models[j.model]++
		variants[j.variant]++
		tenants[j.tenant]++
	}
	near := func(what string, got, want, sd float64) {
		t.Helper()
		if math.Abs(got-want) > 4*sd/math.Sqrt(n) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	share := func(what string, got, p float64) { t.Helper(); near(what, got/n, p, math.Sqrt(p*(1-p))) }
	near("mean gap", sum/n, 1, 1)
	near("mean square of the gap", square/n, 2, math.Sqrt(20)) // E X⁴ − (E X²)² = 24 − 4
	share("gaps above the mean", above, math.Exp(-1))
	share("first model", models[0], 0.75)
	share("second tenant", tenants[1], 0.9)
	harmonic := 0.0
	for k := range variants {
		harmonic += 1 / float64(k+1)
	}
	for k, got := range variants {
		share("variant", got, 1/float64(k+1)/harmonic)
	}
}

func TestVariantsDifferAndStayDistributions(t *testing.T) {
	m := AlarmSized(3)
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	arcs := 0
	for _, f := range m.Factors {
		arcs += len(f.Scope) - 1
	}
	if len(m.Domains) != 37 || arcs != 46 {
		t.Errorf("%d variables, %d arcs", len(m.Domains), arcs)
	}
	if variant(m, 0, 1) != m {
		t.Error("variant 0 is not the model")
	}
	v, w := variant(m, 1, 1), variant(m, 2, 1)
	a, b, c := m.Factors[5].Table.(*tensor.Dense).Data, v.Factors[5].Table.(*tensor.Dense).Data, w.Factors[5].Table.(*tensor.Dense).Data
	if slices.Equal(a, b) || slices.Equal(b, c) {
		t.Error("variants are equal")
	}
	results, err := infer.Run(t.Context(), infer.Request{Job: "j", Model: v, Queries: []query.Query{{}}})
	if err != nil || math.Abs(*results[0].LogZ) > 1e-12 { // rows sum to 1, so does everything
		t.Errorf("ln Z of a variant is %v (%v), want 0", *results[0].LogZ, err)
	}
}

// The evidence in a Bayesian network is possible, with any number of zero entries; values have the frequencies of the network.
func TestEvidenceIsPossible(t *testing.T) {
	copied := &factorgraph.Model{Domains: []int{2, 2}, Bayes: true, Factors: []factorgraph.Factor{
		{Scope: []int{1, 0}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 0, 0, 1}}}, // x_0 = x_1
		{Scope: []int{1}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.25, 0.75}}},
	}}
	s, r := newSampler(copied), rand.New(rand.NewPCG(1, 2))
	counts, ones := [3]int{}, 0
	const n = 4000
	for range n {
		e := s.evidence(r, 2)
		if err := e.Validate(copied); err != nil {
			t.Fatal(err)
		}
		counts[len(e.Hard)]++
		if len(e.Hard) == 2 {
			if e.Hard[0].Value != e.Hard[1].Value {
				t.Fatalf("impossible evidence %v", e)
			}
			ones += e.Hard[0].Value
		}
	}
	for _, c := range counts {
		if math.Abs(float64(c)-n/3.) > 4*math.Sqrt(n*2./9) {
			t.Errorf("numbers of observations %v, want a third each", counts)
		}
	}
	both := float64(counts[2])
	if math.Abs(float64(ones)-0.75*both) > 4*math.Sqrt(both*3./16) {
		t.Errorf("%d of %v pairs are 1, want three quarters", ones, both)
	}
	copied.Bayes = false
	if newSampler(copied).tables != nil {
		t.Error("tables of a model that is no Bayesian network are taken for conditional probabilities")
	}
}
