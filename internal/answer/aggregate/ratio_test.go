package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// asked is a query with one component of value z·2^exp, asked over the query before over.
func asked(q int, exact bool, z float64, exp int64, over int) Input {
	in := input(exact, []float64{1}, []float64{z})
	in.Query, in.Assignment.Over = q, over
	in.Values[0].Query, in.Values[0].Value.Z = q, scaled.Make(z, exp)
	return in
}

func TestRatiosOfQueries(t *testing.T) {
	failed := asked(5, true, 1, 0, 1)
	failed.Assignment.Error = &query.ErrorInfo{
		Code:    fault.OverBudget,
		Message: "too wide",
		Stage:   "learn-worker",
	}
	results := Results([]Input{
		asked(0, true, 8, 1<<40, 0), // beyond float64
		// a quarter of it, though the logarithms agree in twelve digits
		asked(1, true, 2, 1<<40, 1),
		asked(2, true, 0, 0, 1),       // impossible
		asked(3, true, 3, 0, 3),       // over what is impossible
		asked(4, true, 0, 0, 3),       // both
		failed,                        // no answer
		asked(6, true, 1, 0, 6),       // over what has no answer
		asked(7, false, 3, 0, 0),      // an estimate
		asked(8, true, 1.5, 0, 8),     // over an estimate
		asked(9, true, 1, 0, 99),      // over nothing
		asked(10, true, 16, 1<<40, 2), // of two later and earlier ones
	})
	for q, want := range map[int]float64{1: math.Log(0.25), 8: math.Log(0.5), 10: math.Log(8)} {
		if r := results[q]; r.LnRatio == nil || math.Abs(*r.LnRatio-want) > 1e-15 {
			t.Errorf("query %d: ratio %v, want %v: %s", q, r.LnRatio, want, text(t, r))
		}
	}
	for q, want := range map[int]string{0: "", 2: "", 3: "Z of query 2, which this one is asked over, is 0", 4: "Z of query 2",
		5: "", 6: "query 5, which this one is asked over, has no answer", 9: "query 98 is not in this job"} {
		r := results[q]
		warnings := strings.Join(r.Warnings, "; ")
		if r.LnRatio != nil || want == "" && warnings != "" || !strings.Contains(warnings, want) {
			t.Errorf("query %d: ratio %v, warnings %q, want %q", q, r.LnRatio, warnings, want)
		}
	}
	if !results[2].Zero ||
		!strings.Contains(strings.Join(results[8].Warnings, ";"), "only an estimate") {
		t.Errorf("%s\n%s", text(t, results[2]), text(t, results[8]))
	}
}

// event is asked for a query whose evidence is that of the one it is asked over and more.
func event(q int, exact bool, z float64, exp int64, over int) Input {
	in := asked(q, exact, z, exp, over)
	in.Assignment.Event = true
	return in
}

// TestNoProbabilityIsAboveOne: ln P = 0.22 was given out.
func TestNoProbabilityIsAboveOne(t *testing.T) {
	results := Results([]Input{
		asked(0, false, 1, 0, 0),
		event(1, false, 1.25, 0, 1),      // an estimate of nothing stated
		event(2, false, 1+1e-12, 0, 1),   // rounding
		event(3, false, 0.5, 0, 1),       // a probability
		asked(4, true, 1, 2000, 0),       // exact ones
		event(5, true, 1+1e-12, 2000, 5), // rounding
		asked(6, true, 2, 2000, 5),       // no event: whatever it is
	})
	if r := results[1]; r.Status != "error" || r.Error.Code != fault.FailedEstimate ||
		r.LnRatio != nil || r.LogZ != nil || r.Exact {
		t.Errorf("a probability of 1.25: %s", text(t, r))
	}
	if w := strings.Join(results[0].Warnings, ";"); !strings.Contains(
		w, "query 1, which restricts this one",
	) {
		t.Errorf("the other query does not say so: %q", w)
	}
	for q, want := range map[int]float64{2: 0, 3: math.Log(0.5), 5: 0, 6: math.Ln2} {
		if r := results[q]; r.Status != "ok" || r.LnRatio == nil ||
			math.Abs(*r.LnRatio-want) > 1e-15 {
			t.Errorf("query %d: %s, want %v", q, text(t, r), want)
		}
	}
}

// TestExactEventsOverEstimates: an exact answer that an estimate contradicts stays, and the estimate says so.
func TestExactEventsOverEstimates(t *testing.T) {
	results := Results([]Input{asked(0, false, 1, 0, 0), event(1, true, 1.25, 0, 1)})
	if r := results[1]; r.Status != "ok" || !r.Exact || r.LnRatio != nil || r.LogZ == nil || len(r.Warnings) == 0 {
		t.Errorf("exact: %s", text(t, r))
	}
	if w := strings.Join(results[0].Warnings, ";"); !strings.Contains(w, "query 1, which restricts this one") {
		t.Errorf("the other query does not say so: %q", w)
	}
}

func TestProbabilitiesWithinWhatIsStated(t *testing.T) {
	result := func(lnZ, stated float64) *query.Result {
		return &query.Result{
			Status:      "ok",
			LogZ:        finite(lnZ),
			Uncertainty: finite(stated),
			Bounds:      &query.Bounds{Upper: finite(lnZ + 1)},
			LnRatio:     finite(lnZ),
		}
	}
	r, over := result(0.1, 0.08), result(0, 0.03)
	if improbable(r, over); r.Status != "ok" || *r.LnRatio != 0 || len(r.Warnings) != 1 {
		t.Errorf("within: %s", text(t, *r))
	}
	r = result(0.1, 0.05)
	if improbable(r, over); r.Status != "error" || r.LnRatio != nil || r.Bounds != nil {
		t.Errorf("beyond: %s", text(t, *r))
	}
	if u := over.Uncertainty; u == nil || math.Abs(*u-0.05) > 1e-15 || len(over.Warnings) != 1 {
		t.Errorf("what it is over: %s, want an uncertainty of 0.05", text(t, *over))
	}
}

func TestRunSumsTheComponents(t *testing.T) {
	in := input(true, []float64{1, 1}, []float64{5, 3})
	if r := Result(in); r.Run == nil || r.Run.Flops != 10 || r.Run.Slices != 0 {
		t.Errorf("run %+v of components of 0 and 10 flops", r.Run)
	}
	tree := &exact.Tree{Count: 9}
	in.Assignment.Plan.Estimates[0].Parts = []btn.Part{
		&exact.Slices{Tree: tree, To: 4},
		&exact.Slices{Tree: tree, From: 4, To: 9},
	}
	if r := Result(in); r.Run == nil || r.Run.Flops != 10 || r.Run.Slices != 9 {
		t.Errorf("run %+v of 9 slices", r.Run)
	}
	in.Values = in.Values[:1]
	if r := Result(in); r.Run != nil || r.Status != "error" {
		t.Errorf("run %+v though a value is missing", r.Run)
	}
}
