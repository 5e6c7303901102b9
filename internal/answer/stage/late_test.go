package stage

import (
	"math"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestALateExactPlan: a heavy exact plan under a deadline is insured by the value of belief propagation and a bound, which are the answer
// where it is late or fails. In time the answer is as without a deadline.
func TestALateExactPlan(t *testing.T) {
	m, err := generate.Grid(9, 9, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, marginals := range []bool{false, true} {
		s := query.Settings{Budget: 1e5}
		queries := []query.Query{{Marginals: marginals}}
		want, err := Run(t.Context(), Request{Model: m, Queries: queries, Settings: s}, nil)
		if err != nil || !want[0].Exact {
			t.Fatalf("%+v, %v", want, err)
		}
		net, err := Reparameterise(t.Context(), m, s)
		if err != nil {
			t.Fatal(err)
		}
		assignments, err := Learn(proposal.WithAnswerDeadline(t.Context(), time.Now().Add(time.Hour)), net, queries, s, nil, nil)
		if err != nil || !assignments[0].Plan.Exact() || plan.Insure(assignments, len(net.Cores), s) != plan.Insured {
			t.Fatalf("%+v, %v", assignments, err)
		}
		first, err := FirstResults(t.Context(), "", net, queries, s, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		options := ContractOptions{Memory: s.WithDefaults().Memory}
		values, err := Contract(t.Context(), net, assignments, Demands(net, queries), everything(assignments), options)
		if err != nil {
			t.Fatal(err)
		}
		if got := ReplaceFailures(Aggregate("", assignments, values), first)[0]; !got.Exact || *got.LogZ != *want[0].LogZ {
			t.Errorf("in time: %+v, want %+v", got, want[0])
		}

		late := ReplaceFailures(AggregateNow("", assignments, nil), first)[0]
		switch {
		case late.Status != query.StatusOK || late.Exact || late.Ended != "deadline" || late.Method != query.MethodRegions:
			t.Errorf("late: %+v, %+v", late, late.Error)
		case math.Abs(*late.LogZ-*want[0].LogZ) > 5 || late.Bounds == nil || late.Bounds.Upper == nil || *late.Bounds.Upper < *want[0].LogZ:
			t.Errorf("late: ln Z %v, bounds %+v, want %v", *late.LogZ, late.Bounds, *want[0].LogZ)
		case (late.Marginals != nil) != marginals:
			t.Errorf("late: marginals %v", late.Marginals)
		}

		values[0].Value = btn.Value{}
		values[0].Error = &query.ErrorInfo{Code: fault.Unsupported, Message: "it failed", Stage: query.StageContract}
		if r := ReplaceFailures(Aggregate("", assignments, values), first)[0]; r.Status != query.StatusOK || *r.LogZ != *late.LogZ {
			t.Errorf("after a failure: %+v, %+v", r, r.Error)
		}
	}
}

// everything is every unit of a job.
func everything(assignments []btn.Assignment) (units []btn.Unit) {
	for q, a := range assignments {
		for k := range a.Plan.PartCount() {
			units = append(units, btn.Unit{Query: q, Part: k})
		}
	}
	return units
}
