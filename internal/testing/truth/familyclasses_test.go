package truth

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestClassesAreExact: the product answers 99 % of models with classes of interchangeable variables exactly, with an error of ln Z of at
// most 1e-10 + 2^−50 |ln Z|.
func TestClassesAreExact(t *testing.T) {
	draw := OfFamily(7, "classes")
	exact, cases := 0, 0
	for i := uint64(0); cases < 30; i++ {
		c, truth := draw(i)
		if len(c.Model.Domains) > 250 {
			continue // takes seconds
		}
		cases++
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
			tolerance := 1e-10 + math.Ldexp(math.Abs(truth[0].LnZ), -50)
			if e := math.Abs(*r.LogZ - truth[0].LnZ); e > tolerance {
				t.Errorf("%s: ln Z %v, truth %v: off by %.2g", c.Name, *r.LogZ, truth[0].LnZ, e)
			}
		}
	}
	if 100*exact < 99*cases {
		t.Errorf("%d of %d are exact", exact, cases)
	}
}
