package contractionorder

// The primal graph of a hypergraph under elimination:
// two indices are adjacent when a tensor has both.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// logUnit is the fixed-point unit of log2 dimensions:
// sums of them are exact, so ties are real ties.
const logUnit = 1 << 32

// fillGraph is a graph whose vertices are eliminated one by one,
// each leaving its neighbours pairwise adjacent.
type fillGraph struct {
	adj    [][]int32  // sorted neighbours; nil once eliminated
	log    []int64    // log2 of the dimension, in units of 1/logUnit
	weight []int64    // log2 of the table that eliminating the vertex now would touch
	fill   []int64    // edges that eliminating the vertex now would add; nil when not kept
	moves  int64      // elementary operations so far
	limit  int64      // of moves: a greedy order ends there
	stamp  []int32    // stamp[v] == round: v was touched by the last elimination
	round  int32      // number of the last elimination
	touch  []int32    // vertices whose weight or fill the last elimination changed
	buf    []int32    // scratch of saturate
	common []int32    // scratch: the last intersection
	last   []bool     // vertices that a greedy order has after all others; nil: none
	most   int64      // largest weight a greedy order accepts; 0: any
	pace   *pace.Pace // once it is over the graph is of no use any more
}

// newFillGraph returns the primal graph of h before any elimination,
// with fill counts where they are wanted.
func newFillGraph(h Hypergraph, fill bool, p *pace.Pace) *fillGraph {
	n := len(h.Dims)
	g := &fillGraph{
		adj:    make([][]int32, n),
		log:    make([]int64, n),
		weight: make([]int64, n),
		stamp:  make([]int32, n),
		limit:  maxMoves,
		pace:   p,
	}

	for v, d := range h.Dims {
		g.log[v] = int64(math.Round(math.Log2(float64(d)) * logUnit))
	}
	g.connect(h)

	for v, row := range g.adj {
		g.weight[v] = g.log[v]
		for _, u := range row {
			g.weight[v] += g.log[u]
		}
	}

	if fill {
		g.countFill()
	}
	return g
}

// connect makes the indices of every tensor pairwise adjacent.
func (g *fillGraph) connect(h Hypergraph) {
	degree := make([]int, len(h.Dims))
	for _, e := range h.Edges {
		for _, v := range e {
			degree[v] += len(e) - 1
		}
	}

	for v, d := range degree {
		if h.Dims[v] > 1 {
			g.adj[v] = make([]int32, 0, d)
		}
	}

	for _, e := range h.Edges {
		for _, v := range e {
			if h.Dims[v] == 1 || g.pace.Over(int64(len(e))) {
				continue
			}
			for _, u := range e {
				if u != v && h.Dims[u] > 1 {
					g.adj[v] = append(g.adj[v], int32(u))
				}
			}
		}
	}

	for v, row := range g.adj {
		if g.pace.Over(8 * int64(len(row))) {
			return
		}
		slices.Sort(row)
		g.adj[v] = slices.Compact(row)
	}
}

// countFill counts missing edges in every neighbourhood as pairs less triangles,
// so that a vertex of degree 10^5 does not cost 10^10.
func (g *fillGraph) countFill() {
	g.fill = make([]int64, len(g.adj))
	for v, row := range g.adj {
		d := int64(len(row))

		// Every pair of neighbours counts as missing until a triangle shows that it is not.
		g.fill[v] += d * (d - 1) / 2
		for _, u := range row {
			if int(u) < v || g.pace.Over(int64(len(row))) {
				continue
			}
			g.common = g.intersect(row, g.adj[u], g.common[:0])
			for _, w := range g.common {
				g.fill[w]--
			}
		}
	}
}

// intersect appends the common elements of two sorted lists, by bisection when one is much shorter.
func (g *fillGraph) intersect(a, b, out []int32) []int32 {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b) > 16*len(a) {
		g.moves += 16 * int64(len(a))
		for _, x := range a {
			i, ok := slices.BinarySearch(b, x)
			if ok {
				out = append(out, x)
			}
			b = b[i:]
		}
		return out
	}

	g.moves += int64(len(a) + len(b))
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		x, y := a[i], b[j]
		if x == y {
			out = append(out, x)
		}
		if x <= y {
			i++
		}
		if y <= x {
			j++
		}
	}
	return out
}

// touched notes v once for every elimination.
func (g *fillGraph) touched(v int32) {
	if g.stamp[v] != g.round {
		g.stamp[v] = g.round
		g.touch = append(g.touch, v)
	}
}

// eliminate removes v and makes its neighbours pairwise adjacent.
// g.touch lists the vertices whose keys changed.
func (g *fillGraph) eliminate(v int32) {
	near := g.adj[v]
	g.adj[v] = nil
	g.round++
	g.touch = g.touch[:0]

	for _, a := range near {
		g.touched(a)
		row := g.adj[a]
		if i, ok := slices.BinarySearch(row, v); ok {
			row = slices.Delete(row, i, i+1)
		}
		g.adj[a] = row
		g.weight[a] -= g.log[v]
		g.moves += 8
		if g.fill != nil {
			g.common = g.intersect(row, near, g.common[:0])
			g.fill[a] -= int64(len(row) - len(g.common))
		}
	}

	switch {
	case g.fill == nil:
		g.saturate(near)
	case g.fill[v] > 0:
		g.addMissing(near)
	}
}

// saturate merges near into the row of each of its members.
func (g *fillGraph) saturate(near []int32) {
	for _, a := range near {
		if g.moves > g.limit || g.pace.Over(int64(len(near))) { // the run ends here
			return
		}
		row := g.adj[a]
		out := g.buf[:0]

		i, j := 0, 0
		for i < len(row) || j < len(near) {
			switch {
			case j == len(near) || i < len(row) && row[i] < near[j]:
				out = append(out, row[i])
				i++
			case i < len(row) && row[i] == near[j]:
				out = append(out, row[i])
				i, j = i+1, j+1
			default:
				if near[j] != a {
					out = append(out, near[j])
					g.weight[a] += g.log[near[j]]
				}
				j++
			}
		}

		g.moves += int64(len(out))
		g.adj[a] = append(row[:0], out...)
		g.buf = out
	}
}

// addMissing adds the missing edges among near, keeping the fill counts: a new edge {a, b}
// completes one pair in every common neighbour, and gives a (and b) one incomplete pair per
// neighbour that is not common.
func (g *fillGraph) addMissing(near []int32) {
	for i, a := range near {
		if g.moves > g.limit { // the run ends here; nothing reads the fill counts again
			return
		}
		for _, b := range near[i+1:] {
			if g.pace.Over(int64(len(g.adj[b]))) {
				return
			}
			at, ok := slices.BinarySearch(g.adj[a], b)
			g.moves += 4
			if ok {
				continue
			}

			g.common = g.intersect(g.adj[a], g.adj[b], g.common[:0])
			for _, c := range g.common {
				g.fill[c]--
				g.touched(c)
			}
			g.fill[a] += int64(len(g.adj[a]) - len(g.common))
			g.fill[b] += int64(len(g.adj[b]) - len(g.common))

			g.adj[a] = slices.Insert(g.adj[a], at, b)
			at, _ = slices.BinarySearch(g.adj[b], a)
			g.adj[b] = slices.Insert(g.adj[b], at, a)
			g.weight[a] += g.log[b]
			g.weight[b] += g.log[a]
		}
	}
}
