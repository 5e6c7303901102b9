package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// windows returns a query over whole regions of growing size, ln Z less the Bethe value being
// given.
func windows(lnSums ...float64) Input {
	kinds, regions := make([]string, len(lnSums)), make([]int64, len(lnSums))
	for k := range lnSums {
		kinds[k], regions[k] = "windows", int64(10-k)
	}
	in := regionLadder(&btn.Propagation{Converged: true}, kinds, lnSums, regions)
	for k := range in.Values {
		in.Values[k].Value.Region.LnBethe = 10
	}
	return in
}

// TestRegionsCountFixedPoints: an attractive grid was off by 0.79 with four fixed points of belief
// propagation, stated 0.003.
func TestRegionsCountFixedPoints(t *testing.T) {
	in := windows(-0.843, -0.817, -0.793, -0.792)
	if r := Result(in); r.Uncertainty == nil || *r.Uncertainty > 0.1 {
		t.Fatalf("one fixed point: %s", text(t, r))
	}
	in.Assignment.Propagation.Phases = []float64{10, 4, 3, 2}
	if r := Result(in); *r.Uncertainty < math.Log(4) {
		t.Errorf("four fixed points: %s", text(t, r))
	}
}

// TestRegionsOfConstraints: an unsatisfiable parity model was given ln Z with confidence.
func TestRegionsOfConstraints(t *testing.T) {
	in := windows(0, 0, 0)
	in.Assignment.Hard = true
	r := Result(in)
	if r.Ended == "settled" || r.Uncertainty != nil ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "do not change with their size") {
		t.Errorf("a plateau: %s", text(t, r))
	}
	for i := range in.Values {
		in.Values[i].Value.Region.NonPositive = 1
	}
	if r := Result(in); r.Status != "error" || r.Error.Code != fault.FailedEstimate ||
		!strings.Contains(r.Error.Message, "Z may be 0") {
		t.Errorf("a region of which nothing is possible: %s", text(t, r))
	}
	in.Assignment.Hard = false
	if r := Result(in); r.Status != "ok" {
		t.Errorf("without constraints: %s", text(t, r))
	}
}

// TestEntriesLostToTheRangeAreSaid: 7e-11 was stated for an estimate that was off by 0.25.
func TestEntriesLostToTheRangeAreSaid(t *testing.T) {
	in := ladder(1e-9, step{0, 8, []float64{2}, false}, step{1, 8, []float64{2}, false})
	in.Assignment.Plan.Estimates[0].Lossless = true
	in.Assignment.Unsure = true
	r := Result(in)
	if r.Status != "ok" || r.Uncertainty != nil || r.Ended == "settled" ||
		!strings.Contains(strings.Join(r.Warnings, ";"), "terms may be lost") {
		t.Errorf("%s", text(t, r))
	}
}
