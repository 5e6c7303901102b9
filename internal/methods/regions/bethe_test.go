package regions

import (
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestBoundsAreNoFirstValue: what a plan takes until there is a value is with the bounds before it, without those behind.
func TestBoundsAreNoFirstValue(t *testing.T) {
	estimate := func(rule btn.Rule, flops float64) btn.Estimate {
		return btn.Estimate{Rule: rule, Cost: query.Cost{Flops: flops}}
	}
	bounds, components := estimate(btn.Bounding, 3), estimate(btn.Pooled, 50)
	for _, c := range []struct {
		of   []btn.Estimate
		want float64
	}{{[]btn.Estimate{bounds, components, components}, 53}, {[]btn.Estimate{components, bounds}, 50}} {
		if got := flopsBeforeValue(&btn.Plan{Estimates: c.of}); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
