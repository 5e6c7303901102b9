package contractionorder

// A lower bound on the largest table, before any order is searched.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// boundMoves is the limit of the moves of LowerBound: some tenths of a second.
const boundMoves = 1 << 26

// LowerBound returns log2 of a number of entries that the largest table of every order and of every pairwise tree has at least, where the
// table of a step or merge is over all its indices, including those that it sums:
//
//	max over tables ≥ max over minors H of min_v (w_v + Σ_{u ∈ N_H(v)} w_u)
//
// where w_v is log2 of the dimension of v and N_H(v) are its neighbours in H. The vertices of the graph are the indices; two are adjacent
// if a tensor has both. A minor of it is what is left after some edges are contracted. Every contraction does at least 2^bound
// multiplications, sliced or not.
//
// It walks through minors: over and over it contracts the edge between the vertex with the lightest neighbourhood and that vertex's
// neighbour with the lightest neighbourhood. The joined vertex weighs as much as the lighter of the two, so that the bound of every minor
// holds for the graph. The bound is good for dense and random graphs. It is weak for planar graphs, whose minors all have a vertex with at
// most five neighbours.
//
// Cost: about edges · log(edges) operations. After 2^26 operations it returns the best bound so far. The only error is that of the context.
// Source: V. Gogate and R. Dechter,
// A complete anytime algorithm for treewidth (UAI 2004), minor-min-width; weighted here.
func LowerBound(ctx context.Context, h Hypergraph) (float64, error) {
	const countsFill, noSeed = false, 0 // byWeight needs neither
	g := newFillGraph(h, countsFill, pace.New(ctx))
	var queue queue // of the vertices that are not contracted, by the weight of their neighbourhoods
	isContracted := make([]bool, len(h.Dims))
	for v, d := range h.Dims {
		isContracted[v] = d == 1 // such a vertex is not part of the graph
		if !isContracted[v] {
			queue = append(queue, g.key(int32(v), byWeight, noSeed))
		}
	}
	queue.heapify()

	bound := int64(0)
	for len(queue) > 0 && g.movesSpent < boundMoves && !g.pace.Over(16) { // some 16 operations for the queue
		k := queue.pop()
		isStale := k.first != g.weight[k.vertex] // the queue has a newer key of the vertex
		if isContracted[k.vertex] || isStale {
			continue
		}
		bound = max(bound, k.first) // the lightest neighbourhood of this minor
		isContracted[k.vertex] = true
		for _, a := range g.contractEdge(k.vertex) {
			queue.push(g.key(a, byWeight, noSeed))
		}
	}
	return float64(bound) / logUnit, g.pace.Err()
}

// contractEdge contracts the edge between v and its neighbour of the smallest weight, the target: v is removed, and the target becomes
// adjacent to all neighbours of v. weight[a] is the sum of log2Dim over a and its neighbours. The joined vertex keeps the smaller log2Dim
// of the two, so that the bound of the smaller graph holds for the whole graph. It returns the vertices whose weights may have changed,
// some of them twice, or nil if v has no neighbours.
func (g *fillGraph) contractEdge(v int32) []int32 {
	neighbours := g.neighbours[v]
	g.neighbours[v] = nil
	g.movesSpent += 8 * int64(len(neighbours)+1) // 8 elementary operations for each neighbour
	if len(neighbours) == 0 {
		return nil
	}
	target := neighbours[0]
	for _, a := range neighbours {
		if g.weight[a] < g.weight[target] {
			target = a
		}
	}
	for _, a := range neighbours {
		g.removeNeighbour(a, v)
	}

	// The log2Dim of the joined vertex is the smaller one of the two.
	if decrease := g.log2Dim[target] - g.log2Dim[v]; decrease > 0 {
		g.log2Dim[target] -= decrease
		g.weight[target] -= decrease
		for _, b := range g.neighbours[target] {
			g.weight[b] -= decrease
		}
	}

	for _, a := range neighbours {
		if a != target {
			g.connectPair(target, a)
		}
	}
	return append(slices.Clone(neighbours), g.neighbours[target]...)
}

// removeNeighbour removes v from the sorted list of neighbours of a, if it is one, and from the weight of a: the sum of log2Dim over a and
// its neighbours. The list of v does not change.
func (g *fillGraph) removeNeighbour(a, v int32) {
	if i, ok := slices.BinarySearch(g.neighbours[a], v); ok {
		g.movesSpent += int64(len(g.neighbours[a]))
		g.neighbours[a] = slices.Delete(g.neighbours[a], i, i+1)
		g.weight[a] -= g.log2Dim[v]
	}
}

// connectPair makes vertices a and b adjacent, if they are not. It updates the sorted lists of neighbours and the weights: that of a vertex
// is the sum of log2Dim over it and its neighbours.
func (g *fillGraph) connectPair(a, b int32) {
	i, isAdjacent := slices.BinarySearch(g.neighbours[a], b)
	if isAdjacent {
		return
	}
	g.movesSpent += int64(len(g.neighbours[a]) + len(g.neighbours[b]))
	g.neighbours[a] = slices.Insert(g.neighbours[a], i, b)
	i, _ = slices.BinarySearch(g.neighbours[b], a)
	g.neighbours[b] = slices.Insert(g.neighbours[b], i, a)
	g.weight[a] += g.log2Dim[b]
	g.weight[b] += g.log2Dim[a]
}
