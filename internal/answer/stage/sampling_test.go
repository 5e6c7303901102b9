package stage

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestSampledBoundsShareTheirLevel: of four queries with samples each has a quarter of δ,
// independent of the one without them.
func TestSampledBoundsShareTheirLevel(t *testing.T) {
	const n = 64
	plan := &btn.Plan{Method: query.MethodSampled, Accuracy: 1e-9, Estimates: []btn.Estimate{{
		Rule: btn.Pooled, Slices: 1, Parts: []btn.Part{&sampled.Sampled{Sampling: &sampled.Annealing{Rungs: 2}, To: n}},
	}}}
	lower := func(queries int) float64 {
		assignments := []btn.Assignment{{Error: &query.ErrorInfo{Code: "unsupported"}}}
		var values []btn.UnitValue
		for q := range queries {
			assignments = append(assignments, btn.Assignment{Plan: plan})
			values = append(values, btn.UnitValue{
				Unit: btn.Unit{Query: q + 1}, Value: btn.Value{Z: scaled.FromLog(0), Weights: &btn.Weights{Ln: make([]float64, n)}},
			})
		}
		return *Aggregate("j-1", assignments, values)[1].Bounds.Lower
	}
	if got, want := lower(1)-lower(4), math.Log(4)/n; math.Abs(got-want) > 1e-12 {
		t.Errorf("bounds of one query and of four are %v apart, not %v", got, want)
	}
}
