package infer_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestDrawsOfOneStatistic: samples of 40 spins with P(x) ∝ exp(λ/2 S(x)² + Σ h_i(x_i)), S(x) = Σ v_i x_i, are exact. Count vectors of
// spins that may be swapped answer Z, but draw nothing here; another exact way does. The mean of S² is compared with a convolution.
func TestDrawsOfOneStatistic(t *testing.T) {
	const samples = 4000
	o := generate.Latent{Family: "rank", Variables: 40, Coupling: 1.2, Field: 0.1}
	p, err := o.Planted()
	if err != nil {
		t.Fatal(err)
	}
	m, err := o.Model()
	if err != nil {
		t.Fatal(err)
	}
	results, err := infer.Run(t.Context(), infer.Request{Model: m, Queries: []query.Query{{Samples: samples, Seed: 3}}})
	if err != nil || results[0].Status != query.StatusOK {
		t.Fatalf("%v, %+v", err, results)
	}
	drawn := results[0].Samples
	if !results[0].Exact || drawn.Weights != nil {
		t.Fatalf("exact: %v; %d weights", results[0].Exact, len(drawn.Weights))
	}

	// weights has Σ exp(Σ h) over the assignments of the first variables by their S.
	statistic := func(i, value int) int { return int(p.Vectors[0][2*i+value]) }
	weights := map[int]float64{0: 1}
	for i := range o.Variables {
		next := map[int]float64{}
		for s, w := range weights {
			for value := range 2 {
				next[s+statistic(i, value)] += w * math.Exp(p.Field[2*i+value])
			}
		}
		weights = next
	}
	var z, second, fourth float64 // Σ, Σ S² and Σ S⁴, weighted
	for s, w := range weights {
		square := float64(s * s)
		w *= math.Exp(p.Lambda[0] / 2 * square)
		z, second, fourth = z+w, second+w*square, fourth+w*square*square
	}
	mean := second / z
	deviation := math.Sqrt((fourth/z - mean*mean) / samples)

	total := 0.0
	for _, x := range drawn.Assignments {
		s := 0
		for i, value := range x {
			s += statistic(i, value)
		}
		total += float64(s * s)
	}
	if got := total / samples; math.Abs(got-mean) > 5*deviation {
		t.Errorf("the mean of S² is %.4g, want %.4g ± %.2g", got, mean, deviation)
	}
}
