package plan

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/contractionorder"
)

// TestDegeneracyIsBelowEveryWidth: known graphs, and random ones beside the width of a min-fill order.
func TestDegeneracyIsBelowEveryWidth(t *testing.T) {
	graph := func(n int, edges [][]int) (g []map[int32]struct{}) {
		g = make([]map[int32]struct{}, n)
		for v := range g {
			g[v] = map[int32]struct{}{}
		}
		for _, e := range edges {
			g[e[0]][int32(e[1])], g[e[1]][int32(e[0])] = struct{}{}, struct{}{}
		}
		return g
	}
	var complete, ring [][]int
	for i := range 9 {
		ring = append(ring, []int{i, (i + 1) % 9})
		for j := range i {
			complete = append(complete, []int{j, i})
		}
	}
	for name, c := range map[string]struct {
		edges [][]int
		want  int
	}{"complete": {complete, 8}, "ring": {ring, 2}, "path": {ring[:8], 1}, "none": {nil, 0}} {
		if got := degeneracy(graph(9, c.edges)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		n := 4 + rng.IntN(30)
		h := contractionorder.Hypergraph{Dims: make([]int, n)}
		for v := range h.Dims {
			h.Dims[v] = 2
		}
		for range rng.IntN(4 * n) {
			if a, b := rng.IntN(n), rng.IntN(n); a != b {
				h.Edges = append(h.Edges, []int{a, b})
			}
		}
		order, err := contractionorder.MinFill(context.Background(), h)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := contractionorder.EvaluateOrder(context.Background(), h, order)
		if err != nil {
			t.Fatal(err)
		}
		if k := degeneracy(graph(n, h.Edges)); k > cost.Width {
			t.Fatalf("degeneracy %d, width %d: %v", k, cost.Width, h.Edges)
		}
	}
}
