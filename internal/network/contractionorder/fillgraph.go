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
	weight     []int64    // log2 of the size of the table over the vertex and its neighbours, times logUnit
	fillCount  []int64    // edges that eliminating the vertex now would add; nil: not counted
	movesSpent int64      // elementary operations so far
	maxMoves   int64      // number of moves at which a greedy order ends
	stamp      []int32    // the number of the last elimination that put the vertex into touched
	round      int32      // number of the last elimination
	touched    []int32    // vertices whose weight or fill count the last elimination changed, each once
	rowBuffer  []int32    // scratch of connectAll
	common     []int32    // scratch: the last intersection
	isLast     []bool     // whether the vertex comes after all others in a greedy order; nil: no vertex does
	maxWeight  int64      // limit of the weight of a vertex that a greedy order eliminates; 0: no limit
	pace       *pace.Pace // after it has ended the graph is of no use
}

// newFillGraph returns the primal graph of h before any elimination: two indices are adjacent if a tensor has both. The weight of an index
// is log2 of the size of the table over it and its neighbours. Logarithms are integers, multiples of 1/logUnit. The fill count of an index,
// the number of edges that its elimination would add, is computed if countsFill.
func newFillGraph(h Hypergraph, countsFill bool, pace *pace.Pace) *fillGraph {
	n := len(h.Dims)
	g := &fillGraph{
		neighbours: make([][]int32, n),
		log2Dim:    make([]int64, n),
		weight:     make([]int64, n),
		stamp:      make([]int32, n),
		maxMoves:   maxMoves,
		pace:       pace,
	}

	for v, d := range h.Dims {
		g.log2Dim[v] = int64(math.Round(math.Log2(float64(d)) * logUnit))
	}
	g.connectTensors(h)

	// The weight of an index: the sum of log2Dim over it and its neighbours.
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

// connectTensors makes the indices of every tensor pairwise adjacent, except indices of dimension 1. If the search has ended, the lists of
// neighbours are incomplete, and nobody reads them.
func (g *fillGraph) connectTensors(h Hypergraph) {
	// Allocate each list for the neighbours in all tensors, counted with repetitions.
	capacity := make([]int, len(h.Dims))
	for _, edge := range h.Edges {
		for _, v := range edge {
			capacity[v] += len(edge) - 1
		}
	}
	for v, c := range capacity {
		if h.Dims[v] > 1 {
			g.neighbours[v] = make([]int32, 0, c)
		}
	}

	// List the neighbours tensor by tensor.
	for _, edge := range h.Edges {
		for _, v := range edge {
			if h.Dims[v] == 1 || g.pace.Over(int64(len(edge))) {
				continue
			}
			for _, u := range edge {
				if u != v && h.Dims[u] > 1 {
					g.neighbours[v] = append(g.neighbours[v], int32(u))
				}
			}
		}
	}

	// Sort the lists and remove repetitions.
	for v, row := range g.neighbours {
		if g.pace.Over(8 * int64(len(row))) { // roughly the operations of the sort
			return
		}
		slices.Sort(row)
		g.neighbours[v] = slices.Compact(row)
	}
}

// countFill sets fillCount[v] to the number of pairs of neighbours of v that are not adjacent, for every vertex v. This is the number of
// all pairs of neighbours, less the number of triangles with v: each triangle is a pair of neighbours that is adjacent. It finds the
// triangles from their edges, not from pairs of neighbours, so that a vertex of degree 10^5 does not cost 10^10. If the context ends, the
// counts are wrong, and nobody reads them.
func (g *fillGraph) countFill() {
	g.fillCount = make([]int64, len(g.neighbours))
	for v, row := range g.neighbours {
		degree := int64(len(row))
		g.fillCount[v] += degree * (degree - 1) / 2
		for _, u := range row {
			isSeen := int(u) < v // the edge {v, u} was looked at from u
			if isSeen || g.pace.Over(int64(len(row))) {
				continue
			}
			// Each common neighbour w is in a triangle with the edge {v, u}: v and u are an adjacent pair of neighbours of w.
			g.common = g.intersect(row, g.neighbours[u], g.common[:0])
			for _, w := range g.common {
				g.fillCount[w]--
			}
		}
	}
}

// intersect appends the elements that the sorted lists a and b have in common to common and returns it. If one list is more than 16 times
// longer, it searches that list for each element of the shorter one. Otherwise it walks through both. It counts its elementary operations
// in movesSpent.
func (g *fillGraph) intersect(a, b, common []int32) []int32 {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) > 16*len(a) { // a binary search for each element of a, about 16 operations, is cheaper than a walk through b
		g.movesSpent += 16 * int64(len(a))
		for _, x := range a {
			i, isCommon := slices.BinarySearch(b, x)
			if isCommon {
				common = append(common, x)
			}
			b = b[i:] // later elements of a are larger
		}
		return common
	}

	g.movesSpent += int64(len(a) + len(b))
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

// markTouched adds v to touched, the list of vertices that the present elimination changes, if it is not yet there.
func (g *fillGraph) markTouched(v int32) {
	if g.stamp[v] != g.round {
		g.stamp[v] = g.round
		g.touched = append(g.touched, v)
	}
}

// eliminate removes v from the graph and makes its neighbours pairwise adjacent. It updates the weights of its neighbours: weight[a] is
// the sum of log2Dim over a and its neighbours. If fill counts are kept (fillCount is not nil), it updates these, too: fillCount[a] is the
// number of pairs of neighbours of a that are not adjacent. Afterwards touched lists the vertices whose weight or fill count may have
// changed.
func (g *fillGraph) eliminate(v int32) {
	neighbours := g.neighbours[v]
	g.neighbours[v] = nil
	g.round++ // markTouched lists a vertex once in each round
	g.touched = g.touched[:0]

	// Remove v from the neighbours of each of its neighbours a.
	for _, a := range neighbours {
		g.markTouched(a)
		row := g.neighbours[a]
		if i, ok := slices.BinarySearch(row, v); ok {
			row = slices.Delete(row, i, i+1)
		}
		g.neighbours[a] = row
		g.weight[a] -= g.log2Dim[v]
		g.movesSpent += 8       // elementary operations; intersect and the functions called below count their own
		if g.fillCount != nil { // a loses its pairs of v with a neighbour that is not adjacent to v
			g.common = g.intersect(row, neighbours, g.common[:0])
			g.fillCount[a] -= int64(len(row) - len(g.common))
		}
	}

	// Connect the neighbours of v with each other.
	switch {
	case g.fillCount == nil:
		g.connectAll(neighbours)
	case g.fillCount[v] > 0: // some pair of neighbours is not adjacent; else there is nothing to connect
		g.addMissing(neighbours)
	}
}

// connectAll makes the vertices of clique, a sorted list, pairwise adjacent and updates their weights: weight[a] is the sum of log2Dim
// over a and its neighbours. For each member a it merges clique into row, the sorted list of neighbours of a. It is for graphs without
// fill counts. If a limit of the moves or of the time is reached, it stops early; the greedy order ends then.
func (g *fillGraph) connectAll(clique []int32) {
	for _, a := range clique {
		if g.movesSpent > g.maxMoves || g.pace.Over(int64(len(clique))) {
			return
		}
		row := g.neighbours[a]
		merged := g.rowBuffer[:0]

		i, j := 0, 0
		for i < len(row) || j < len(clique) {
			switch {
			case j == len(clique) || i < len(row) && row[i] < clique[j]: // row has the next vertex
				merged = append(merged, row[i])
				i++
			case i < len(row) && row[i] == clique[j]: // both have it
				merged = append(merged, row[i])
				i, j = i+1, j+1
			default: // only clique has it: a new neighbour of a, or a itself
				if clique[j] != a {
					merged = append(merged, clique[j])
					g.weight[a] += g.log2Dim[clique[j]]
				}
				j++
			}
		}

		g.movesSpent += int64(len(merged))
		g.neighbours[a] = append(row[:0], merged...)
		g.rowBuffer = merged
	}
}

// addMissing makes the vertices of clique, a sorted list, pairwise adjacent, and updates weights and fill counts. weight[a] is the sum of
// log2Dim over a and its neighbours. fillCount[a] is the number of pairs of neighbours of a that are not adjacent. So a new edge {a, b}
// lowers the fill count of every common neighbour of a and b by 1. It raises that of a by the number of neighbours of a that are not
// neighbours of b, and that of b likewise.
func (g *fillGraph) addMissing(clique []int32) {
	for i, a := range clique {
		if g.movesSpent > g.maxMoves { // the greedy order ends; nothing reads the fill counts again
			return
		}
		for _, b := range clique[i+1:] {
			if g.pace.Over(int64(len(g.neighbours[b]))) {
				return
			}
			position, isAdjacent := slices.BinarySearch(g.neighbours[a], b)
			g.movesSpent += 4 // elementary operations for the search; intersect counts its own
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
