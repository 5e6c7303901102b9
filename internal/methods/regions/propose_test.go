package regions

import (
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestPlanningRegionsTakesItsShare: what planning takes is counted, and all sizes of a plan together take the part of a budget that
// searches may, whatever the graph.
func TestPlanningRegionsTakesItsShare(t *testing.T) {
	shapes := map[string]func() (*factorgraph.Model, error){
		"complete":  func() (*factorgraph.Model, error) { return generate.Complete(24, generate.Ising{Delta: 1}) },
		"3-regular": func() (*factorgraph.Model, error) { return generate.RandomRegular(120, 3, generate.Ising{Delta: 1}) },
	}
	for name, model := range shapes {
		m, err := model()
		if err != nil {
			t.Fatal(err)
		}
		_, e := lowered(t, m)
		h := e.Hypergraph()
		for _, budget := range []float64{1e7, 1e8, 1e9} {
			plan, _, err := buildPlan(t.Context(), h, query.Settings{Budget: budget}, false)
			if err != nil {
				if name == "3-regular" {
					t.Errorf("%s, %g flops: %v", name, budget, err)
				}
				continue
			}
			moves := int64(0)
			for k := range plan.Estimates {
				part := plan.Estimates[k].Parts[0].(*Regions)
				f, err := region.Plan(t.Context(), h, region.Options{Kind: part.Kind, Size: part.Size})
				if err != nil {
					t.Fatal(err)
				}
				moves += f.Moves
				_, err = region.Plan(t.Context(), h, region.Options{Kind: part.Kind, Size: part.Size, Moves: f.Moves / 2})
				if err == nil {
					t.Errorf("%s: %s of size %d are planned in half of %d moves", name, part.Kind, part.Size, f.Moves)
				}
			}
			if most := max(policy.PlanningShare*budget/regionMoveFlops, leastRegionMoves); float64(moves) > most {
				t.Errorf("%s, %g flops: planning takes %d moves, at most %g", name, budget, moves, most)
			}
		}
	}
}

// lowered returns the network of a model, and its expression.
func lowered(t *testing.T, m *factorgraph.Model) (*btn.Network, *sumproduct.Expression) {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(t.Context(), net)
	if err != nil {
		t.Fatal(err)
	}
	return net, e
}
