package contractionorder

// The primal graph of a hypergraph under elimination:
// two indices are adjacent if a tensor has both.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// logUnit is 1 in the fixed-point numbers for log2 of dimensions. Sums of them are exact, so that ties are real ties.
const logUnit = 1 << 32

// fillGraph is a graph whose vertices are eliminated one by one. The neighbours of an eliminated vertex become pairwise adjacent. Lists are
// by vertex, that is, by index of the hypergraph.
type fillGraph struct {
	neighbours [][]int32  // sorted; nil for an eliminated vertex
	log2Dim    []int64    // log2 of the dimension, times logUnit
	weight     []int64    // log2 of the table over the vertex and its neighbours, times logUnit
	fillCount  []int64    // edges that eliminating the vertex now would add; nil: not counted
	moves      int64      // elementary operations so far
	limit      int64      // of moves, at which a greedy order ends
	stamp      []int32    // stamp[v] == round: v is in touched
	round      int32      // number of the last elimination
	touched    []int32    // vertices whose weight or fill count the last elimination changed, each once
	rowBuffer  []int32    // scratch of connectAll
	common     []int32    // scratch: the last intersection
	isLast     []bool     // whether a greedy order has the vertex after all others; nil: none is last
	maxWeight  int64      // limit of the weight of a vertex that a greedy order eliminates; 0: no limit
	pace       *pace.Pace // after it has ended the graph is of no use
}

// newFillGraph returns the primal graph of h before any elimination, with fill counts if countsFill.
func newFillGraph(h Hypergraph, countsFill bool, pace *pace.Pace) *fillGraph {
	n := len(h.Dims)
	g := &fillGraph{
		neighbours: make([][]int32, n),
		log2Dim:    make([]int64, n),
		weight:     make([]int64, n),
		stamp:      make([]int32, n),
		limit:      maxMoves,
		pace:       pace,
	}

	for v, d := range h.Dims {
		g.log2Dim[v] = int64(math.Round(math.Log2(float64(d)) * logUnit))
	}
	g.connectTensors(h)

	for v, row := range g.neighbours {
		g.weight[v] = g.log2Dim[v]
		for _, u := range row {
			g.weight[v] += g.log2Dim[u]
		}
	}

	if countsFill {
		g.countFill()
	}
	return g
}

// connectTensors makes the indices of every tensor pairwise adjacent, except indices of dimension 1.
func (g *fillGraph) connectTensors(h Hypergraph) {
	degree := make([]int, len(h.Dims))
	for _, e := range h.Edges {
		for _, v := range e {
			degree[v] += len(e) - 1
		}
	}

	for v, d := range degree {
		if h.Dims[v] > 1 {
			g.neighbours[v] = make([]int32, 0, d)
		}
	}

	for _, e := range h.Edges {
		for _, v := range e {
			if h.Dims[v] == 1 || g.pace.Over(int64(len(e))) {
				continue
			}
			for _, u := range e {
				if u != v && h.Dims[u] > 1 {
					g.neighbours[v] = append(g.neighbours[v], int32(u))
				}
			}
		}
	}

	for v, row := range g.neighbours {
		if g.pace.Over(8 * int64(len(row))) {
			return
		}
		slices.Sort(row)
		g.neighbours[v] = slices.Compact(row)
	}
}

// countFill counts, for every vertex, the pairs of neighbours that are not adjacent: all pairs, less one for each triangle. So a vertex of
// degree 10^5 does not cost 10^10.
func (g *fillGraph) countFill() {
	g.fillCount = make([]int64, len(g.neighbours))
	for v, row := range g.neighbours {
		degree := int64(len(row))
		g.fillCount[v] += degree * (degree - 1) / 2
		for _, u := range row {
			// Every edge {v, u} once: with a common neighbour w it is the pair of w's neighbours that a triangle makes adjacent.
			if int(u) < v || g.pace.Over(int64(len(row))) {
				continue
			}
			g.common = g.intersect(row, g.neighbours[u], g.common[:0])
			for _, w := range g.common {
				g.fillCount[w]--
			}
		}
	}
}

// intersect appends the elements that two sorted lists have in common. If one list is much shorter, it looks its elements up by bisection.
func (g *fillGraph) intersect(a, b, common []int32) []int32 {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) > 16*len(a) {
		g.moves += 16 * int64(len(a))
		for _, x := range a {
			i, ok := slices.BinarySearch(b, x)
			if ok {
				common = append(common, x)
			}
			b = b[i:]
		}
		return common
	}

	g.moves += int64(len(a) + len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		if x == y {
			common = append(common, x)
		}
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
	}
	return common
}

// markTouched adds v to touched, once per elimination.
func (g *fillGraph) markTouched(v int32) {
	if g.stamp[v] != g.round {
		g.stamp[v] = g.round
		g.touched = append(g.touched, v)
	}
}

// eliminate removes v and makes its neighbours pairwise adjacent. Then touched lists the vertices whose weight or fill count changed.
func (g *fillGraph) eliminate(v int32) {
	neighbours := g.neighbours[v]
	g.neighbours[v] = nil
	g.round++
	g.touched = g.touched[:0]

	for _, a := range neighbours {
		g.markTouched(a)
		row := g.neighbours[a]
		if i, ok := slices.BinarySearch(row, v); ok {
			row = slices.Delete(row, i, i+1)
		}
		g.neighbours[a] = row
		g.weight[a] -= g.log2Dim[v]
		g.moves += 8
		if g.fillCount != nil { // pairs of v with neighbours of a that are not adjacent to v are gone
			g.common = g.intersect(row, neighbours, g.common[:0])
			g.fillCount[a] -= int64(len(row) - len(g.common))
		}
	}

	switch {
	case g.fillCount == nil:
		g.connectAll(neighbours)
	case g.fillCount[v] > 0:
		g.addMissing(neighbours)
	}
}

// connectAll makes the vertices of clique, a sorted list, pairwise adjacent, without fill counts. It merges clique into the neighbours of
// each member.
func (g *fillGraph) connectAll(clique []int32) {
	for _, a := range clique {
		if g.moves > g.limit || g.pace.Over(int64(len(clique))) { // the greedy order ends
			return
		}
		row := g.neighbours[a]
		merged := g.rowBuffer[:0]

		i, j := 0, 0
		for i < len(row) || j < len(clique) {
			switch {
			case j == len(clique) || i < len(row) && row[i] < clique[j]:
				merged = append(merged, row[i])
				i++
			case i < len(row) && row[i] == clique[j]:
				merged = append(merged, row[i])
				i, j = i+1, j+1
			default:
				if clique[j] != a {
					merged = append(merged, clique[j])
					g.weight[a] += g.log2Dim[clique[j]]
				}
				j++
			}
		}

		g.moves += int64(len(merged))
		g.neighbours[a] = append(row[:0], merged...)
		g.rowBuffer = merged
	}
}

// addMissing makes the vertices of clique, a sorted list, pairwise adjacent, and updates the fill counts. A new edge {a, b} removes one
// missing pair from every common neighbour. It adds to a, and to b, one missing pair per neighbour that is not common.
func (g *fillGraph) addMissing(clique []int32) {
	for i, a := range clique {
		if g.moves > g.limit { // the greedy order ends; nothing reads the fill counts again
			return
		}
		for _, b := range clique[i+1:] {
			if g.pace.Over(int64(len(g.neighbours[b]))) {
				return
			}
			position, isAdjacent := slices.BinarySearch(g.neighbours[a], b)
			g.moves += 4
			if isAdjacent {
				continue
			}

			g.common = g.intersect(g.neighbours[a], g.neighbours[b], g.common[:0])
			for _, c := range g.common {
				g.fillCount[c]--
				g.markTouched(c)
			}
			g.fillCount[a] += int64(len(g.neighbours[a]) - len(g.common))
			g.fillCount[b] += int64(len(g.neighbours[b]) - len(g.common))

			g.neighbours[a] = slices.Insert(g.neighbours[a], position, b)
			position, _ = slices.BinarySearch(g.neighbours[b], a)
			g.neighbours[b] = slices.Insert(g.neighbours[b], position, a)
			g.weight[a] += g.log2Dim[b]
			g.weight[b] += g.log2Dim[a]
		}
	}
}
