package aggregate

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// input returns a query with the given weights and values, of an exact decomposition or of an
// estimate.
func anyNumbers(rng *rand.Rand, n int, span int64) []scaled.Number {
	xs := make([]scaled.Number, n)
	for i := range xs {
		xs[i] = scaled.Make(2*rng.Float64()-1, rng.Int64N(2*span+1)-span)
	}
	return xs
}

func numbers(xs ...float64) []scaled.Number {
	out := make([]scaled.Number, len(xs))
	for i, x := range xs {
		out[i] = scaled.FromFloat(x)
	}
	return out
}

func input(exact bool, alpha, z []float64) Input {
	e := btn.Estimate{
		Rule:    btn.Linear,
		Slices:  1,
		Alpha:   numbers(alpha...),
		Quality: &btn.Quality{Exact: exact, LnNormError: math.Inf(-1), ConditionGram: 1},
	}
	for range alpha {
		e.Parts = append(e.Parts, &closed.RankOne{Frame: &btn.Frame{}})
	}
	plan := &btn.Plan{Method: query.MethodExact}
	if !exact {
		plan.Method = query.MethodSymmetryCP
		*e.Quality = btn.Quality{
			Residual:      0.25,
			LnExplained:   math.Log(0.75),
			ConditionGram: 12,
			LnNormError:   math.Log(0.5),
		}
	}
	plan.Estimates = []btn.Estimate{e}
	in := Input{
		Job:        "j-1",
		Query:      3,
		Assignment: &btn.Assignment{Plan: plan, Cache: btn.CacheHit, LnLinks: math.Log(2)},
	}
	for i, x := range z {
		u := btn.UnitValue{
			Unit:  btn.Unit{Query: 3, Part: i},
			Value: btn.Value{Z: scaled.FromFloat(x), Flops: float64(10 * i)},
		}
		in.Values = append(in.Values, u)
	}
	return in
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

func TestExactResult(t *testing.T) {
	in := input(true, []float64{1, 1}, []float64{5, 3})
	in.Assignment.Cost = &query.Cost{Width: 4, Log2Table: 5, Flops: 100, Bytes: 800}
	r := AddUp(in)
	if r.Status != "ok" || r.Error != nil || !r.Exact || r.Method != query.MethodExact || r.Zero ||
		r.Components != 2 ||
		r.Job != "j-1" || r.Query != 3 {
		t.Fatalf("%s", text(t, r.Result))
	}
	if math.Abs(*r.LogZ-math.Log(8)) > 1e-15 || math.Abs(*r.Log10Z-math.Log10(8)) > 1e-15 ||
		*r.CancellationDigits != 0 {
		t.Errorf(
			"ln Z %v, log10 Z %v, cancellation %v for Z = 8", *r.LogZ, *r.Log10Z,
			*r.CancellationDigits,
		)
	}
	if *r.Residual != 0 || *r.LnExplained != 0 || r.ConditionGram != nil || r.Certificate != nil ||
		len(r.Warnings) != 0 {
		t.Errorf("an exact answer has measures of an estimate: %s", text(t, r.Result))
	}
	if r.Cache != "hit" || *r.Plan != *in.Assignment.Cost ||
		r.Plan == in.Assignment.Cost {
		t.Errorf("evidence file, cache or plan not copied: %s", text(t, r.Result))
	}
	for _, part := range []string{`"warnings":[]`, `"timings_ms":{}`, `"certificate":null`, `"error":null`} {
		if s := text(t, r.Result); !strings.Contains(s, part) {
			t.Errorf("%s is not in %s", part, s)
		}
	}
}

func TestEstimate(t *testing.T) {
	in := input(false, []float64{1, -1}, []float64{5, 2}) // Z̃ = 3, bound ½·2 = 1
	in.Assignment.Plan.Warnings, in.Assignment.Warnings = []string{"first"}, []string{"second"}
	r := AddUp(in)
	if r.Status != "ok" || r.Exact || math.Abs(*r.LogZ-math.Log(3)) > 1e-15 ||
		math.Abs(*r.CancellationDigits-math.Log10(7.0/3)) > 1e-15 {
		t.Fatalf("%s", text(t, r.Result))
	}
	if *r.Residual != 0.25 || *r.LnExplained != math.Log(0.75) || *r.ConditionGram != 12 {
		t.Errorf("quality of the decomposition: %s", text(t, r.Result))
	}
	c := r.Certificate
	if math.Abs(c.LnBound) > 1e-12 || math.Abs(*c.LnLower-math.Log(2)) > 1e-12 || math.Abs(c.LnUpper-math.Log(4)) > 1e-12 {
		t.Errorf("certificate of 3 ± 1: %s", text(t, r.Result))
	}
	if !slices.Equal(r.Warnings[:2], []string{"first", "second"}) ||
		!strings.Contains(r.Warnings[2], "estimate of unknown quality") {
		t.Errorf("warnings: %q", r.Warnings)
	}
	if r.Plan != nil {
		t.Errorf("no evidence file and no plan: %s", text(t, r.Result))
	}
	q := in.Assignment.Plan.Estimates[0].Quality
	q.LnExplained, q.ConditionGram, q.LnNormError = math.Inf(-1), math.Inf(1), math.NaN()
	if r := AddUp(in); r.LnExplained != nil || r.ConditionGram != nil || r.Certificate != nil ||
		r.Status != "ok" {
		t.Errorf("numbers that are not finite are not null: %s", text(t, r.Result))
	}
}

func TestZero(t *testing.T) {
	r := AddUp(input(true, []float64{1, 2}, []float64{0, 0}))
	if r.Status != "ok" || !r.Zero || r.LogZ != nil || r.Log10Z != nil || !r.Exact {
		t.Errorf("an exact 0: %s", text(t, r.Result))
	}
	in := input(true, []float64{1}, []float64{1e-300})
	in.Values[0].Value.Z.Exp = -1 << 40 // far below what float64 holds, and still not 0
	if r := AddUp(in); r.Zero || r.LogZ == nil || *r.LogZ > -7e11 {
		t.Errorf("a tiny number is taken for 0: %s", text(t, r.Result))
	}
}

func TestFailures(t *testing.T) {
	unit := func(query, component int, z float64) btn.UnitValue {
		return btn.UnitValue{
			Unit:  btn.Unit{Query: query, Part: component},
			Value: btn.Value{Z: scaled.FromFloat(z)},
		}
	}
	with := func(in Input, change func(*Input)) Input {
		change(&in)
		return in
	}
	ok := func() Input { return input(true, []float64{1, 1}, []float64{5, 3}) }
	budget := &query.ErrorInfo{Code: fault.OverBudget, Message: "needs 3 TiB", Stage: "learn-worker"}
	late := &query.ErrorInfo{Code: fault.Deadline, Message: "too late", Stage: "contract-worker"}
	for _, c := range []struct {
		name string
		in   Input
		code fault.Code
		text string
	}{
		{"negative estimate", input(false, []float64{1, -1}, []float64{2, 5}), fault.FailedEstimate,
			"negative total: -3 as the sum of 2 components, 0.4 digits of which cancelled"},
		{
			"overflow", input(true, []float64{1}, []float64{math.Inf(1)}), fault.Unsupported,
			"left the range of float64",
		},
		{"negative and cancelled",
			with(input(true, []float64{1}, []float64{-1e-17}),
				func(in *Input) { in.Values[0].Value.Digits = 16 }), fault.FailedEstimate, "negative total"},
		{"negative and doubtful",
			with(input(true, []float64{1}, []float64{-1}),
				func(in *Input) { in.Values[0].Value.Doubt = "terms are lost" }), fault.FailedEstimate, "negative total"},
		{"negative exact", input(true, []float64{1, -1}, []float64{2, 5}), fault.BadInput,
			"the total is negative: not a probability model (Z is -3)"},
		{"negative by rounding", input(true, []float64{1, -1}, []float64{1, 1 + 1e-12}), fault.FailedEstimate,
			"negative total: -1e-12 as the sum of 2 components, 12.3 digits"},
		{
			"cancelled", input(true, []float64{1, -1}, []float64{1, 1 + 0x1p-52}),
			fault.FailedEstimate, "total lost all its digits",
		},
		{"cancelled to 0", input(true, []float64{1, -1}, []float64{3, 3}), fault.FailedEstimate,
			"total lost all its digits: 0 is left of 2 components whose sizes add up to 6"},
		{"estimate of 0", input(false, []float64{1}, []float64{0}), fault.FailedEstimate,
			"the total of 1 components is exactly 0, and an estimate cannot show that Z is 0"},
		{
			"NaN", input(true, []float64{1}, []float64{math.NaN()}), fault.Internal,
			"component 0 has weight 1 and value NaN",
		},
		{
			"infinite weight", input(true, []float64{math.Inf(1)}, []float64{1}), fault.Internal,
			"component 0 has weight +Inf and value 1",
		},
		{
			"missing", with(ok(), func(in *Input) { in.Values = in.Values[:1] }),
			fault.Internal, "the value of component 1 of 2 is missing",
		},
		{"contradiction", with(ok(), func(in *Input) { in.Values = append(in.Values, unit(3, 1, 4)) }), fault.Internal,
			"component 1 arrived twice with different values, 4 and 3"},
		{"out of range", with(ok(), func(in *Input) { in.Values = append(in.Values, unit(3, 2, 4)) }), fault.Internal,
			"a value of component 2 arrived, the plan has 2"},
		{"below range", with(ok(), func(in *Input) { in.Values = append(in.Values, unit(3, -1, 4)) }), fault.Internal,
			"a value of component -1 arrived"},
		{"other query", with(ok(), func(in *Input) { in.Values = append(in.Values, unit(2, 0, 5)) }), fault.Internal,
			"a value of query 2 arrived for query 3"},
		{
			"no assignment", with(ok(), func(in *Input) { in.Assignment = nil }),
			fault.Internal, "query 3 has no assignment",
		},
		{
			"no decomposition", with(ok(), func(in *Input) { in.Assignment.Plan = nil }),
			fault.Internal, "query 3 has no plan",
		},
		{"weights missing", with(ok(), func(in *Input) { in.Assignment.Plan.Estimates[0].Alpha = numbers(1) }), fault.Internal,
			"an estimate has 2 components and 1 weights"},
		{"assigned error", with(ok(), func(in *Input) { in.Assignment.Plan, in.Assignment.Error = nil, budget }), fault.OverBudget,
			"needs 3 TiB"},
		{
			"unit's error", with(ok(), func(in *Input) { in.Values[1].Error = late }),
			fault.Deadline, "too late",
		},
		{"unit's error before others missing",
			with(ok(), func(in *Input) { in.Values = in.Values[1:]; in.Values[0].Error = late }), fault.Deadline, "too late"},
		{"lowest unit's error", with(ok(), func(in *Input) { in.Values[1].Error, in.Values[0].Error = late, budget }),
			fault.OverBudget, "needs 3 TiB"},
	} {
		r := AddUp(c.in)
		if r.Status != "error" || r.Error == nil || r.Error.Code != c.code ||
			!strings.Contains(r.Error.Message, c.text) {
			t.Errorf("%s: %s, want %s: %q", c.name, text(t, r.Result), c.code, c.text)
			continue
		}
		if r.LogZ != nil || r.Log10Z != nil || r.Zero || r.Exact || r.Certificate != nil {
			t.Errorf("%s: a failed query has a number: %s", c.name, text(t, r.Result))
		}
		if own := r.Error.Stage == "aggregator"; own == (c.code == fault.OverBudget || c.code == fault.Deadline) {
			t.Errorf("%s: stage %q", c.name, r.Error.Stage)
		}
	}
}

// The answer is the same, byte by byte, whatever arrives first and however often.
func TestResultDoesNotDependOnArrival(t *testing.T) {
	rng := rand.New(rand.NewPCG(61, 1))
	for trial := range 200 {
		n := 1 + rng.IntN(20)
		in := input(false, make([]float64, n), make([]float64, n))
		in.Assignment.Plan.Estimates[0].Alpha = anyNumbers(rng, n, 80)
		for i, z := range anyNumbers(rng, n, 80) {
			in.Values[i].Value.Z = z
			if trial%4 == 3 && rng.IntN(3) == 0 {
				in.Values[i].Error = &query.ErrorInfo{
					Code:    fault.Internal,
					Message: "broken",
					Stage:   string(rune('a' + i)),
				}
			}
		}
		want := text(t, AddUp(in).Result)
		for range 5 {
			in.Values = append(in.Values, in.Values[rng.IntN(len(in.Values))])
			rng.Shuffle(
				len(in.Values),
				func(i, j int) { in.Values[i], in.Values[j] = in.Values[j], in.Values[i] },
			)
			if got := text(t, AddUp(in).Result); got != want {
				t.Fatalf("trial %d:\n%s\nafter shuffling\n%s", trial, want, got)
			}
		}
	}
}

func TestPlanFitsJSON(t *testing.T) {
	in := input(true, []float64{1}, []float64{5})
	in.Assignment.Cost = &query.Cost{
		Width:     3000,
		Log2Table: 3000,
		Flops:     math.Inf(1),
		Bytes:     math.Inf(1),
	}
	if r := AddUp(in); r.Plan == nil || r.Plan.Flops != math.MaxFloat64 ||
		r.Plan.Log2Table != 3000 {
		t.Errorf("a plan beyond float64: %s", text(t, r.Result))
	}
	in.Assignment.Cost.Flops = math.NaN()
	if r := AddUp(in); r.Plan != nil {
		t.Errorf("a plan of NaN: %s", text(t, r.Result))
	}
}

func TestRunSumsTheComponents(t *testing.T) {
	in := input(true, []float64{1, 1}, []float64{5, 3})
	if r := AddUp(in); r.Run == nil || r.Run.Flops != 10 || r.Run.Slices != 0 {
		t.Errorf("run %+v of components of 0 and 10 flops", r.Run)
	}
	tree := &exact.Tree{Count: 9}
	in.Assignment.Plan.Estimates[0].Parts = []btn.Part{
		&exact.Slices{Tree: tree, To: 4},
		&exact.Slices{Tree: tree, From: 4, To: 9},
	}
	if r := AddUp(in); r.Run == nil || r.Run.Flops != 10 || r.Run.Slices != 9 {
		t.Errorf("run %+v of 9 slices", r.Run)
	}
	in.Values = in.Values[:1]
	if r := AddUp(in); r.Run != nil || r.Status != "error" {
		t.Errorf("run %+v though a value is missing", r.Run)
	}
}
