package sweeps

// Sequences of the indices that searches start from.

import (
	"cmp"
	"container/list"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// shuffle permutes a list with rng, not at all without.
func shuffle(list []int, rng *rand.Rand) []int {
	if rng != nil {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

// cuthillMcKee orders the indices by breadth-first search from an index of small degree far away from others (or any, for a random one),
// neighbours by degree. Source: E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric matrices (1969).
func cuthillMcKee(near [][]int, live []int, rng *rand.Rand) (out []int) {
	seen := make([]bool, len(near))
	search := func(seen []bool, start int, rng *rand.Rand) []int {
		return legs.BreadthFirst(near, seen, start, func(fresh []int) {
			slices.SortStableFunc(shuffle(fresh, rng), func(a, b int) int { return cmp.Compare(len(near[a]), len(near[b])) })
		})
	}
	for _, start := range shuffle(slices.Clone(live), rng) {
		if seen[start] {
			continue
		}
		for range 4 { // the last of a search is farther out
			reached := search(slices.Clone(seen), start, nil)
			start = reached[len(reached)-1]
		}
		out = append(out, search(seen, start, rng)...)
	}
	return out
}

// line is a chain in the making. Indices stay in it when they are summed out.
type line struct {
	list.List
	at []*list.Element // by index; nil outside
}

func newLine(n int) *line { return &line{at: make([]*list.Element, n)} }

// add puts j just before i, at the end for i < 0.
func (l *line) add(j, i int) {
	if i < 0 {
		l.at[j] = l.PushBack(j)
	} else {
		l.at[j] = l.InsertBefore(j, l.at[i])
	}
}

// indices lists the chain.
func (l *line) indices() (out []int) {
	for e := l.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(int))
	}
	return out
}

// localInsertion is the chain in which new indices take the place of the one that brings them: those summed out late to the left, those
// summed out soon to the right.
func localInsertion(near [][]int, order []int) []int {
	rank := positions(order, len(near))
	l := newLine(len(near))
	for _, i := range order {
		if l.at[i] == nil {
			l.add(i, -1)
		}
		var fresh []int
		for _, j := range near[i] {
			if l.at[j] == nil {
				fresh = append(fresh, j)
			}
		}
		slices.SortFunc(fresh, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
		for _, j := range fresh {
			l.add(j, i)
		}
	}
	return l.indices()
}

// greedyChain carries one greedy order.
type greedyChain struct {
	h        contractionorder.Hypergraph
	near     [][]int
	line     *line
	done     []bool
	frontier []int // in the sequence of the chain
	at       []int // by index: place in the frontier
	born     []int // by index: its number among those that came into the frontier
	clock    int
}

// greedy sums out, again and again, the index of the frontier whose step touches the fewest bits of the chain; new indices take its
// place. ok is false when it gave up after too many moves.
func greedy(h contractionorder.Hypergraph, near [][]int, live []int, rng *rand.Rand, moves *int64) (order, chain []int, ok bool) {
	n := len(near)
	g := &greedyChain{h: h, near: near, line: newLine(n), done: make([]bool, n), at: make([]int, n), born: make([]int, n)}
	starts := cuthillMcKee(near, live, rng)
	for len(order) < len(live) {
		if len(g.frontier) == 0 {
			for g.line.at[starts[0]] != nil {
				starts = starts[1:]
			}
			g.open(0, starts[0], -1)
		}
		best, cost := -1, math.Inf(1)
		for k, i := range g.frontier {
			c := g.cost(k) + 1e-6*rng.Float64()
			if c < cost || c == cost && g.born[i] < g.born[g.frontier[best]] {
				best, cost = k, c
			}
			*moves -= int64(len(near[i]))
		}
		if *moves < 0 {
			return nil, nil, false
		}
		order = append(order, g.eliminate(best))
	}
	return order, g.line.indices(), true
}

// cost of summing out site k: log2 of its dimension for every bond touched, the new sites' dimensions, and some for age.
func (g *greedyChain) cost(k int) float64 {
	i := g.frontier[k]
	low, high := k, k
	fresh := 0.0 // log2 of the dimensions that come into the chain
	for _, j := range g.near[i] {
		switch {
		case g.line.at[j] == nil:
			fresh += math.Log2(float64(g.h.Dims[j]))
		case !g.done[j]:
			low, high = min(low, g.at[j]), max(high, g.at[j])
		}
	}
	own := math.Log2(float64(g.h.Dims[i]))
	return float64(high-low)*own + 2*(fresh-own) + 1e-3*float64(g.born[i])/float64(len(g.near))
}

// open puts index j into the frontier at place k, and into the chain before i.
func (g *greedyChain) open(k, j, i int) {
	g.line.add(j, i)
	g.clock++
	g.born[j] = g.clock
	g.frontier = slices.Insert(g.frontier, k, j)
}

// eliminate sums out the index at place k of the frontier, before which its new neighbours come.
func (g *greedyChain) eliminate(k int) int {
	i := g.frontier[k]
	for _, j := range g.near[i] {
		if g.line.at[j] == nil {
			g.open(k, j, i)
			k++
		}
	}
	g.done[i] = true
	g.frontier = slices.Delete(g.frontier, k, k+1)
	for k, j := range g.frontier {
		g.at[j] = k
	}
	return i
}
