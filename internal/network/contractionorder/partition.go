package contractionorder

// Multilevel bisection of a hypergraph: vertices that share costly nets are grouped, level by level, until few are left. These are split,
// and the split is refined on the way back.
// Source: G. Karypis, R. Aggarwal, V. Kumar, S. Shekhar, Multilevel hypergraph partitioning (1999).

import (
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// hypergraph is a part of a network while it is split. Its vertices are groups of tensors. Its nets are indices: a net is the set of
// vertices that have an index.
type hypergraph struct {
	weight []int64     // by vertex: the number of its tensors
	nets   [][]int32   // by net: its vertices, each once
	cost   []log2Fixed // by net: the cost if its vertices are on both sides
	netsOf [][]int32   // by vertex: its nets
}

// linkNets sets netsOf, the nets of every vertex, from nets, the vertices of every net.
func (g *hypergraph) linkNets() {
	g.netsOf = make([][]int32, len(g.weight))
	for net, vertices := range g.nets {
		for _, v := range vertices {
			g.netsOf[v] = append(g.netsOf[v], int32(net))
		}
	}
}

const (
	maxDirect   = 40 // a hypergraph with at most so many vertices is split directly
	directTries = 6  // direct splits, of which the best is taken
	maxRatedNet = 64 // nets with more vertices do not decide which vertices are grouped
)

// bisection splits hypergraphs into two sides of almost equal weight, so that the nets with vertices on both sides cost little.
type bisection struct {
	rng        *rand.PCG
	imbalance  int64 // a side may weigh (1 + imbalance/256)/2 of the total
	movesSpent int64
	pace       *pace.Pace // after it has ended hypergraphs are split anyhow, quickly
}

// split divides the vertices of g into two sides, so that few nets have vertices on both sides, and returns the side of every vertex, 0 or
// 1. It joins vertices to groups, splits the smaller hypergraph of the groups in the same way, and refines that split with the vertices.
// If there are two vertices or more, either side has some, unless the context has ended; then all may be on side 0.
func (b *bisection) split(g *hypergraph) []uint8 {
	if len(g.weight) <= maxDirect {
		return b.splitDirectly(g)
	}
	if b.pace.Err() != nil {
		return make([]uint8, len(g.weight))
	}
	coarser, group := b.coarsen(g)
	hasHardlyShrunk := len(coarser.weight)*20 > len(g.weight)*19 // by less than 5 %
	if hasHardlyShrunk {
		return b.splitDirectly(g)
	}

	sideOfGroup := b.split(coarser)
	side := make([]uint8, len(g.weight))
	for v := range side {
		side[v] = sideOfGroup[group[v]]
	}
	b.refine(g, side)
	return side
}

// coarsen returns a hypergraph whose vertices are groups of one or two vertices of g, and the group of every vertex of g. In random
// sequence it joins each vertex that has no group yet with a neighbour that has none: the one of the highest rating. The rating is high if
// the two vertices share costly nets with few vertices. A group of two weighs at most about an eighth of the total.
func (b *bisection) coarsen(g *hypergraph) (coarser *hypergraph, group []int32) {
	group = slices.Repeat([]int32{none}, len(g.weight))
	maxWeight := g.totalWeight()/8 + 1 // of a group of two; chosen, so that the sides can still be balanced
	coarser = &hypergraph{}
	rating := make([]log2Fixed, len(g.weight)) // of the neighbours of one vertex; 0 for all others
	var neighbours []int32
	for _, v := range b.permutation(len(g.weight)) {
		if group[v] != none {
			continue
		}

		neighbours = b.rateNeighbours(g, v, group, rating, neighbours[:0])
		partner := bestRated(neighbours, rating, g.weight, maxWeight-g.weight[v])
		for _, u := range neighbours {
			rating[u] = 0
		}

		// Make a new group of v and its partner, if it has one.
		group[v] = int32(len(coarser.weight))
		weight := g.weight[v]
		if partner != none {
			group[partner] = group[v]
			weight += g.weight[partner]
		}
		coarser.weight = append(coarser.weight, weight)
	}
	b.contractNets(g, coarser, group)
	coarser.linkNets()
	return coarser, group
}

// bestRated returns the vertex of the highest rating among those of at most maxWeight, the first one of several, or none. rating and weight
// are by vertex.
func bestRated(vertices []int32, rating []log2Fixed, weight []int64, maxWeight int64) int32 {
	best := none
	for _, u := range vertices {
		if weight[u] <= maxWeight && (best == none || rating[u] > rating[best]) {
			best = u
		}
	}
	return best
}

// rateNeighbours appends to neighbours the vertices that share a net with v and have no group yet, and adds up their ratings in rating.
// The rating of a vertex is a sum over the nets that it shares with v: cost/(k − 1) + 1, where k is the number of vertices of the net. It
// skips nets of more than maxRatedNet vertices, and all nets after the context has ended. rating must be 0 at first.
func (b *bisection) rateNeighbours(g *hypergraph, v int32, group []int32, rating []log2Fixed, neighbours []int32) []int32 {
	for _, net := range g.netsOf[v] {
		vertices := g.nets[net]
		if len(vertices) > maxRatedNet || b.pace.Over(int64(len(vertices))) {
			continue
		}
		netRating := g.cost[net]/log2Fixed(len(vertices)-1) + 1 // +1: a rating of 0 means that the vertex is not listed yet
		for _, u := range vertices {
			if u == v || group[u] != none {
				continue
			}
			if rating[u] == 0 {
				neighbours = append(neighbours, u)
			}
			rating[u] += netRating
		}
		b.movesSpent += int64(4 * len(vertices)) // 4 elementary operations for each vertex
	}
	return neighbours
}

// contractNets adds to coarser the nets of g, in which each vertex is replaced by its group, and repeated groups are removed. It drops a
// net whose vertices are all in one group, since no split of the groups cuts it. If the context has ended, the remaining nets are dropped,
// too: any split will do then.
func (b *bisection) contractNets(g, coarser *hypergraph, group []int32) {
	for net, vertices := range g.nets {
		if b.pace.Over(int64(8 * len(vertices))) { // roughly 8 operations for each vertex between checks of the context
			break
		}
		groups := make([]int32, 0, len(vertices))
		for _, v := range vertices {
			groups = append(groups, group[v])
		}
		slices.Sort(groups)
		groups = slices.Compact(groups)
		if len(groups) > 1 {
			coarser.nets = append(coarser.nets, groups)
			coarser.cost = append(coarser.cost, g.cost[net])
		}
		b.movesSpent += int64(32 * len(vertices)) // in the unit of the search's limits: 32 moves for each vertex
	}
}

// totalWeight returns the sum of the weights of all vertices. The weight of a vertex is the number of its tensors.
func (g *hypergraph) totalWeight() int64 {
	total := int64(0)
	for _, w := range g.weight {
		total += w
	}
	return total
}

// permutation returns a random permutation of 0 … n−1.
func (b *bisection) permutation(n int) []int32 {
	permutation := make([]int32, n)
	for i := range permutation {
		j := int(b.rng.Uint64() % uint64(i+1))
		permutation[i] = permutation[j]
		permutation[j] = int32(i)
	}
	return permutation
}

// splitDirectly returns the cheapest of directTries splits, as the side of every vertex, 0 or 1. For each split it begins with all vertices
// on side 1. It moves vertices to side 0, first a random one, then always the one that adds least to the cost of the cut nets, and refines
// the split. After the context has ended it makes one split only.
func (b *bisection) splitDirectly(g *hypergraph) []uint8 {
	var best []uint8
	lowestCut := log2Fixed(0)
	for try := 0; try < directTries && (try == 0 || b.pace.Err() == nil); try++ {
		side := slices.Repeat([]uint8{1}, len(g.weight))
		refinement := newRefinement(g, side, b.maxSide(g), b.pace)
		refinement.grow(int32(b.rng.Uint64() % uint64(len(side))))
		b.movesSpent += refinement.movesSpent
		cut := b.refine(g, side)
		if best == nil || cut < lowestCut {
			best, lowestCut = side, cut
		}
	}
	return best
}

// maxSide returns the largest weight that a side of g may have: (1 + imbalance/256)/2 of the total, but at least half of it, both rounded
// up.
func (b *bisection) maxSide(g *hypergraph) int64 {
	total := g.totalWeight()
	return max((total*(256+b.imbalance)+511)/512, (total+1)/2)
}

// refine improves a split in place by at most 8 passes, until one gains nothing. It returns the cost of the nets with vertices on both
// sides.
func (b *bisection) refine(g *hypergraph, side []uint8) log2Fixed {
	refinement := newRefinement(g, side, b.maxSide(g), b.pace)
	for range 8 { // chosen
		if hasImproved := refinement.improve(); !hasImproved {
			break
		}
	}
	b.movesSpent += refinement.movesSpent
	return refinement.cut
}
