package sweeps

// Sequences of the indices that searches start from.

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
)

// cuthillMcKee orders the indices by breadth-first search from an index of small degree far away
// from others (or any, for a random one), neighbours by degree. Source: E. Cuthill and J. McKee,
// Reducing the bandwidth of sparse symmetric matrices (1969).
func cuthillMcKee(near [][]int, live []int, rng *rand.Rand) []int {
	seen := make([]bool, len(near))
	var out []int
	shuffled := slices.Clone(live)
	if rng != nil {
		rng.Shuffle(len(shuffled),
			func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	}

	for _, start := range shuffled {
		if seen[start] {
			continue
		}
		for range 4 { // the last of a search is farther out
			start = last(breadthFirst(near, slices.Clone(seen), start, nil))
		}
		out = append(out, breadthFirst(near, seen, start, rng)...)
	}
	return out
}

// last returns the last entry of a list.
func last(list []int) int { return list[len(list)-1] }

// breadthFirst lists what is connected with start and not seen yet,
// neighbours by degree, marking it seen.
func breadthFirst(near [][]int, seen []bool, start int, rng *rand.Rand) []int {
	out := []int{start}
	seen[start] = true
	for k := 0; k < len(out); k++ {
		begin := len(out)
		for _, j := range near[out[k]] {
			if !seen[j] {
				seen[j] = true
				out = append(out, j)
			}
		}

		fresh := out[begin:]
		if rng != nil {
			rng.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		}
		slices.SortStableFunc(fresh,
			func(a, b int) int { return cmp.Compare(len(near[a]), len(near[b])) })
	}
	return out
}

// line is a chain in the making. Indices stay in it when they are summed out.
type line struct {
	before, next []int // by index: its neighbours in the chain, −1 at the ends
	head, tail   int   // −1 while it is empty
}

// newLine returns an empty chain of at most n indices.
func newLine(n int) *line {
	return &line{before: make([]int, n), next: make([]int, n), head: -1, tail: -1}
}

// add puts j at the end.
func (l *line) add(j int) {
	l.before[j] = l.tail
	l.next[j] = -1
	if l.tail >= 0 {
		l.next[l.tail] = j
	} else {
		l.head = j
	}
	l.tail = j
}

// insert puts j just before i.
func (l *line) insert(j, i int) {
	l.before[j] = l.before[i]
	l.next[j] = i
	if l.before[i] >= 0 {
		l.next[l.before[i]] = j
	} else {
		l.head = j
	}
	l.before[i] = j
}

// list returns the indices from the head on.
func (l *line) list() (out []int) {
	for i := l.head; i >= 0; i = l.next[i] {
		out = append(out, i)
	}
	return out
}

// localInsertion is the chain in which new indices take the place of the one that brings them:
// those summed out late to the left, those summed out soon to the right.
func localInsertion(near [][]int, order []int) []int {
	rank := positions(order, len(near))
	in := make([]bool, len(near))
	l := newLine(len(near))
	for _, i := range order {
		if !in[i] {
			in[i] = true
			l.add(i)
		}

		var fresh []int
		for _, j := range near[i] {
			if !in[j] {
				in[j] = true
				fresh = append(fresh, j)
			}
		}

		slices.SortFunc(fresh, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
		for _, j := range fresh {
			l.insert(j, i)
		}
	}
	return l.list()
}

// greedy sums out, again and again, the index of the frontier whose step touches the fewest bits
// of the chain; new indices take its place. ok is false when it gave up after too many moves.
func greedy(
	h contractionorder.Hypergraph, near [][]int, live []int, rng *rand.Rand, moves *int64,
) (order, chain []int, ok bool) {
	g := &greedyChain{
		h:     h,
		near:  near,
		line:  newLine(len(near)),
		state: make([]byte, len(near)),
		at:    make([]int, len(near)),
		born:  make([]int, len(near)),
	}

	starts := cuthillMcKee(near, live, rng)

	for len(order) < len(live) {
		if len(g.frontier) == 0 {
			for g.state[starts[0]] != 0 {
				starts = starts[1:]
			}
			g.line.add(starts[0])
			g.open(0, starts[0])
		}

		best := -1
		cost := math.Inf(1)
		for k, i := range g.frontier {
			c := g.cost(k) + 1e-6*rng.Float64()
			if c < cost || c == cost && g.born[i] < g.born[g.frontier[best]] {
				best = k
				cost = c
			}
			*moves -= int64(len(near[i]))
		}

		if *moves < 0 {
			return nil, nil, false
		}
		order = append(order, g.eliminate(best))
	}
	return order, g.line.list(), true
}

// greedyChain carries one greedy order.
type greedyChain struct {
	h        contractionorder.Hypergraph
	near     [][]int
	line     *line
	state    []byte // 0 not seen, 1 in the frontier, 2 summed out
	frontier []int  // in the sequence of the chain
	at       []int  // by index: place in the frontier
	born     []int  // by index: when it came into the frontier
	clock    int    // indices that came so far
}

// cost of summing out site k:
// log2 of its dimension for every bond touched, the new sites' dimensions, and some for age.
func (g *greedyChain) cost(k int) float64 {
	i := g.frontier[k]
	low, high := k, k
	fresh := 0.0 // log2 of what comes into the chain
	for _, j := range g.near[i] {
		switch g.state[j] {
		case 0:
			fresh += math.Log2(float64(g.h.Dims[j]))
		case 1:
			low = min(low, g.at[j])
			high = max(high, g.at[j])
		}
	}
	own := math.Log2(float64(g.h.Dims[i]))
	return float64(high-low)*own + 2*(fresh-own) + 1e-3*float64(g.born[i])/float64(len(g.near))
}

// open puts index j into the frontier at place k.
func (g *greedyChain) open(k, j int) {
	g.state[j] = 1
	g.clock++
	g.born[j] = g.clock
	g.frontier = slices.Insert(g.frontier, k, j)
}

// eliminate sums out the index at place k of the frontier, before which its new neighbours come.
func (g *greedyChain) eliminate(k int) int {
	i := g.frontier[k]
	for _, j := range g.near[i] {
		if g.state[j] == 0 {
			g.line.insert(j, i)
			g.open(k, j)
			k++
		}
	}

	g.state[i] = 2
	g.frontier = slices.Delete(g.frontier, k, k+1)
	for k, j := range g.frontier {
		g.at[j] = k
	}
	return i
}
