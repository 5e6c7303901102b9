package aggregate

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestBoundsHoldForAllQueriesOfAJob: δ is divided by the queries with samples. Of N equal weights the bound below is that of the product of
// N means, ln w − ln(2/δ)/N with half of the query's δ for the first estimate.
func TestBoundsHoldForAllQueriesOfAJob(t *testing.T) {
	const n = 128
	for _, queries := range []int{0, 1, 2, 40} {
		in := Input{Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}
		in = withSampled(in, 0, make([]float64, n))
		in.Sampling = queries
		want := -math.Log(2*2*float64(max(queries, 1))/1e-3) / n
		if r := AddUp(in); r.Bounds == nil || math.Abs(*r.Bounds.Lower-want) > 1e-12 || r.Bounds.Level != 0.999 {
			t.Errorf("%d queries: %s, not %v", queries, text(t, r.Result), want)
		}
	}
	drawn := btn.Estimate{Rule: btn.Pooled, Parts: []btn.Part{&sampled.Sampled{Sampling: &sampled.Annealing{}, To: 1}}}
	pooled := []btn.Estimate{{Rule: btn.Bounding}, drawn, drawn}
	job := []btn.Assignment{
		{}, {Plan: &btn.Plan{Estimates: pooled}}, {Plan: &btn.Plan{Estimates: pooled[:1]}}, {Plan: &btn.Plan{Estimates: pooled}},
	}
	if got := CountSampling(job); got != 2 {
		t.Errorf("%d of two queries have samples", got)
	}
}

// TestWeightsThatAreNoNumbers: their mean is a failure with a reason.
func TestWeightsThatAreNoNumbers(t *testing.T) {
	for _, x := range []float64{math.Inf(1), math.NaN()} {
		in := Input{Assignment: &btn.Assignment{Plan: &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9}}}
		if r := AddUp(withSampled(in, 0, []float64{0, x, 1, 2})); r.Status != query.StatusError || r.Error == nil {
			t.Errorf("a weight of %v: %s", x, text(t, r.Result))
		}
	}
}
