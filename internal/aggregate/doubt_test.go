package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// windows returns a query over whole regions of growing size, ln Z less the Bethe value being given.
func windows(lnSums ...float64) Input {
	d := &btn.Decomposition{Method: btn.MethodRegions, Growth: &btn.Growth{Accuracy: 1e-9}}
	in := Input{Job: "j-1", Decomposition: d, Assignment: &btn.Assignment{Propagation: &btn.Propagation{Converged: true}}}
	for k, x := range lnSums {
		d.Growth.Rungs = append(d.Growth.Rungs, btn.Rung{Family: btn.FamilyRegions, Kind: "windows", Size: k + 2, Count: 1, From: k, To: k + 1})
		d.Components = append(d.Components, btn.Component{Class: btn.ClassRegion, Rung: k})
		d.Alpha = append(d.Alpha, scaled.One)
		in.Values = append(in.Values, btn.UnitValue{Unit: btn.Unit{Component: k}, Value: btn.Value{
			Z: scaled.One, Region: &btn.RegionPart{LnBethe: 10, LnSum: x, Regions: int64(10 - k)},
		}})
	}
	return in
}

// TestRegionsCountFixedPoints: an attractive grid was off by 0.79 with four fixed points of belief propagation, stated 0.003.
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
	if r.Ended == "settled" || r.Uncertainty != nil || !strings.Contains(strings.Join(r.Warnings, ";"), "do not change with their size") {
		t.Errorf("a plateau: %s", text(t, r))
	}
	for i := range in.Values {
		in.Values[i].Value.Region.NonPositive = 1
	}
	if r := Result(in); r.Status != "error" || r.Error.Code != fault.FailedEstimate || !strings.Contains(r.Error.Message, "Z may be 0") {
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
	in.Decomposition.Growth.Rungs[0].Family = btn.FamilyTree
	in.Assignment.Unsure = true
	r := Result(in)
	if r.Status != "ok" || r.Uncertainty != nil || r.Ended == "settled" || !strings.Contains(strings.Join(r.Warnings, ";"), "terms may be lost") {
		t.Errorf("%s", text(t, r))
	}
}
