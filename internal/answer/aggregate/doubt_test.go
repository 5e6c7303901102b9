package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// windows returns a query over whole regions of growing size, ln Z less the Bethe value being
// given.
func windows(lnSums ...float64) Input {
	kinds, regions := make([]string, len(lnSums)), make([]int64, len(lnSums))
	for k := range lnSums {
		kinds[k], regions[k] = "windows", int64(10-k)
	}
	in := regionLadder(&query.Propagation{Converged: true}, kinds, lnSums, regions)
	for k := range in.Values {
		in.Values[k].Value.Region.LnBethe = 10
	}
	return in
}

// TestRegionsCountFixedPoints: an attractive grid was off by 0.79 with four fixed points of belief
// propagation, stated 0.003.
func TestRegionsCountFixedPoints(t *testing.T) {
	in := windows(-0.843, -0.817, -0.793, -0.792)
	if r := AddUp(in); r.Uncertainty == nil || *r.Uncertainty > 0.1 {
		t.Fatalf("one fixed point: %s", text(t, r.Result))
	}
	in.Assignment.Propagation.Phases = []float64{10, 4, 3, 2}
	if r := AddUp(in); *r.Uncertainty < math.Log(4) {
		t.Errorf("four fixed points: %s", text(t, r.Result))
	}
}

// TestRegionsOfConstraints: an unsatisfiable parity model was given ln Z with confidence.
func TestRegionsOfConstraints(t *testing.T) {
	in := windows(0, 0, 0)
	in.Assignment.Hard = true
	r := AddUp(in)
	if r.Ended == "settled" || r.Uncertainty != nil ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "do not change with their size") {
		t.Errorf("a plateau: %s", text(t, r.Result))
	}
	for i := range in.Values {
		in.Values[i].Value.Region.NonPositive = 1
	}
	if r := AddUp(in); r.Status != "error" || r.Error.Code != fault.FailedEstimate ||
		!strings.Contains(r.Error.Message, "Z may be 0") {
		t.Errorf("a region of which nothing is possible: %s", text(t, r.Result))
	}
	in.Assignment.Hard = false
	if r := AddUp(in); r.Status != "ok" {
		t.Errorf("without constraints: %s", text(t, r.Result))
	}
}

// TestEntriesLostToTheRangeAreSaid: 7e-11 was stated for an estimate that was off by 0.25.
func TestEntriesLostToTheRangeAreSaid(t *testing.T) {
	in := ladder(1e-9, step{0, 8, []float64{2}, false}, step{1, 8, []float64{2}, false})
	in.Assignment.Plan.Estimates[0].Lossless = true
	in.Assignment.Unsure = true
	r := AddUp(in)
	if r.Status != "ok" || r.Uncertainty != nil || r.Ended == "settled" ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "terms may be lost") {
		t.Errorf("%s", text(t, r.Result))
	}
}

// TestASingleBondIsAsUncertainAsItsTruncations: a ferromagnet's two plans agreed within 1e-3 at their first bond and were off by 2.6,
// a glass's within 0.12 and were off by 8.
func TestASingleBondIsAsUncertainAsItsTruncations(t *testing.T) {
	for _, c := range []struct {
		discarded float64
		hard      bool
		want      float64
	}{{1e-6, false, 1e-4}, {1e-4, false, 0.01}, {0.04, false, 1}, {0.36, false, 3}, {0.04, true, 4}, {1e-9, false, 1e-5}} {
		in := ladder(1e-9, step{0, 8, []float64{10}, true}, step{1, 8, []float64{10.000001}, true})
		for k := range in.Values {
			in.Values[k].Value.Truncation.Discarded = c.discarded
		}
		in.Assignment.Hard = c.hard
		if r := AddUp(in); r.Uncertainty == nil || math.Abs(*r.Uncertainty-c.want) > 1e-9 {
			t.Errorf("%v discarded, constraints %t, want %v: %s", c.discarded, c.hard, c.want, text(t, r.Result))
		}
	}
}

// TestRegionsOfOneSize state all of their correction, four times as much beside constraints, and nothing where it is 0.
func TestRegionsOfOneSize(t *testing.T) {
	bethe := 10.0
	for _, c := range []struct {
		sum, want float64
		hard      bool
	}{{0.2, 0.2, false}, {-0.2, 0.2, false}, {0.2, 0.8, true}, {0, math.NaN(), true}, {0, math.NaN(), false}} {
		in := windows(c.sum)
		in.Assignment.Hard = c.hard
		in.Assignment.Propagation.LogZ = &bethe
		r := AddUp(in)
		if (r.Uncertainty == nil) != math.IsNaN(c.want) || r.Uncertainty != nil && math.Abs(*r.Uncertainty-c.want) > 1e-9 {
			t.Errorf("%+v: %s", c, text(t, r.Result))
		}
	}
}

// TestRegionsWhoseChangesFallSlowly: an attractive grid's windows moved by 0.04 at last and were off by 0.54, in a phase that belief
// propagation had not found.
func TestRegionsWhoseChangesFallSlowly(t *testing.T) {
	bethe := 10.0
	for name, c := range map[string]struct {
		sums []float64
		want float64
	}{
		"slowly":          {[]float64{1, 1.2, 1.3}, 0.39},
		"fast":            {[]float64{1, 1.2, 1.25}, 0.05},
		"two only":        {[]float64{1, 1.2}, 0.2},
		"two only slowly": {[]float64{1, 1.5}, 0.5},
		"a single size":   {[]float64{1}, 1},
	} {
		in := windows(c.sums...)
		in.Assignment.Propagation.LogZ = &bethe
		r := AddUp(in)
		if r.Uncertainty == nil || math.Abs(*r.Uncertainty-c.want) > 1e-9 {
			t.Errorf("%s: want %v: %s", name, c.want, text(t, r.Result))
		}
		if said := strings.Contains(strings.Join(r.Warnings, ";"), "do not converge with their size"); said != strings.HasSuffix(name, "slowly") {
			t.Errorf("%s: it warns of %q", name, r.Warnings)
		}
	}
}
