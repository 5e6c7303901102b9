package plan

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/query"
)

// Where there is no time for planning a large network has the value of belief propagation first, then a
// bound from above, then samples; and no search of its own, however greedy.
func TestLargeNetworksWithoutTime(t *testing.T) {
	m, err := generate.RandomRegular(6000, 3, generate.Ising{Delta: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(t.Context(), m, reparam.Options{Maps: btn.MapIdentity})
	if err != nil {
		t.Fatal(err)
	}
	over := PlanUntil(t.Context(), time.Now().Add(-time.Second))
	s := btn.Settings{Method: btn.MethodAuto, NoExact: true, Budget: 2e9}
	assignments, err := Assign(over, net, []query.Query{{}}, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := assignments[0]
	if a.Error != nil {
		t.Fatal(a.Error.Message)
	}
	if first := a.Plan.Estimates[0]; first.Rule != btn.LogLinear {
		t.Errorf("the first estimate is %+v, want the value of belief propagation", first.Rule)
	}
	bounds, sampled := 0, 0
	for _, e := range a.Plan.Estimates {
		for _, part := range e.Parts {
			switch part.(type) {
			case *btn.Truncated:
				t.Fatal("truncated legs were searched for")
			case *btn.Bound:
				bounds++
			case *btn.Sampled:
				sampled++
			}
		}
	}
	if bounds == 0 || sampled == 0 {
		t.Errorf("%d bounds and %d sampled parts", bounds, sampled)
	}
}
