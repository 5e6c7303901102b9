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

// shuffle permutes a list in place at random and returns it. If rng is nil, it leaves the list unchanged.
func shuffle(list []int, rng *rand.Rand) []int {
	if rng != nil {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

// cuthillMcKee returns the indices in the order of Cuthill and McKee: each connected part breadth first from an index at its rim, the
// neighbours of an index by their number of neighbours. If rng is not nil, it breaks ties and chooses where the search for a rim begins.
// neighbours[i] are those of index i. Source: E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric matrices (1969).
func cuthillMcKee(neighbours [][]int, indices []int, rng *rand.Rand) (order []int) {
	isVisited := make([]bool, len(neighbours))
	search := func(isVisited []bool, start int, rng *rand.Rand) []int {
		return legs.BreadthFirst(neighbours, isVisited, start, func(newNeighbours []int) {
			slices.SortStableFunc(shuffle(newNeighbours, rng), func(a, b int) int { return cmp.Compare(len(neighbours[a]), len(neighbours[b])) })
		})
	}
	for _, start := range shuffle(slices.Clone(indices), rng) {
		if isVisited[start] {
			continue
		}
		for range 4 { // go to the rim: the last index of a search is farther out than its start; four times are chosen
			reached := search(slices.Clone(isVisited), start, nil)
			start = reached[len(reached)-1]
		}
		order = append(order, search(isVisited, start, rng)...)
	}
	return order
}

// growingChain is the sequence of the indices in a chain while it is made. Indices stay in it when they are summed out, so that their
// places are known.
type growingChain struct {
	list.List
	element []*list.Element // by index: its place in the list; nil if it is not in the chain
}

// newGrowingChain returns an empty chain for indices below n.
func newGrowingChain(n int) *growingChain { return &growingChain{element: make([]*list.Element, n)} }

// has reports whether index j is in the chain.
func (l *growingChain) has(j int) bool { return l.element[j] != nil }

// atEnd is the argument of insertBefore and enter that stands for the end of the chain.
const atEnd = -1

// insertBefore inserts index j just before index i, or at the end if i is atEnd.
func (l *growingChain) insertBefore(j, i int) {
	if i < 0 {
		l.element[j] = l.PushBack(j)
	} else {
		l.element[j] = l.InsertBefore(j, l.element[i])
	}
}

// indices returns the indices in the sequence of the chain.
func (l *growingChain) indices() (sequence []int) {
	for e := l.Front(); e != nil; e = e.Next() {
		sequence = append(sequence, e.Value.(int))
	}
	return sequence
}

// localInsertion returns a chain for an elimination order, a sequence of the indices. When an index is summed out, its neighbours that are
// not in the chain yet enter just before it: those that are summed out late on the left, those that are summed out soon on the right.
// neighbours[i] are those of index i.
func localInsertion(neighbours [][]int, order []int) []int {
	rank := positions(order, len(neighbours)) // by index: when it is summed out
	chain := newGrowingChain(len(neighbours))
	for _, i := range order {
		if !chain.has(i) {
			chain.insertBefore(i, atEnd)
		}
		var entering []int
		for _, j := range neighbours[i] {
			if !chain.has(j) {
				entering = append(entering, j)
			}
		}
		slices.SortFunc(entering, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
		for _, j := range entering {
			chain.insertBefore(j, i)
		}
	}
	return chain.indices()
}

// greedySweep is the state of one greedy elimination.
type greedySweep struct {
	hypergraph contractionorder.Hypergraph
	neighbours [][]int // by index
	chain      *growingChain
	isSummed   []bool // by index: it is summed out
	frontier   []int  // the indices in the chain that are not summed out, in the sequence of the chain
	place      []int  // by index: its place in the frontier
	entry      []int  // by index: its number, from 1, in the sequence in which indices entered the frontier
	entered    int    // the number of indices that have entered
}

// greedyOrder returns an elimination order and a chain of the given indices. It sums out, again and again, the index of the frontier whose
// step is cheapest (cost); the neighbours that are not in the chain yet take its place. neighbours[i] are those of index i. It subtracts
// its work from moves, and ok is false if none are left. The frontier is the indices that are in the chain and not summed out.
func greedyOrder(
	h contractionorder.Hypergraph, neighbours [][]int, indices []int, rng *rand.Rand, moves *int64,
) (order, chain []int, ok bool) {
	n := len(neighbours)
	g := &greedySweep{
		hypergraph: h, neighbours: neighbours, chain: newGrowingChain(n),
		isSummed: make([]bool, n), place: make([]int, n), entry: make([]int, n),
	}
	starts := cuthillMcKee(neighbours, indices, rng)
	for len(order) < len(indices) {
		if len(g.frontier) == 0 { // another connected part begins
			for g.chain.has(starts[0]) {
				starts = starts[1:]
			}
			g.enter(0, starts[0], atEnd)
		}

		// Find the cheapest index of the frontier. Ties are broken at random, or by the sequence of entry.
		best, bestCost := -1, math.Inf(1)
		for k, i := range g.frontier {
			cost := g.cost(k) + 1e-6*rng.Float64() // far less than costs differ by, so that it only breaks ties
			if cost < bestCost || cost == bestCost && g.entry[i] < g.entry[g.frontier[best]] {
				best, bestCost = k, cost
			}
			*moves -= int64(len(neighbours[i]))
		}
		if *moves < 0 {
			return nil, nil, false
		}
		order = append(order, g.eliminate(best))
	}
	return order, g.chain.indices(), true
}

// cost returns the cost of summing out the index at place k of the frontier, in bits. It is the sum of three terms: log2 of the index's
// dimension for each bond between its neighbours in the chain; twice the log2 of the factor by which the state grows; and a little for an
// index that entered late. The frontier is the indices that are in the chain and not summed out, in the sequence of the chain.
func (g *greedySweep) cost(k int) float64 {
	i := g.frontier[k]
	first, last := k, k // of the neighbours' places
	enteringBits := 0.0 // log2 of the dimensions of the neighbours that enter
	for _, j := range g.neighbours[i] {
		switch {
		case !g.chain.has(j):
			enteringBits += math.Log2(float64(g.hypergraph.Dims[j]))
		case !g.isSummed[j]:
			first, last = min(first, g.place[j]), max(last, g.place[j])
		}
	}
	bits := math.Log2(float64(g.hypergraph.Dims[i]))
	lateness := float64(g.entry[i]) / float64(len(g.neighbours))            // the number of indices that entered before, from 0 to 1
	return float64(last-first)*bits + 2*(enteringBits-bits) + 1e-3*lateness // 1e-3: far less than a bit
}

// enter inserts index j into the frontier at place k, and into the chain before index i, or at its end if i is atEnd.
func (g *greedySweep) enter(k, j, i int) {
	g.chain.insertBefore(j, i)
	g.entered++
	g.entry[j] = g.entered
	g.frontier = slices.Insert(g.frontier, k, j)
}

// eliminate sums out the index at place k of the frontier and returns it. Its neighbours that are not in the chain enter before it. The
// frontier is the indices that are in the chain and not summed out, in the sequence of the chain.
func (g *greedySweep) eliminate(k int) int {
	i := g.frontier[k]
	for _, j := range g.neighbours[i] {
		if !g.chain.has(j) {
			g.enter(k, j, i)
			k++ // index i has moved on by one place
		}
	}
	g.isSummed[i] = true
	g.frontier = slices.Delete(g.frontier, k, k+1)
	for k, j := range g.frontier {
		g.place[j] = k
	}
	return i
}
