package plan

import (
	"runtime"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestLargeNetworksWithoutTime: a large network without time for planning has the value of belief propagation and a bound from above
// first, each in a task of its own, and nothing that is searched for. The messages of a very large one are passed where it is contracted,
// once, and four times the network allocates four times the bytes.
func TestLargeNetworksWithoutTime(t *testing.T) {
	for _, s := range []query.Settings{
		{Method: query.MethodAuto, Budget: 2e9},
		{Method: query.MethodAuto, Budget: 2e9, NoExact: true},
	} {
		for _, n := range []int{3000, policy.PhaseTables} {
			bytes, larger := hastily(t, n, s), hastily(t, 4*n, s)
			if larger > 5*bytes {
				t.Errorf("%+v, %d spins: bytes %d, and %d of four times as many", s, n, bytes, larger)
			}
		}
	}
}

// hastily plans for a 3-regular graph of n spins, of more tables than policy.MostHasty, and returns the bytes that took.
func hastily(t *testing.T, n int, s query.Settings) (bytes uint64) {
	t.Helper()
	m, err := generate.RandomRegular(n, 3, generate.Ising{Delta: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{Maps: query.MapIdentity})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	over := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(-time.Second))
	assignments, err := Assign(over, net, []btn.Demand{{}}, s, nil, nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	a := assignments[0]
	if a.Error != nil {
		t.Fatal(a.Error.Message)
	}
	if len(a.Plan.Estimates) != 2 {
		t.Fatalf("%d estimates: %+v", len(a.Plan.Estimates), a.Plan.Estimates)
	}
	q, ok := a.Plan.Estimates[0].Parts[0].(*regions.Regions)
	if !ok || q.Kind != btn.KindBethe {
		t.Fatalf("the first estimate is %+v", a.Plan.Estimates[0])
	}
	b, ok := a.Plan.Estimates[1].Parts[0].(*bounding.Bound)
	if !ok || b.Kind != bounding.Messages || int64(b.Rounds) != q.Updates {
		t.Errorf("the second estimate is %+v", a.Plan.Estimates[1])
	}
	if here := a.Propagation != nil && len(a.Messages) > 0; here != (q.Updates == 0) {
		t.Errorf("%d spins: %+v, with %d updates left to the contraction", n, a.Propagation, q.Updates)
	}
	return after.TotalAlloc - before.TotalAlloc
}

// TestNoClockOfAPhaseEndsAQuery: where a search ends with its own share of the time, another way is taken, or none fits the budget.
func TestNoClockOfAPhaseEndsAQuery(t *testing.T) {
	m, err := generate.Complete(14, generate.Ising{Delta: 1, Domain: 24, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{Maps: query.MapIdentity})
	if err != nil {
		t.Fatal(err)
	}
	for _, left := range []time.Duration{-time.Second, 20 * time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second} {
		for _, marginals := range []bool{false, true} {
			planning := proposal.WithAnswerDeadline(t.Context(), time.Now().Add(left))
			assignments, err := Assign(planning, net, []btn.Demand{{Want: btn.Want{Marginals: marginals}}}, query.Settings{Budget: 6e9}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if e := assignments[0].Error; e != nil && e.Code != fault.OverBudget {
				t.Errorf("%v left, marginals %v: %+v", left, marginals, e)
			}
		}
	}
}
