package truth

// The tester, tested: every kind of wrong answer is caught.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// sound is a case with everything in it, and its right answers.
func sound(t *testing.T) (*Case, []Truth, []query.Result) {
	t.Helper()
	c := &Case{Name: "sound", Route: RoutePlain,
		Model: &factorgraph.Model{Domains: []int{2, 3}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 0}}},
		}}}
	at := func(x int) factorgraph.Evidence {
		return factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1, Value: x}}}
	}
	both := at(2)
	both.Hard = append([]factorgraph.Observation{{Var: 0, Value: 1}}, both.Hard...)
	c.Queries = []query.Query{
		{Marginals: true, Joint: []int{1}},
		{Evidence: at(0), Over: 1},
		{Evidence: both},
	}
	o := Run(c, DefaultLimits)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	return c, Solve(c.Model, c.Queries), o.Results
}

func number(x float64) *float64 { return &x }

func TestDoctoredAnswersAreCaught(t *testing.T) {
	c, truth, right := sound(t)
	if found := Check(c, truth, Outcome{Results: right}); len(found) > 0 {
		t.Fatalf("right answers are called wrong: %v", found)
	}
	if !right[0].Exact || !right[2].Zero || right[1].Ratio == nil || right[0].Joint == nil {
		t.Fatalf("the case has not everything in it: %+v", right)
	}
	estimate := func(r *query.Result) { r.Exact = false }
	for name, d := range map[string]struct {
		want   string
		doctor func(r []query.Result)
	}{
		"ln Z off by 1e-8": {WrongValue, func(r []query.Result) { r[0].LogZ = number(*r[0].LogZ + 1e-8) }},
		"false zero":       {FalseZero, func(r []query.Result) { r[0].Zero, r[0].LogZ = true, nil }},
		"false zero, estimated": {FalseZero, func(r []query.Result) {
			estimate(&r[0])
			r[0].Zero, r[0].LogZ = true, nil
		}},
		"missed zero": {MissedZero, func(r []query.Result) { r[2].Zero, r[2].LogZ = false, number(-700) }},
		"a marginal": {WrongMar, func(r []query.Result) {
			r[0].Marginals[0].P = []float64{0.4 + 1e-8, 0.6 - 1e-8}
		}},
		"P > 1": {Improbable, func(r []query.Result) { r[0].Marginals[0].P = []float64{1.25, -0.25} }},
		"P > 1, estimated": {Improbable, func(r []query.Result) {
			estimate(&r[0])
			r[0].Marginals[0].P = []float64{1 + 1e-12, 0}
		}},
		"P < 0": {Improbable, func(r []query.Result) {
			estimate(&r[0])
			r[0].Marginals[0].P = []float64{1, -1e-300}
		}},
		"marginals sum to 0.9": {Improbable, func(r []query.Result) {
			estimate(&r[0])
			r[0].Marginals[0].P = []float64{0.5, 0.4}
		}},
		"a joint cell": {WrongJoint, func(r []query.Result) { r[0].Joint.P[0] += 1e-8 }},
		"a ratio":      {WrongRatio, func(r []query.Result) { r[1].Ratio.Ln = number(*r[1].Ratio.Ln - 1e-8) }},
		"± rounding": {Misstated, func(r []query.Result) {
			estimate(&r[0])
			r[0].LogZ, r[0].Uncertainty = number(truth[0].LnZ+1e-8), number(1e-12)
		}},
		"± rounding, Z = 0": {Misstated, func(r []query.Result) {
			estimate(&r[2])
			r[2].Zero, r[2].LogZ, r[2].Uncertainty = false, number(-700), number(1e-12)
		}},
		"a ratio above 1": {RatioAbove, func(r []query.Result) { estimate(&r[1]); r[1].Ratio.Ln = number(0.22) }},
		"a bound": {BrokenBound, func(r []query.Result) {
			estimate(&r[0])
			r[0].Certificate = &query.Certificate{LnUpper: truth[0].LnZ - 1e-6}
		}},
		"a lower bound": {BrokenBound, func(r []query.Result) {
			estimate(&r[0])
			r[0].Certificate = &query.Certificate{LnLower: number(truth[0].LnZ + 1e-6), LnUpper: truth[0].LnZ + 1}
		}},
		"NaN":           {NotFinite, func(r []query.Result) { r[0].Residual = number(math.NaN()) }},
		"no marginals":  {Incomplete, func(r []query.Result) { r[0].Marginals = nil }},
		"no joint":      {Incomplete, func(r []query.Result) { r[0].Joint = nil }},
		"no ratio":      {Incomplete, func(r []query.Result) { r[1].Ratio = nil }},
		"no ln Z":       {Incomplete, func(r []query.Result) { r[0].LogZ = nil }},
		"another query": {Incomplete, func(r []query.Result) { r[0].Query = 1 }},
		"internal": {Untyped, func(r []query.Result) {
			r[0].Status, r[0].Error = "error", &query.ErrorInfo{Code: fault.Internal, Message: "broken"}
		}},
		"blamed": {BlamedInput, func(r []query.Result) {
			r[0].Status, r[0].Error = "error", &query.ErrorInfo{Code: fault.BadInput, Message: "your fault"}
		}},
	} {
		_, _, results := sound(t)
		d.doctor(results)
		found := Check(c, truth, Outcome{Results: results})
		if !slices.ContainsFunc(found, func(v Violation) bool { return v.Class == d.want }) {
			t.Errorf("%s: found %v, want %q", name, found, d.want)
		}
	}
}

func TestBrokenCallsAreCaught(t *testing.T) {
	c, truth, _ := sound(t)
	limits := Limits{Timeout: time.Millisecond, Grace: 20 * time.Millisecond}
	stop := make(chan struct{})
	defer close(stop)
	for want, call := range map[string]func(context.Context) ([]query.Result, error){
		DidNotReturn: func(context.Context) ([]query.Result, error) { <-stop; return nil, nil },
		Panicked:     func(context.Context) ([]query.Result, error) { panic("broken") },
		Untyped:      func(context.Context) ([]query.Result, error) { return nil, errors.New("something") },
		BlamedInput: func(context.Context) ([]query.Result, error) {
			return nil, fault.New(fault.BadInput, "your fault")
		},
		WrongFormat: func(context.Context) ([]query.Result, error) {
			return nil, formatError{errors.New("other entries")}
		},
		Incomplete: func(context.Context) ([]query.Result, error) { return nil, nil },
	} {
		found := Check(c, truth, watch(limits, 0, call))
		if len(found) != 1 || found[0].Class != want {
			t.Errorf("found %v, want %q", found, want)
		}
	}
	late := watch(limits, 0, func(ctx context.Context) ([]query.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if found := Check(c, truth, late); len(found) != 1 || found[0].Class != Unanswered {
		t.Errorf("a deadline of nobody is called %v", found)
	}
	asked := *c
	asked.Timeout = time.Millisecond
	if found := Check(&asked, truth, late); len(found) > 0 {
		t.Errorf("a deadline that is obeyed is called %v", found)
	}
}

func TestFormatsAreCompared(t *testing.T) {
	c, _, _ := sound(t)
	other := clone(c)
	other.Model.Factors[0].Table = &tensor.Dense{
		Shape: []int{2, 3},
		Data:  []float64{1, 2, 3, 4, math.Nextafter(5, 6), 0},
	}
	if same(c.Model, c.Model) != nil || same(c.Model, other.Model) == nil {
		t.Error("one bit of one entry is not seen")
	}
}

// TestShrinkKeepsWhatMatters minimises towards "factor 7 is there and variable 4 is observed".
func TestShrinkKeepsWhatMatters(t *testing.T) {
	c := &Case{Model: &factorgraph.Model{Domains: []int{2, 2, 2, 2, 3}}, Queries: []query.Query{{}, {}}}
	for j := range 9 {
		f := factorgraph.Factor{
			Scope: []int{j % 4},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, float64(j)}},
		}
		c.Model.Factors = append(c.Model.Factors, f)
	}
	c.Queries[1] = query.Query{
		Marginals: true,
		Over:      1,
		Evidence:  factorgraph.Observe(map[int]int{1: 0, 4: 2}),
	}
	small := Shrink(c, 1000, func(n *Case) bool {
		seven := slices.ContainsFunc(n.Model.Factors, func(f factorgraph.Factor) bool {
			return f.Table.(*tensor.Dense).Data[1] == 7
		})
		return seven && slices.ContainsFunc(n.Queries, func(q query.Query) bool {
			return slices.ContainsFunc(q.Evidence.Hard, func(h factorgraph.Observation) bool {
				return h.Value == 2
			})
		})
	})
	left := []query.Query{{Evidence: factorgraph.Observe(map[int]int{1: 2})}}
	if got := fmt.Sprint(small.Model.Domains, len(small.Model.Factors), small.Model.Factors[0].Scope); got != "[2 3] 1 [0]" ||
		!reflect.DeepEqual(small.Queries, left) {
		t.Errorf("minimised to %s, %+v", got, small.Queries)
	}
	if len(c.Model.Factors) != 9 || len(c.Queries) != 2 {
		t.Error("the case itself was changed")
	}
}
