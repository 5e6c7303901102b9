package plan

import (
	"runtime"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestLargeNetworksWithoutTime: a large network without time for planning has the value of belief propagation and a bound from above
// first, each in a task of its own, and nothing that is searched for. Four times the network is four times the work: messages computed, and
// bytes allocated.
func TestLargeNetworksWithoutTime(t *testing.T) {
	for _, s := range []btn.Settings{
		{Method: btn.MethodAuto, Budget: 2e9},
		{Method: btn.MethodAuto, Budget: 2e9, NoExact: true},
	} {
		updates, bytes := hastily(t, 3000, s)
		more, larger := hastily(t, 12_000, s)
		if more > 4*updates || larger > 5*bytes {
			t.Errorf("%+v: messages %d and %d, bytes %d and %d", s, updates, more, bytes, larger)
		}
	}
}

// hastily plans for a 3-regular graph of n spins, of more tables than policy.MostHasty, and returns what that took.
func hastily(t *testing.T, n int, s btn.Settings) (updates int64, bytes uint64) {
	m, err := generate.RandomRegular(n, 3, generate.Ising{Delta: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{Maps: btn.MapIdentity})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	over := PlanUntil(t.Context(), time.Now().Add(-time.Second))
	assignments, err := Assign(over, net, []query.Query{{}}, s, nil)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	a := assignments[0]
	if a.Error != nil {
		t.Fatal(a.Error.Message)
	}
	if len(a.Plan.Estimates) != 2 {
		t.Fatalf("%d estimates: %s", len(a.Plan.Estimates), describe(a.Plan))
	}
	if q, ok := a.Plan.Estimates[0].Parts[0].(*btn.Regions); !ok || q.Kind != btn.KindBethe {
		t.Errorf("the first estimate is %+v", a.Plan.Estimates[0])
	}
	if b, ok := a.Plan.Estimates[1].Parts[0].(*btn.Bound); !ok || b.Kind != btn.BoundMessages {
		t.Errorf("the second estimate is %+v", a.Plan.Estimates[1])
	}
	if a.Propagation == nil || a.Propagation.LogZ == nil || len(a.Messages) == 0 {
		t.Fatalf("belief propagation has no value: %+v", a.Propagation)
	}
	return a.Propagation.Updates, after.TotalAlloc - before.TotalAlloc
}
