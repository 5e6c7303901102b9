package truth

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestClassesAreExact: sums over counts are exact, for any sign of coupling and any range of weights, and no further off than an exact ln Z
// may be.
func TestClassesAreExact(t *testing.T) {
	draw := OfFamily(7, "classes")
	exact, all := 0, 0
	for i := uint64(0); all < 30; i++ {
		c, truth := draw(i)
		if len(c.Model.Domains) > 250 {
			continue // takes seconds
		}
		all++
		o := Run(c, DefaultLimits)
		for _, v := range Check(c, truth, o) {
			t.Errorf("%s: %s: %s", c.Name, v.Class, v.Detail)
		}
		if o.Err != nil {
			t.Errorf("%s: %v", c.Name, o.Err)
			continue
		}
		switch r := o.Results[0]; {
		case r.Status != query.StatusOK:
			t.Errorf("%s: %s", c.Name, r.Error.Message)
		case !r.Exact:
			t.Logf("%s is not exact: %v", c.Name, r.Warnings)
		case r.Zero:
			exact++
		default:
			exact++
			if off := math.Abs(*r.LogZ - truth[0].LnZ); off > 1e-10+math.Ldexp(math.Abs(truth[0].LnZ), -50) {
				t.Errorf("%s: ln Z %v, truth %v: off by %.2g", c.Name, *r.LogZ, truth[0].LnZ, off)
			}
		}
	}
	if 100*exact < 99*all {
		t.Errorf("%d of %d are exact", exact, all)
	}
}
