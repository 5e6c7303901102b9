package truth

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// TestClassesAreExact: sums over counts are exact, for any sign of coupling and any range, and no answer is beyond its bounds.
func TestClassesAreExact(t *testing.T) {
	n := 60
	if testing.Short() {
		n = 20
	}
	if s := os.Getenv("CLASSES"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	seed := uint64(7)
	if s := os.Getenv("SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	place := uint64(0)
	for k, f := range Families {
		if f == "classes" {
			place = uint64(k)
		}
	}
	exact, all := 0, 0
	worst := 0.0
	for i := range uint64(n) {
		start := time.Now()
		c, truth := DrawFamily(seed, i*uint64(len(Families))+place)
		drawn := time.Since(start)
		start = time.Now()
		o := Run(c, DefaultLimits)
		if d := time.Since(start); d > 5*time.Second || os.Getenv("VERBOSE") != "" {
			fmt.Printf("%s: %d variables, drawn in %v, answered in %v\n", c.Name, len(c.Model.Domains), drawn, d)
		}
		for _, v := range Check(c, truth, o) {
			t.Errorf("%s: %s: %s", c.Name, v.Class, v.Detail)
		}
		all++
		if o.Err != nil || len(o.Results) == 0 {
			t.Logf("%s: %v", c.Name, o.Err)
			continue
		}
		r := o.Results[0]
		switch {
		case r.Status != btn.StatusOK:
			t.Logf("%s (%d variables): %s", c.Name, len(c.Model.Domains), r.Error.Message)
			continue
		case r.Exact:
			exact++
		default:
			t.Logf("%s (%d variables) is not exact: %v", c.Name, len(c.Model.Domains), r.Warnings)
		}
		if r.Exact && !r.Zero {
			off := math.Abs(*r.LogZ-truth[0].LnZ) / (1e-10 + math.Ldexp(math.Abs(truth[0].LnZ), -50))
			worst = max(worst, off)
			if off > 1 {
				t.Errorf("%s: ln Z %v, truth %v", c.Name, *r.LogZ, truth[0].LnZ)
			}
		}
	}
	if 100*exact < 99*all {
		t.Errorf("%d of %d are exact", exact, all)
	}
	t.Logf("%d of %d are exact, errors up to %.2g of what is certified", exact, all, worst)
}
