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

// correctCase returns a case whose three queries ask for everything, its truth, and the right answers of the product: query 0 for marginals
// and a joint marginal, query 1 for the ratio of an event to query 0, query 2 for an impossible event.
func correctCase(t *testing.T) (*Case, []Truth, []query.Result) {
	t.Helper()
	c := &Case{Name: "sound", Route: RoutePlain,
		Model: &factorgraph.Model{Domains: []int{2, 3}, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 0}}},
		}}}
	event := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1, Value: 0}}}
	impossible := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 0, Value: 1}, {Var: 1, Value: 2}}}
	c.Queries = []query.Query{
		{Marginals: true, Joint: []int{1}},
		{Evidence: event, Over: 1},
		{Evidence: impossible},
	}
	o := Run(c, DefaultLimits)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	return c, Solve(c.Model, c.Queries), o.Results
}

// number returns a pointer to x.
func number(x float64) *float64 { return &x }

// TestDoctoredAnswersAreCaught changes right answers in one place at a time: Check reports a violation of the class that is meant for that.
func TestDoctoredAnswersAreCaught(t *testing.T) {
	c, truth, right := correctCase(t)
	if violations := Check(c, truth, Outcome{Results: right}); len(violations) > 0 {
		t.Fatalf("right answers are called wrong: %v", violations)
	}
	if !right[0].Exact || !right[2].Zero || right[1].Ratio == nil || right[0].Joint == nil {
		t.Fatalf("the case has not everything in it: %+v", right)
	}
	estimate := func(r *query.Result) { r.Exact = false } // makes a result an estimate
	for name, d := range map[string]struct {
		want   string // the class of the violation
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
		_, _, results := correctCase(t)
		d.doctor(results)
		violations := Check(c, truth, Outcome{Results: results})
		if !slices.ContainsFunc(violations, func(v Violation) bool { return v.Class == d.want }) {
			t.Errorf("%s: found %v, want %q", name, violations, d.want)
		}
	}
}

// TestBrokenCallsAreCaught runs calls that hang, panic or return an error: Check reports the violation of each. A deadline is one only if
// the case itself has no timeout.
func TestBrokenCallsAreCaught(t *testing.T) {
	c, truth, _ := correctCase(t)
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
		violations := Check(c, truth, watch(limits, 0, call))
		if len(violations) != 1 || violations[0].Class != want {
			t.Errorf("found %v, want %q", violations, want)
		}
	}

	late := watch(limits, 0, func(ctx context.Context) ([]query.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if violations := Check(c, truth, late); len(violations) != 1 || violations[0].Class != Unanswered {
		t.Errorf("a deadline of nobody is called %v", violations)
	}
	withTimeout := *c
	withTimeout.Timeout = time.Millisecond
	if violations := Check(&withTimeout, truth, late); len(violations) > 0 {
		t.Errorf("a deadline that is obeyed is called %v", violations)
	}
}

// TestFormatsAreCompared: models that differ in the last bit of one entry are not equal.
func TestFormatsAreCompared(t *testing.T) {
	c, _, _ := correctCase(t)
	other := clone(c)
	other.Model.Factors[0].Table = &tensor.Dense{
		Shape: []int{2, 3},
		Data:  []float64{1, 2, 3, 4, math.Nextafter(5, 6), 0},
	}
	if equalModels(c.Model, c.Model) != nil || equalModels(c.Model, other.Model) == nil {
		t.Error("one bit of one entry is not seen")
	}
}

// TestShrinkKeepsWhatMatters minimises a case as long as a factor with the entry 7 is there and a variable is observed to be 2: one factor,
// two variables and one observation are left.
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
		hasSeven := slices.ContainsFunc(n.Model.Factors, func(f factorgraph.Factor) bool {
			return f.Table.(*tensor.Dense).Data[1] == 7
		})
		return hasSeven && slices.ContainsFunc(n.Queries, func(q query.Query) bool {
			return slices.ContainsFunc(q.Evidence.Hard, func(h factorgraph.Observation) bool {
				return h.Value == 2
			})
		})
	})
	wantQueries := []query.Query{{Evidence: factorgraph.Observe(map[int]int{1: 2})}}
	got := fmt.Sprint(small.Model.Domains, len(small.Model.Factors), small.Model.Factors[0].Scope)
	if got != "[2 3] 1 [0]" || !reflect.DeepEqual(small.Queries, wantQueries) {
		t.Errorf("minimised to %s, %+v", got, small.Queries)
	}
	if len(c.Model.Factors) != 9 || len(c.Queries) != 2 {
		t.Error("the case itself was changed")
	}
}
