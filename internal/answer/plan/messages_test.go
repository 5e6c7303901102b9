package plan

// Messages of belief propagation that regions are planned with.

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

func isingGrid(t *testing.T, n int, o generate.Ising) *btn.Network {
	t.Helper()
	m, err := generate.Grid(n, n, o)
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// Messages under evidence are those of the largest fixed point of four starts, with several phases and without; asked again the plan is
// remembered.
func TestMessagesUnderEvidence(t *testing.T) {
	for name, o := range map[string]generate.Ising{
		"one fixed point": {Delta: 0.5, Seed: 1},
		"phases":          {Delta: 1.5, Attractive: true, Seed: 1},
	} {
		net, memo, evidence := isingGrid(t, 8, o), kept{}, factorgraph.Observe(map[int]int{20: 1})
		assign := func() btn.Assignment {
			assignments, err := Assign(t.Context(), net, []btn.Demand{{Evidence: evidence}},
				query.Settings{Method: query.MethodRegions, Budget: 3e6}, memo, nil)
			if err != nil || assignments[0].Error != nil {
				t.Fatalf("%s: %v, %+v", name, err, assignments)
			}
			return assignments[0]
		}
		first := assign()
		conditioned, err := net.Condition(evidence)
		if err != nil {
			t.Fatal(err)
		}
		e, err := lower.Build(context.Background(), conditioned)
		if err != nil {
			t.Fatal(err)
		}
		states, err := bp.FixedPoints(t.Context(), e, 4, bp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := *first.Propagation.LogZ, states[0].LnZ(); got != want || first.Propagation.Updates != states[0].Updates {
			t.Errorf("%s: ln Z %v after %d updates, want %v after %d", name, got, first.Propagation.Updates, want, states[0].Updates)
		}
		if again := assign(); again.Cache != "hit" || *again.Propagation.LogZ != *first.Propagation.LogZ {
			t.Errorf("%s: asked again: cache %q, ln Z %v", name, again.Cache, *again.Propagation.LogZ)
		}
	}
}
