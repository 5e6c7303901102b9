package region

// The bipartite graph of tables and indices, leg by leg.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// graph holds the legs of all tables of order ≥ 2, numbered table after table. Tables of lower order
// have none.
type graph struct {
	dims  []int
	edges [][]int
	first []int32 // legs of table t: first[t] ≤ ℓ < first[t+1]
	index []int32 // of a leg
	table []int32 // of a leg
	start []int32 // legs of index i: at[start[i]:start[i+1]], ascending
	at    []int32
}

// newGraph numbers the legs of a hypergraph by table. Linear time.
func newGraph(h contractionorder.Hypergraph) (*graph, error) {
	legs := 0
	for _, scope := range h.Edges {
		if len(scope) > 1 {
			legs += len(scope)
		}
	}

	if legs > math.MaxInt32-1 || len(h.Dims) > math.MaxInt32-1 || len(h.Edges) > math.MaxInt32-1 {
		return nil, fault.New(fault.OverBudget, "region: %d legs of %d indices, at most 2^31 can be numbered",
			legs, len(h.Dims))
	}
	g := &graph{
		dims: h.Dims, edges: h.Edges, first: make([]int32, len(h.Edges)+1), index: make([]int32, 0, legs),
		table: make([]int32, 0, legs), start: make([]int32, len(h.Dims)+1), at: make([]int32, legs),
	}
	for t, scope := range h.Edges {
		if len(scope) > 1 {
			for _, i := range scope {
				g.index = append(g.index, int32(i))
				g.table = append(g.table, int32(t))
				g.start[i+1]++
			}
		}
		g.first[t+1] = int32(len(g.index))
	}

	for i := range h.Dims {
		g.start[i+1] += g.start[i]
	}
	fill := append([]int32(nil), g.start...)
	for leg, i := range g.index {
		g.at[fill[i]] = int32(leg)
		fill[i]++
	}
	return g, nil
}

// legsOf returns the legs of index i, ascending.
func (g *graph) legsOf(i int32) []int32 { return g.at[g.start[i]:g.start[i+1]] }
