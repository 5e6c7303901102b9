package trees_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/truncated/trees"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
)

// TestSearchesThatAreCutShort: wherever a search ends, the plan found by then has the price that it says.
func TestSearchesThatAreCutShort(t *testing.T) {
	h := enginetest.Grid(rand.New(rand.NewPCG(3, 1)), 8, 8, 2).Hypergraph()
	o := trees.SearchOptions{Bond: 4, Seed: 1, Memory: 1 << 15, Moves: 1 << 26}
	whole, _, err := trees.Search(t.Context(), h, o)
	if err != nil {
		t.Fatal(err)
	}
	cut := 0
	for looks := 0; ; looks += 1 + looks/8 {
		p, c, err := trees.Search(enginetest.ContextEndingAfter(looks, context.DeadlineExceeded), h, o)
		if err == nil {
			if !reflect.DeepEqual(p, whole) {
				t.Error("a search that was not cut short has another plan")
			}
			break
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("after %d looks: %v", looks, err)
		}
		if p.Tables == 0 {
			continue
		}
		cut++
		if again, err := trees.Evaluate(h, p, o.Bond); err != nil || again != c || c.Bytes > float64(o.Memory) {
			t.Errorf("after %d looks: the plan takes %+v (%v), not %+v", looks, again, err, c)
		}
	}
	if cut < 3 {
		t.Errorf("%d searches were cut short with a plan", cut)
	}
}
