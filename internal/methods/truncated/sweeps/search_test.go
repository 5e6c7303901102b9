package sweeps_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
)

// TestSearchesThatAreCutShort: wherever a search ends, the plan found by then has the price that it says, and later ones are
// cheaper.
func TestSearchesThatAreCutShort(t *testing.T) {
	h := enginetest.Grid(rand.New(rand.NewPCG(3, 1)), 8, 8, 2).Hypergraph()
	o := sweeps.SearchOptions{Bond: 8, Seed: 1, Moves: 1 << 20}
	whole, cost, err := sweeps.Search(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	first, cut := 0.0, 0
	for looks := 0; ; looks += 1 + looks/2 {
		p, c, err := sweeps.Search(enginetest.ContextEndingAfter(looks, context.DeadlineExceeded), h, o)
		if err == nil {
			if !reflect.DeepEqual(p, whole) {
				t.Error("a search that was not cut short has another plan")
			}
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %d looks: %v", looks, err)
		}
		if len(p.Order) == 0 {
			continue
		}
		if cut++; cut == 1 {
			first = c.Flops
		}
		if again, err := sweeps.Evaluate(t.Context(), h, p, o.Bond, false); err != nil || again != c {
			t.Errorf("after %d looks: the plan takes %+v (%v), not %+v", looks, again, err, c)
		}
	}
	if cut < 3 || first <= cost.Flops {
		t.Errorf("%d searches were cut short, the first with a plan of %g flops, the whole one with %g", cut, first, cost.Flops)
	}
}
