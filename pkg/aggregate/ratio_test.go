package aggregate

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/fault"
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
	failed.Assignment.Error = &btn.ErrorInfo{Code: fault.OverBudget, Message: "too wide", Stage: "learn-worker"}
	results := Results([]Input{
		asked(0, true, 8, 1<<40, 0),   // beyond float64
		asked(1, true, 2, 1<<40, 1),   // a quarter of it, though the logarithms agree in twelve digits
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
	for q, want := range map[int]string{0: "", 2: "", 3: "Z of query 2, which this one is asked over, is 0", 4: "Z of query 2", 5: "", 6: "query 5, which this one is asked over, has no answer", 9: "query 98 is not in this job"} {
		r := results[q]
		warnings := strings.Join(r.Warnings, "; ")
		if r.LnRatio != nil || want == "" && warnings != "" || !strings.Contains(warnings, want) {
			t.Errorf("query %d: ratio %v, warnings %q, want %q", q, r.LnRatio, warnings, want)
		}
	}
	if !results[2].Zero || !strings.Contains(strings.Join(results[8].Warnings, ";"), "only an estimate") {
		t.Errorf("%s\n%s", text(t, results[2]), text(t, results[8]))
	}
}

func TestRunSumsTheComponents(t *testing.T) {
	in := input(true, []float64{1, 1}, []float64{5, 3})
	if r := Result(in); r.Run == nil || r.Run.Flops != 10 || r.Run.Slices != 0 {
		t.Errorf("run %+v of components of 0 and 10 flops", r.Run)
	}
	in.Decomposition.Contraction = &btn.Contraction{Count: 9}
	in.Decomposition.Components = []btn.Component{{Class: btn.ClassBase, From: 0, To: 4}, {Class: btn.ClassBase, From: 4, To: 9}}
	if r := Result(in); r.Run == nil || r.Run.Flops != 10 || r.Run.Slices != 9 {
		t.Errorf("run %+v of 9 slices", r.Run)
	}
	in.Values = in.Values[:1]
	if r := Result(in); r.Run != nil || r.Status != "error" {
		t.Errorf("run %+v though a value is missing", r.Run)
	}
}
