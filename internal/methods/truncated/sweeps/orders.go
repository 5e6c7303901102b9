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

// shuffle permutes a list in place and returns it. Without rng it leaves the list as it is.
func shuffle(list []int, rng *rand.Rand) []int {
	if rng != nil {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	}
	return list
}

// cuthillMcKee returns the indices of each connected part in breadth-first order from an index at its rim. Neighbours come by degree. rng
// breaks ties and chooses from where the rim is looked for; it may be nil. near has the neighbours by index.
// Source: E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric matrices (1969).
func cuthillMcKee(near [][]int, indices []int, rng *rand.Rand) (out []int) {
	seen := make([]bool, len(near))
	search := func(seen []bool, start int, rng *rand.Rand) []int {
		return legs.BreadthFirst(near, seen, start, func(found []int) {
			slices.SortStableFunc(shuffle(found, rng), func(a, b int) int { return cmp.Compare(len(near[a]), len(near[b])) })
		})
	}
	for _, start := range shuffle(slices.Clone(indices), rng) {
		if seen[start] {
			continue
		}
		for range 4 { // the last index of a search is farther out than its start
			reached := search(slices.Clone(seen), start, nil)
			start = reached[len(reached)-1]
		}
		out = append(out, search(seen, start, rng)...)
	}
	return out
}

// growingChain is the sequence of a chain while it is made. Indices stay in it when they are summed out, so that their places are known.
type growingChain struct {
	list.List
	element []*list.Element // by index; nil if it is not in the chain
}

func newGrowingChain(n int) *growingChain { return &growingChain{element: make([]*list.Element, n)} }

// has reports whether index j is in the chain.
func (l *growingChain) has(j int) bool { return l.element[j] != nil }

// insertBefore puts index j just before index i, or at the end if i < 0.
func (l *growingChain) insertBefore(j, i int) {
	if i < 0 {
		l.element[j] = l.PushBack(j)
	} else {
		l.element[j] = l.InsertBefore(j, l.element[i])
	}
}

// indices returns the indices in the sequence of the chain.
func (l *growingChain) indices() (out []int) {
	for e := l.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(int))
	}
	return out
}

// localInsertion returns a chain for an elimination order. When an index is summed out, its neighbours that are not in the chain yet enter
// at its place: those that are summed out late on the left, those that are summed out soon on the right.
func localInsertion(near [][]int, order []int) []int {
	rank := positions(order, len(near))
	l := newGrowingChain(len(near))
	for _, i := range order {
		if !l.has(i) {
			l.insertBefore(i, -1)
		}
		var entering []int
		for _, j := range near[i] {
			if !l.has(j) {
				entering = append(entering, j)
			}
		}
		slices.SortFunc(entering, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
		for _, j := range entering {
			l.insertBefore(j, i)
		}
	}
	return l.indices()
}

// greedySweep is the state of one greedy elimination.
type greedySweep struct {
	h        contractionorder.Hypergraph
	near     [][]int // neighbours by index
	chain    *growingChain
	isSummed []bool // by index
	frontier []int  // the indices in the chain that are not summed out, in the sequence of the chain
	place    []int  // by index: its place in the frontier
	entry    []int  // by index: its number, from 1, among those that entered the frontier
	entered  int    // how many have entered
}

// greedy sums out, again and again, the index of the frontier whose step touches the fewest bits of the chain. Its neighbours that are not
// in the chain take its place. It takes its work off moves, and returns false if none are left. near has the neighbours by index.
func greedy(h contractionorder.Hypergraph, near [][]int, indices []int, rng *rand.Rand, moves *int64) (order, chain []int, ok bool) {
	n := len(near)
	g := &greedySweep{
		h: h, near: near, chain: newGrowingChain(n), isSummed: make([]bool, n), place: make([]int, n), entry: make([]int, n),
	}
	starts := cuthillMcKee(near, indices, rng)
	for len(order) < len(indices) {
		if len(g.frontier) == 0 { // another connected part begins
			for g.chain.has(starts[0]) {
				starts = starts[1:]
			}
			g.enter(0, starts[0], -1)
		}
		best, bestCost := -1, math.Inf(1)
		for k, i := range g.frontier {
			cost := g.cost(k) + 1e-6*rng.Float64()
			if cost < bestCost || cost == bestCost && g.entry[i] < g.entry[g.frontier[best]] {
				best, bestCost = k, cost
			}
			*moves -= int64(len(near[i]))
		}
		if *moves < 0 {
			return nil, nil, false
		}
		order = append(order, g.eliminate(best))
	}
	return order, g.chain.indices(), true
}

// cost returns the cost of summing out the index at place k of the frontier, in bits. It counts the log2 of its dimension for each bond
// between its neighbours in the chain, twice the log2 of the growth of the chain, and a little for indices that entered late.
func (g *greedySweep) cost(k int) float64 {
	i := g.frontier[k]
	first, last := k, k // of the neighbours' places
	enteringBits := 0.0
	for _, j := range g.near[i] {
		switch {
		case !g.chain.has(j):
			enteringBits += math.Log2(float64(g.h.Dims[j]))
		case !g.isSummed[j]:
			first, last = min(first, g.place[j]), max(last, g.place[j])
		}
	}
	bits := math.Log2(float64(g.h.Dims[i]))
	return float64(last-first)*bits + 2*(enteringBits-bits) + 1e-3*float64(g.entry[i])/float64(len(g.near))
}

// enter puts index j into the frontier at place k, and into the chain before index i, or at its end if i < 0.
func (g *greedySweep) enter(k, j, i int) {
	g.chain.insertBefore(j, i)
	g.entered++
	g.entry[j] = g.entered
	g.frontier = slices.Insert(g.frontier, k, j)
}

// eliminate sums out the index at place k of the frontier and returns it. Its neighbours that are not in the chain enter before it.
func (g *greedySweep) eliminate(k int) int {
	i := g.frontier[k]
	for _, j := range g.near[i] {
		if !g.chain.has(j) {
			g.enter(k, j, i)
			k++
		}
	}
	g.isSummed[i] = true
	g.frontier = slices.Delete(g.frontier, k, k+1)
	for k, j := range g.frontier {
		g.place[j] = k
	}
	return i
}
