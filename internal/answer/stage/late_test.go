package stage

import (
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestALateExactPlan: a heavy exact plan under a deadline has the value of belief propagation and a bound before it, which are the answer
// where it is late. In time the answer is as without a deadline, and where it fails it is the failure.
func TestALateExactPlan(t *testing.T) {
	m, err := generate.Grid(9, 9, generate.Ising{Delta: 1, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, marginals := range []bool{false, true} {
		s := btn.Settings{Budget: 1e5}
		queries := []query.Query{{Marginals: marginals}}
		want, err := Run(t.Context(), Request{Model: m, Queries: queries, Settings: s}, nil)
		if err != nil || !want[0].Exact {
			t.Fatalf("%+v, %v", want, err)
		}
		net, err := Reparameterise(t.Context(), m, s)
		if err != nil {
			t.Fatal(err)
		}
		assignments, err := Learn(proposal.Until(t.Context(), time.Now().Add(time.Hour)), net, queries, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		blob, err := message.EncodeAssignments(assignments)
		if err != nil {
			t.Fatal(err)
		}
		if assignments, err = message.DecodeAssignments(blob); err != nil {
			t.Fatal(err)
		}
		if err := message.CheckAssignments(net, assignments); err != nil {
			t.Fatal(err)
		}
		plan := assignments[0].Plan
		n := len(plan.Estimates)
		if n != 3 || plan.Estimates[2].Quality == nil {
			t.Fatalf("%d estimates: %+v", n, plan)
		}

		var values []btn.UnitValue
		chunks, ends := Chunks(net, assignments)
		for k, units := range chunks {
			if slices.Contains(ends, k) && Settled(assignments, values) {
				t.Errorf("%d of %d chunks are enough", k, len(chunks))
			}
			some, err := Contract(t.Context(), net, assignments, queries, units, ContractOptions{Memory: s.WithDefaults().Memory})
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, some...)
		}
		if !Settled(assignments, values) {
			t.Error("all values are not enough")
		}
		got := Aggregate("", assignments, nil, values)[0]
		same := want[0]
		for _, r := range []*btn.Result{&got, &same} { // what it took is more
			r.Run, r.TimingsMS = nil, nil
		}
		if !reflect.DeepEqual(got, same) {
			t.Errorf("in time:\n%+v\nwant\n%+v", got, same)
		}

		first := plan.Len() - len(plan.Estimates[n-1].Parts)
		early := slices.DeleteFunc(slices.Clone(values), func(v btn.UnitValue) bool { return v.Part >= first })
		late := AggregateNow("", assignments, nil, early)[0]
		switch {
		case late.Status != btn.StatusOK || late.Exact || late.Ended != "deadline" || late.Method != btn.MethodRegions:
			t.Errorf("late: %+v, %+v", late, late.Error)
		case math.Abs(*late.LogZ-*want[0].LogZ) > 5 || late.Bounds == nil || late.Bounds.Upper == nil || *late.Bounds.Upper < *want[0].LogZ:
			t.Errorf("late: ln Z %v, bounds %+v, want %v", *late.LogZ, late.Bounds, *want[0].LogZ)
		case (late.Marginals != nil) != marginals:
			t.Errorf("late: marginals %v", late.Marginals)
		}

		for i := range values {
			if values[i].Part == first {
				values[i].Value = btn.Value{}
				values[i].Error = &btn.ErrorInfo{Code: fault.Unsupported, Message: "it failed", Stage: query.StageContract}
			}
		}
		if r := Aggregate("", assignments, nil, values)[0]; r.Status != btn.StatusError || r.Error.Code != fault.Unsupported {
			t.Errorf("after a failure: %+v, %+v", r, r.Error)
		}
	}
}
