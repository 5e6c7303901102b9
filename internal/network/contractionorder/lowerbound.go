package contractionorder

// A lower bound on the largest table, before any order is searched.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// boundMoves bounds the work of LowerBound, in elementary operations: some tenths of a second.
const boundMoves = 1 << 26

// LowerBound returns log2 of a lower bound of the largest touched table's entries, over all
// orders and all pairwise trees:
//
//	max over tables ≥ max over minors H of min_v (w_v + Σ_{u ∈ N_H(v)} w_u)
//
// where w_v is log2 of the dimension of v.
//
// The vertex with the lightest neighbourhood is joined with its lightest neighbour, over and over;
// the joined vertex weighs as much as the lighter of the two, so that the bound of every minor is
// one of the graph. Every contraction does at least 2^bound multiplications, sliced or not. It is
// good for dense and random graphs; planar ones have no such minors above five neighbours.
// Cost: about edges · log(edges) operations, at most 2^26,
// after which the best bound so far is returned. The only error is the context's.
// Source: V. Gogate and R. Dechter,
// A complete anytime algorithm for treewidth (UAI 2004), minor-min-width; weighted here.
func LowerBound(ctx context.Context, h Hypergraph) (float64, error) {
	g := newFillGraph(h, false, pace.New(ctx))
	var q queue
	done := make([]bool, len(h.Dims))
	for v, d := range h.Dims {
		if done[v] = d == 1; !done[v] {
			q = append(q, g.key(int32(v), byWeight, 0))
		}
	}

	q.init()
	bound := int64(0)
	for len(q) > 0 && g.moves < boundMoves && !g.pace.Over(16) {
		k := q.pop()
		if done[k.v] || k.first != g.weight[k.v] {
			continue
		}
		bound = max(bound, k.first)
		done[k.v] = true
		for _, a := range g.join(k.v) {
			q.push(g.key(a, byWeight, 0))
		}
	}
	return float64(bound) / logUnit, g.pace.Err()
}

// join contracts the edge between v and its neighbour with the lightest neighbourhood,
// which stays, and returns the vertices whose weights changed.
func (g *fillGraph) join(v int32) []int32 {
	near := g.adj[v]
	g.adj[v] = nil
	g.moves += 8 * int64(len(near)+1)
	if len(near) == 0 {
		return nil
	}
	into := near[0]
	for _, a := range near {
		if g.weight[a] < g.weight[into] {
			into = a
		}
	}
	for _, a := range near {
		g.without(a, v)
	}

	// The joined vertex weighs as much as the lighter of the two.
	if lighter := min(g.log[into], g.log[v]); lighter < g.log[into] {
		less := g.log[into] - lighter
		g.log[into] = lighter
		g.weight[into] -= less
		for _, b := range g.adj[into] {
			g.weight[b] -= less
		}
	}

	for _, a := range near {
		if a != into {
			g.connected(into, a)
		}
	}
	return append(slices.Clone(near), g.adj[into]...)
}

// without takes neighbour v from vertex a.
func (g *fillGraph) without(a, v int32) {
	if i, ok := slices.BinarySearch(g.adj[a], v); ok {
		g.moves += int64(len(g.adj[a]))
		g.adj[a] = slices.Delete(g.adj[a], i, i+1)
		g.weight[a] -= g.log[v]
	}
}

// connected makes two vertices neighbours, if they are not yet.
func (g *fillGraph) connected(a, b int32) {
	i, ok := slices.BinarySearch(g.adj[a], b)
	if ok {
		return
	}
	g.moves += int64(len(g.adj[a]) + len(g.adj[b]))
	g.adj[a] = slices.Insert(g.adj[a], i, b)
	i, _ = slices.BinarySearch(g.adj[b], a)
	g.adj[b] = slices.Insert(g.adj[b], i, a)
	g.weight[a] += g.log[b]
	g.weight[b] += g.log[a]
}
