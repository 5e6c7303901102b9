package stage

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// hanging is a memory of plans in which every phase of planning hangs: until its context ends, or for ever.
type hanging struct{ over <-chan struct{} }

func (h hanging) Do(
	ctx context.Context, _ string, _ func(context.Context) (*btn.Plan, error),
) (*btn.Plan, bool, error) {
	if h.over == nil {
		<-ctx.Done()
		return nil, false, ctx.Err()
	}
	<-h.over
	return nil, false, errors.New("the test is over")
}

// lnZ is the sum over all states.
func lnZ(m *factorgraph.Model, ev factorgraph.Evidence) float64 {
	ln, _ := oracle.LogZ(m, ev)
	return ln
}

// weak is a grid of weak couplings, on which belief propagation is nearly exact.
func weak(t *testing.T) *factorgraph.Model {
	t.Helper()
	m, err := generate.Grid(4, 4, generate.Ising{Delta: 0.1, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestThePlannerHangs: whatever phase of planning hangs, a run with a deadline answers with the value of belief propagation and a bound.
func TestThePlannerHangs(t *testing.T) {
	t.Parallel()
	m := weak(t)
	want := lnZ(m, factorgraph.Evidence{})
	for _, method := range []query.Method{query.MethodAuto, query.MethodTruncated, query.MethodSampled, query.MethodRegions} {
		for _, deaf := range []bool{false, true} {
			t.Run(string(method), func(t *testing.T) {
				t.Parallel()
				h := hanging{}
				if deaf {
					over := make(chan struct{})
					t.Cleanup(func() { close(over) })
					h.over = over
				}
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				r := Request{Job: "j", Model: m, Settings: query.Settings{Method: method}, Queries: []query.Query{{Marginals: true}}}
				results, err := Run(ctx, r, h)
				if err != nil {
					t.Fatal(err)
				}
				a := results[0]
				if a.Status != query.StatusOK || a.Exact || a.Ended != "deadline" || a.Method != query.MethodRegions || a.Job != "j" {
					t.Fatalf("%+v, %+v", a, a.Error)
				}
				if math.Abs(*a.LogZ-want) > 0.01 || a.Bounds == nil || a.Bounds.Upper == nil || *a.Bounds.Upper < want {
					t.Errorf("ln Z %v, bounds %+v, want %v", *a.LogZ, a.Bounds, want)
				}
				if len(a.Marginals) != len(m.Domains) {
					t.Errorf("marginals %v", a.Marginals)
				}
				if !slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, "belief propagation only") }) {
					t.Errorf("warnings %q", a.Warnings)
				}
			})
		}
	}
}

// TestNoFirstAnswer to questions that no estimate answers: the failure is the answer.
func TestNoFirstAnswer(t *testing.T) {
	net, err := Reparameterise(t.Context(), weak(t), query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method query.Method
		q      query.Query
		is     bool
	}{
		{query.MethodAuto, query.Query{}, true},
		{query.MethodExact, query.Query{}, false},
		{query.MethodCircuit, query.Query{}, false},
		{query.MethodAuto, query.Query{MPE: true}, false},
		{query.MethodAuto, query.Query{Joint: []int{0, 1}}, false},
		{query.MethodAuto, query.Query{Gradients: true}, false},
		{query.MethodAuto, query.Query{Samples: 3}, false},
	} {
		results, err := FirstResults(t.Context(), "", net, []query.Query{c.q}, query.Settings{Method: c.method}, time.Hour)
		if err != nil || HasAnswer(results) != c.is {
			t.Errorf("%s, %+v: %+v, %v", c.method, c.q, results, err)
		}
	}
}

// TestFirstIsOneSweepAtLeast of every query's messages where there is time, and of the first one's where there is none.
func TestFirstIsOneSweepAtLeast(t *testing.T) {
	m := weak(t)
	net, err := Reparameterise(t.Context(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	queries := []query.Query{{}, {Evidence: factorgraph.Observe(map[int]int{0: 1})}}
	results, err := FirstResults(t.Context(), "", net, queries, query.Settings{}, 0)
	if err != nil || results[0].Status != query.StatusOK || results[1].Error.Code != fault.Deadline {
		t.Fatalf("%+v, %v", results, err)
	}
	if want := lnZ(m, factorgraph.Evidence{}); math.Abs(*results[0].LogZ-want) > 0.5 {
		t.Errorf("after one sweep %v, want %v", *results[0].LogZ, want)
	}
	results, err = FirstResults(t.Context(), "", net, queries, query.Settings{}, time.Hour)
	for q := range queries {
		if want := lnZ(m, queries[q].Evidence); err != nil || math.Abs(*results[q].LogZ-want) > 0.01 {
			t.Errorf("query %d: %+v, %v, want %v", q, results[q], err, want)
		}
	}
}

// TestOrFirst: the first answer stands for whatever failed but the model, the question and a cancel.
func TestOrFirst(t *testing.T) {
	z := 1.5
	first := []query.Result{
		{Status: query.StatusOK, LogZ: &z, Ended: "complete", Warnings: []string{"w"}},
		{Status: query.StatusError, Error: &query.ErrorInfo{}},
	}
	other := 2.5
	for _, code := range []fault.Code{
		fault.Deadline, fault.OverBudget, fault.Unsupported, fault.FailedEstimate, fault.Internal, fault.Infrastructure,
		fault.BadInput, fault.Cancelled,
	} {
		failed := query.Result{Status: query.StatusError, Error: &query.ErrorInfo{Code: code, Message: "why"}}
		got := ReplaceFailures([]query.Result{failed, failed}, first)
		stays := code == fault.BadInput || code == fault.Cancelled
		if stays != (got[0].Status == query.StatusError) || got[1].Error.Code != code {
			t.Errorf("%s: %+v", code, got)
		}
		if stays {
			continue
		}
		if *got[0].LogZ != z || len(got[0].Warnings) != 2 || !strings.Contains(got[0].Warnings[1], "why") || len(first[0].Warnings) != 1 ||
			(got[0].Ended == "deadline") != (code == fault.Deadline) {
			t.Errorf("%s: %+v", code, got[0])
		}
		answered := query.Result{Status: query.StatusOK, LogZ: &other}
		if got := ReplaceFailures([]query.Result{answered, failed}, first); *got[0].LogZ != other {
			t.Errorf("%s: an answer gave way: %+v", code, got[0])
		}
		if got := ReplaceFailures([]query.Result{failed}, first); got[0].Status != query.StatusError {
			t.Errorf("%s: results of another job: %+v", code, got)
		}
	}
}

// TestInsure: exact plans that take no longer than a sweep over 100 tables, 6 million flops, need no first value.
func TestInsure(t *testing.T) {
	exact := func(flops float64) btn.Assignment {
		return btn.Assignment{Plan: &btn.Plan{Estimates: []btn.Estimate{{Quality: &btn.Quality{Exact: true}, Cost: query.Cost{Flops: flops}}}}}
	}
	under := exact(1e12)
	under.Cost = &query.Cost{Flops: 10}
	grows := btn.Assignment{Plan: &btn.Plan{Estimates: []btn.Estimate{{}}}}
	for _, c := range []struct {
		of   []btn.Assignment
		want plan.Insurance
	}{
		{[]btn.Assignment{exact(5e6), under}, plan.Uninsured},
		{[]btn.Assignment{exact(10), exact(1e7)}, plan.InsuredBySweep},
		{[]btn.Assignment{exact(1e6), exact(1e10)}, plan.Insured},
		{[]btn.Assignment{exact(10), grows}, plan.Insured},
		{[]btn.Assignment{exact(10), {Error: &query.ErrorInfo{}}}, plan.Insured},
	} {
		if got := plan.Insure(c.of, 100, query.Settings{Budget: 3e9}); got != c.want {
			t.Errorf("%+v: %v, want %v", c.of, got, c.want)
		}
	}
	if got := plan.Insure([]btn.Assignment{exact(10)}, 0, query.Settings{Budget: 3e9}); got != plan.Uninsured {
		t.Errorf("without tables: %v", got)
	}
}
