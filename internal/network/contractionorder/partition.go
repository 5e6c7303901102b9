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
	weight []int64   // by vertex: the number of its tensors
	nets   [][]int32 // by net: its vertices, each once
	cost   []logs    // by net: the cost if its vertices are on both sides
	netsOf [][]int32 // by vertex: its nets
}

// linkNets sets netsOf from nets.
func (g *hypergraph) linkNets() {
	g.netsOf = make([][]int32, len(g.weight))
	for e, pins := range g.nets {
		for _, v := range pins {
			g.netsOf[v] = append(g.netsOf[v], int32(e))
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
	rng       *rand.PCG
	imbalance int64 // a side may weigh (1 + imbalance/256)/2 of the total
	moves     int64
	pace      *pace.Pace // after it has ended hypergraphs are split anyhow, quickly
}

// split returns the side, 0 or 1, of every vertex. If there are two vertices or more, both sides have some, unless the pace has ended.
func (b *bisection) split(g *hypergraph) []uint8 {
	if len(g.weight) <= maxDirect {
		return b.splitDirectly(g)
	}
	if b.pace.Err() != nil {
		return make([]uint8, len(g.weight))
	}
	coarser, group := b.coarsen(g)
	hasHardlyShrunk := len(coarser.weight)*20 > len(g.weight)*19
	if hasHardlyShrunk {
		return b.splitDirectly(g)
	}

	sideOfGroup := b.split(coarser)
	side := make([]uint8, len(g.weight))
	for v, k := range group {
		side[v] = sideOfGroup[k]
	}
	b.refine(g, side)
	return side
}

// coarsen groups each vertex, in random sequence, with the neighbour of the highest rating (rateNeighbours), unless both together are too
// heavy. It returns the hypergraph whose vertices are the groups, and by vertex of g its group.
func (b *bisection) coarsen(g *hypergraph) (coarser *hypergraph, group []int32) {
	group = slices.Repeat([]int32{none}, len(g.weight))
	heaviest := g.totalWeight()/8 + 1
	coarser = &hypergraph{}
	rating := make([]logs, len(g.weight)) // of the neighbours of one vertex; 0 for all others
	var neighbours []int32
	for _, v := range b.permutation(len(g.weight)) {
		if group[v] != none {
			continue
		}

		neighbours = b.rateNeighbours(g, v, group, rating, neighbours[:0])
		partner := none
		for _, u := range neighbours {
			if g.weight[u]+g.weight[v] <= heaviest &&
				(partner == none || rating[u] > rating[partner]) {
				partner = u
			}
		}

		for _, u := range neighbours {
			rating[u] = 0
		}

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

// rateNeighbours rates the vertices that share a net with v and have no group yet, and appends them to neighbours. The rating is the sum
// over the common nets of cost/(p − 1) + 1, where p is the number of vertices of the net.
func (b *bisection) rateNeighbours(g *hypergraph, v int32, group []int32, rating []logs, neighbours []int32) []int32 {
	for _, e := range g.netsOf[v] {
		pins := g.nets[e]
		if len(pins) > maxRatedNet || b.pace.Over(int64(len(pins))) {
			continue
		}
		share := g.cost[e]/logs(len(pins)-1) + 1
		for _, u := range pins {
			if u == v || group[u] != none {
				continue
			}
			if rating[u] == 0 {
				neighbours = append(neighbours, u)
			}
			rating[u] += share
		}
		b.moves += int64(4 * len(pins))
	}
	return neighbours
}

// contractNets adds the nets of g to coarser, as sets of groups. It drops nets within one group, since no split of groups cuts them.
func (b *bisection) contractNets(g, coarser *hypergraph, group []int32) {
	for e, pins := range g.nets {
		if b.pace.Over(int64(8 * len(pins))) {
			break
		}
		groups := make([]int32, 0, len(pins))
		for _, v := range pins {
			groups = append(groups, group[v])
		}
		slices.Sort(groups)
		if groups = slices.Compact(groups); len(groups) > 1 {
			coarser.nets = append(coarser.nets, groups)
			coarser.cost = append(coarser.cost, g.cost[e])
		}
		b.moves += int64(32 * len(pins))
	}
}

// totalWeight returns the number of tensors of all vertices.
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

// splitDirectly returns the cheapest of a few splits. For each it grows side 0 from a random vertex, always by the vertex that adds least
// to the cut, and refines the split.
func (b *bisection) splitDirectly(g *hypergraph) []uint8 {
	var best []uint8
	lowest := logs(0)
	for try := 0; try < directTries && (try == 0 || b.pace.Err() == nil); try++ {
		side := slices.Repeat([]uint8{1}, len(g.weight))

		refinement := newRefinement(g, side, b.maxSide(g), b.pace)
		refinement.grow(int32(b.rng.Uint64() % uint64(len(side))))
		b.moves += refinement.moves
		cut := b.refine(g, side)
		if best == nil || cut < lowest {
			best, lowest = side, cut
		}
	}
	return best
}

// maxSide returns the largest weight that a side of g may have.
func (b *bisection) maxSide(g *hypergraph) int64 {
	total := g.totalWeight()
	return max((total*(256+b.imbalance)+511)/512, (total+1)/2)
}

// refine improves a split by passes until one gains nothing, at most 8, and returns the cost of the nets with vertices on both sides.
func (b *bisection) refine(g *hypergraph, side []uint8) logs {
	refinement := newRefinement(g, side, b.maxSide(g), b.pace)
	for pass := 0; pass < 8 && refinement.pass(); pass++ {
	}
	b.moves += refinement.moves
	return refinement.cut
}
