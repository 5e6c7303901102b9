package region

// The bipartite graph of tables and indices, leg by leg.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// graph is the bipartite graph of the tables and indices of a hypergraph. Its edges are the legs of all tables of order ≥ 2, numbered
// table after table and in the order of the scope. Tables of lower order have no legs.
//
// Example: the scopes (0, 1), (2), (1, 2) have the legs 0 and 1 of table 0, and 2 and 3 of table 2. indexOf is [0 1 1 2].
type graph struct {
	dims     []int
	edges    [][]int // the scope of each table
	firstLeg []int32 // table t has the legs firstLeg[t] ≤ leg < firstLeg[t+1]
	indexOf  []int32 // by leg
	tableOf  []int32 // by leg
	// Index i has the legs indexLegs[indexStart[i]:indexStart[i+1]], ascending.
	indexStart, indexLegs []int32
}

// newGraph returns the graph of a hypergraph, with its legs numbered. Linear time. Errors: fault.OverBudget if legs, indices or tables are
// too many for int32. A leg is one index of one table of two or more indices.
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
		dims: h.Dims, edges: h.Edges, firstLeg: make([]int32, len(h.Edges)+1), indexOf: make([]int32, 0, legs),
		tableOf: make([]int32, 0, legs), indexStart: make([]int32, len(h.Dims)+1), indexLegs: make([]int32, legs),
	}

	// Number the legs table by table, and count those of each index.
	for t, scope := range h.Edges {
		if len(scope) > 1 {
			for _, i := range scope {
				g.indexOf = append(g.indexOf, int32(i))
				g.tableOf = append(g.tableOf, int32(t))
				g.indexStart[i+1]++
			}
		}
		g.firstLeg[t+1] = int32(len(g.indexOf))
	}

	g.listIndexLegs()
	return g, nil
}

// listIndexLegs sets indexLegs to the legs sorted by index. A leg is one index of one table. On entry indexStart[i+1] is the number of legs
// of index i; it becomes the end of the index in indexLegs.
func (g *graph) listIndexLegs() {
	for i := range g.dims {
		g.indexStart[i+1] += g.indexStart[i]
	}
	next := append([]int32(nil), g.indexStart...) // by index: the place of its next leg
	for leg, i := range g.indexOf {
		g.indexLegs[next[i]] = int32(leg)
		next[i]++
	}
}

// legsOf returns the legs of index i, ascending: one for each table of two or more indices that has it.
func (g *graph) legsOf(i int32) []int32 { return g.indexLegs[g.indexStart[i]:g.indexStart[i+1]] }

// legRange returns the range first ≤ leg < end of the legs of table t, one for each of its indices. It is empty for tables of fewer than
// two indices.
func (g *graph) legRange(t int32) (first, end int32) { return g.firstLeg[t], g.firstLeg[t+1] }

// indicesOf returns the indices of table t, one for each leg. It is empty for tables of fewer than two indices.
func (g *graph) indicesOf(t int32) []int32 { return g.indexOf[g.firstLeg[t]:g.firstLeg[t+1]] }
