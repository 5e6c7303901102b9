package mps

// Sequences of the indices that searches start from.

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/elimination"
)

// cuthillMcKee orders the indices by breadth-first search from an index of small degree far away from others (or any, for
// a random one), neighbours by degree. Source: E. Cuthill and J. McKee, Reducing the bandwidth of sparse symmetric
// matrices (1969).
func cuthillMcKee(near [][]int, live []int, rng *rand.Rand) []int {
	seen := make([]bool, len(near))
	var out []int
	shuffled := slices.Clone(live)
	if rng != nil {
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
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

func last(list []int) int { return list[len(list)-1] }

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
		slices.SortStableFunc(fresh, func(a, b int) int { return cmp.Compare(len(near[a]), len(near[b])) })
	}
	return out
}

// localInsertion is the chain in which new indices take the place of the one that brings them: those summed out late to
// the left, those summed out soon to the right.
func localInsertion(near [][]int, order []int) []int {
	rank := positions(order, len(near))
	in := make([]bool, len(near))
	next := make([]int, len(near)) // the chain as a list; indices stay in it when they are summed out
	before := make([]int, len(near))
	head := -1
	for k := len(order) - 1; k >= 0; k-- { // one after the other where there is nothing to be beside of
		next[order[k]], before[order[k]] = -1, -1
	}
	tail := -1
	for _, i := range order {
		if !in[i] {
			in[i] = true
			before[i], next[i] = tail, -1
			if tail >= 0 {
				next[tail] = i
			} else {
				head = i
			}
			tail = i
		}
		var fresh []int
		for _, j := range near[i] {
			if !in[j] {
				in[j] = true
				fresh = append(fresh, j)
			}
		}
		slices.SortFunc(fresh, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
		for _, j := range fresh { // to the left of i, in sequence
			before[j], next[j] = before[i], i
			if before[i] >= 0 {
				next[before[i]] = j
			} else {
				head = j
			}
			before[i] = j
		}
	}
	out := make([]int, 0, len(order))
	for i := head; i >= 0; i = next[i] {
		out = append(out, i)
	}
	return out
}

// greedy sums out, again and again, the index of the frontier whose step touches the fewest bits of the chain; new
// indices take its place. ok is false when it gave up after too many moves.
func greedy(h elimination.Hypergraph, near [][]int, live []int, rng *rand.Rand, moves *int64) (order, chain []int, ok bool) {
	g := &greedyChain{h: h, near: near, state: make([]byte, len(near)), at: make([]int, len(near)), born: make([]int, len(near))}
	starts := cuthillMcKee(near, live, rng)
	for len(order) < len(live) {
		if len(g.frontier) == 0 {
			for g.state[starts[0]] != 0 {
				starts = starts[1:]
			}
			g.open(0, starts[0], &chain, -1)
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
		order = append(order, g.eliminate(best, &chain))
	}
	return order, chain, true
}

type greedyChain struct {
	h        elimination.Hypergraph
	near     [][]int
	state    []byte // 0 not seen, 1 in the frontier, 2 summed out
	frontier []int
	at       []int // by index: place in the frontier
	born     []int
	clock    int
}

// cost of summing out site k: log2 of its dimension for every bond touched, the new sites' dimensions, and some for age.
func (g *greedyChain) cost(k int) float64 {
	i := g.frontier[k]
	low, high, fresh := k, k, 0.0
	for _, j := range g.near[i] {
		switch g.state[j] {
		case 0:
			fresh += math.Log2(float64(g.h.Dims[j]))
		case 1:
			low, high = min(low, g.at[j]), max(high, g.at[j])
		}
	}
	own := math.Log2(float64(g.h.Dims[i]))
	return float64(high-low)*own + 2*(fresh-own) + 1e-3*float64(g.born[i])/float64(len(g.near))
}

func (g *greedyChain) open(k, j int, chain *[]int, host int) {
	g.state[j] = 1
	g.clock++
	g.born[j] = g.clock
	g.frontier = slices.Insert(g.frontier, k, j)
	at := len(*chain)
	if host >= 0 {
		at = slices.Index(*chain, host)
	}
	*chain = slices.Insert(*chain, at, j)
}

func (g *greedyChain) eliminate(k int, chain *[]int) int {
	i := g.frontier[k]
	for _, j := range g.near[i] {
		if g.state[j] == 0 {
			g.open(k, j, chain, i)
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
