package questions

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/aggregate"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// askedOver is a query with one component of value z·2^exp, asked over the query before over.
func askedOver(q int, exact bool, z float64, exp int64, over int) aggregate.Input {
	in := input(exact, 1)
	in.Query, in.Assignment.Asked = q, &btn.Asked{Query: query.Query{Over: over}}
	in.Values[0].Query, in.Values[0].Value.Z = q, scaled.Make(z, exp)
	return in
}

// input returns a demand with one component, of an exact decomposition or of an estimate.
func input(isExact bool, z float64) aggregate.Input {
	e := btn.Estimate{
		Rule: btn.Linear, Slices: 1, Alpha: []scaled.Number{scaled.One}, Parts: []btn.Part{&closed.RankOne{Frame: &btn.Frame{}}},
		Quality: &btn.Quality{Exact: isExact, LnNormError: math.Inf(-1), ConditionGram: 1},
	}
	plan := &btn.Plan{Method: query.MethodExact}
	if !isExact {
		plan.Method = query.MethodSymmetryCP
		*e.Quality = btn.Quality{Residual: 0.25, LnExplained: math.Log(0.75), ConditionGram: 12, LnNormError: math.Log(0.5)}
	}
	plan.Estimates = []btn.Estimate{e}
	return aggregate.Input{
		Job: "j-1", Assignment: &btn.Assignment{Plan: plan, Cache: btn.CacheHit, LnLinks: math.Log(2)},
		Values: []btn.UnitValue{{Value: btn.Value{Z: scaled.FromFloat(z)}}},
	}
}

// answerOf is the result of a job of one demand.
func answerOf(in aggregate.Input) query.Result {
	if in.Assignment.Asked == nil {
		in.Assignment.Asked = &btn.Asked{}
	}
	return Results([]aggregate.Input{in})[0]
}

// text returns the result as JSON; a NaN or Inf anywhere fails the test.
func text(t *testing.T, r query.Result) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatalf("the result does not fit JSON: %v", err)
	}
	return string(b)
}

func TestRatiosOfQueries(t *testing.T) {
	failed := askedOver(5, true, 1, 0, 1)
	failed.Assignment.Error = &query.ErrorInfo{
		Code:    fault.OverBudget,
		Message: "too wide",
		Stage:   "learn-worker",
	}
	results := Results([]aggregate.Input{
		askedOver(0, true, 8, 1<<40, 0), // beyond float64
		// a quarter of it, though the logarithms agree in twelve digits
		askedOver(1, true, 2, 1<<40, 1),
		askedOver(2, true, 0, 0, 1),       // impossible
		askedOver(3, true, 3, 0, 3),       // over what is impossible
		askedOver(4, true, 0, 0, 3),       // both
		failed,                            // no answer
		askedOver(6, true, 1, 0, 6),       // over what has no answer
		askedOver(7, false, 3, 0, 0),      // an estimate
		askedOver(8, true, 1.5, 0, 8),     // over an estimate
		askedOver(9, true, 1, 0, 99),      // over nothing
		askedOver(10, true, 16, 1<<40, 2), // of two later and earlier ones
	})
	for q, want := range map[int]float64{1: math.Log(0.25), 8: math.Log(0.5), 10: math.Log(8)} {
		if r := results[q]; r.Ratio == nil || math.Abs(*r.Ratio.Ln-want) > 1e-15 {
			t.Errorf("query %d: ratio %v, want %v: %s", q, r.Ratio, want, text(t, r))
		}
	}
	if r := results[2].Ratio; r == nil || r.Ln != nil || r.P != nil { // Z is 0, and it is no event of the other query
		t.Errorf("an impossible query: ratio %+v", r)
	}
	for q, want := range map[int]string{0: "", 3: "Z of query 2, which this one is asked over, is 0", 4: "Z of query 2",
		5: "", 6: "query 5, which this one is asked over, has no answer", 9: "query 98 is not in this job"} {
		r := results[q]
		warnings := strings.Join(r.Warnings, "; ")
		if r.Ratio != nil || want == "" && warnings != "" || !strings.Contains(warnings, want) {
			t.Errorf("query %d: ratio %v, warnings %q, want %q", q, r.Ratio, warnings, want)
		}
	}
	if !results[2].Zero || results[8].Exact || !results[10].Exact ||
		!strings.Contains(strings.Join(results[8].Warnings, ";"), "only an estimate") {
		t.Errorf("%s\n%s", text(t, results[2]), text(t, results[8]))
	}
}

// eventOver is askedOver for a query whose evidence is that of the one it is asked over and more.
func eventOver(q int, exact bool, z float64, exp int64, over int) aggregate.Input {
	in := askedOver(q, exact, z, exp, over)
	in.Assignment.Asked.IsEvent = true
	return in
}

// TestNoProbabilityIsAboveOne: ln P = 0.22 was given out.
func TestNoProbabilityIsAboveOne(t *testing.T) {
	results := Results([]aggregate.Input{
		askedOver(0, false, 1, 0, 0),
		eventOver(1, false, 1.25, 0, 1),      // an estimate of nothing stated
		eventOver(2, false, 1+1e-12, 0, 1),   // rounding
		eventOver(3, false, 0.5, 0, 1),       // a probability
		askedOver(4, true, 1, 2000, 0),       // exact ones
		eventOver(5, true, 1+1e-12, 2000, 5), // rounding
		askedOver(6, true, 2, 2000, 5),       // no event: whatever it is
	})
	if r := results[1]; r.Status != "error" || r.Error.Code != fault.FailedEstimate ||
		r.Ratio != nil || r.LogZ != nil || r.Exact {
		t.Errorf("a probability of 1.25: %s", text(t, r))
	}
	if w := strings.Join(results[0].Warnings, ";"); !strings.Contains(
		w, "query 1, which restricts this one",
	) {
		t.Errorf("the other query does not say so: %q", w)
	}
	for q, want := range map[int]float64{2: 0, 3: math.Log(0.5), 5: 0, 6: math.Ln2} {
		if r := results[q]; r.Status != "ok" || r.Ratio == nil ||
			math.Abs(*r.Ratio.Ln-want) > 1e-15 {
			t.Errorf("query %d: %s, want %v", q, text(t, r), want)
		}
	}
}

// TestExactEventsOverEstimates: an exact answer that an estimate contradicts stays, and the estimate says so.
func TestExactEventsOverEstimates(t *testing.T) {
	results := Results([]aggregate.Input{askedOver(0, false, 1, 0, 0), eventOver(1, true, 1.25, 0, 1)})
	if r := results[1]; r.Status != "ok" || !r.Exact || r.Ratio != nil || r.LogZ == nil || len(r.Warnings) == 0 {
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
			Answers:     query.Answers{Ratio: &query.Ratio{Ln: finite(lnZ)}},
		}
	}
	r, over := result(0.1, 0.08), result(0, 0.03)
	if limitRatio(r, over); r.Status != "ok" || *r.Ratio.Ln != 0 || len(r.Warnings) != 1 {
		t.Errorf("within: %s", text(t, *r))
	}
	r = result(0.1, 0.05)
	if limitRatio(r, over); r.Status != "error" || r.Ratio != nil || r.Bounds != nil {
		t.Errorf("beyond: %s", text(t, *r))
	}
	if u := over.Uncertainty; u == nil || math.Abs(*u-0.05) > 1e-15 || len(over.Warnings) != 1 {
		t.Errorf("what it is over: %s, want an uncertainty of 0.05", text(t, *over))
	}
}

// TestDemandsOfSeveralKinds: every kind gets the totals of its own demands, and no others.
func TestDemandsOfSeveralKinds(t *testing.T) {
	totals := make([]aggregate.Total, 5)
	for i := range totals {
		totals[i].Result.Query = i
	}
	a := answer{furtherTotals: totals, asked: &btn.Asked{Extra: []btn.Extra{{Kind: "x", Demands: 2}, {Kind: "y", Demands: 3}}}}
	x, y, z := a.furtherTotalsOf("x"), a.furtherTotalsOf("y"), a.furtherTotalsOf("z")
	if len(x) != 2 || len(y) != 3 || x[0].Query != 0 || y[0].Query != 2 || z != nil {
		t.Errorf("x gets %d totals, y %d, z %d", len(x), len(y), len(z))
	}
	seen := map[string]bool{}
	for _, k := range kinds {
		if k.name == "" || seen[k.name] {
			t.Errorf("the name %q of a kind", k.name)
		}
		seen[k.name] = true
	}
}
