package contractionorder

// Multilevel bisection of a hypergraph:
// coarsen by heavy edges, split the smallest one, refine on the way back.
// Source: G. Karypis, R. Aggarwal, V. Kumar, S. Shekhar, Multilevel hypergraph partitioning (1999).

import (
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// hypergraph has vertices (groups of tensors) and nets (indices, or their remainders).
type hypergraph struct {
	weight []int64   // by vertex: tensors in it
	nets   [][]int32 // vertices of a net, each once
	cost   []logs    // by net: cost of cutting it
	of     [][]int32 // nets of a vertex
}

// link fills in the nets of every vertex.
func (g *hypergraph) link() {
	g.of = make([][]int32, len(g.weight))
	for e, pins := range g.nets {
		for _, v := range pins {
			g.of[v] = append(g.of[v], int32(e))
		}
	}
}

const (
	coarseEnough = 40 // vertices that are split directly
	coarseTries  = 6  // splits of the coarsest hypergraph
	wideNet      = 64 // nets with more vertices do not influence the matching
)

// bisection splits hypergraphs into two sides of almost equal weight, cutting nets of little cost.
type bisection struct {
	rng       *rand.PCG
	imbalance int64 // a side may weigh (1 + imbalance/256)/2 of the total
	moves     int64
	pace      *pace.Pace // once it has ended the rest is split arbitrarily, and soon
}

// split returns the side, 0 or 1, of every vertex.
// Both sides are in use when there are two vertices or more, unless the time is over.
func (b *bisection) split(g *hypergraph) []uint8 {
	if len(g.weight) <= coarseEnough {
		return b.splitCoarse(g)
	}
	if b.pace.Err() != nil {
		return make([]uint8, len(g.weight))
	}
	c, group := b.coarsen(g)
	if len(c.weight)*20 > len(g.weight)*19 {
		return b.splitCoarse(g)
	}

	coarse := b.split(c)
	side := make([]uint8, len(g.weight))
	for v, to := range group {
		side[v] = coarse[to]
	}
	b.refine(g, side)
	return side
}

// coarsen matches each vertex, in random sequence, with the one it shares the costliest nets with:
// a net of p vertices rates 1/(p−1) of its cost. It returns the coarser hypergraph and the group of
// every vertex.
func (b *bisection) coarsen(g *hypergraph) (*hypergraph, []int32) {
	group := slices.Repeat([]int32{none}, len(g.weight))
	heaviest := g.total()/8 + 1
	c := &hypergraph{}
	rating := make([]logs, len(g.weight))
	var near []int32
	for _, v := range b.shuffled(len(g.weight)) {
		if group[v] != none {
			continue
		}

		// Rate the unmatched neighbours of v.
		near = near[:0]
		for _, e := range g.of[v] {
			pins := g.nets[e]
			if len(pins) > wideNet || b.pace.Over(int64(len(pins))) {
				continue
			}
			r := g.cost[e]/logs(len(pins)-1) + 1
			for _, u := range pins {
				if u == v || group[u] != none {
					continue
				}
				if rating[u] == 0 {
					near = append(near, u)
				}
				rating[u] += r
			}
			b.moves += int64(4 * len(pins))
		}

		partner := none
		for _, u := range near {
			if g.weight[u]+g.weight[v] <= heaviest &&
				(partner == none || rating[u] > rating[partner]) {
				partner = u
			}
		}

		for _, u := range near {
			rating[u] = 0
		}

		group[v] = int32(len(c.weight))
		weight := g.weight[v]
		if partner != none {
			group[partner] = group[v]
			weight += g.weight[partner]
		}
		c.weight = append(c.weight, weight)
	}
	b.contractNets(g, c, group)
	c.link()
	return c, group
}

// contractNets gives c the nets of g over the groups; those inside one group can be cut no more.
func (b *bisection) contractNets(g, c *hypergraph, group []int32) {
	for e, pins := range g.nets {
		if b.pace.Over(int64(8 * len(pins))) {
			break
		}
		list := make([]int32, 0, len(pins))
		for _, v := range pins {
			list = append(list, group[v])
		}
		slices.Sort(list)
		if list = slices.Compact(list); len(list) > 1 {
			c.nets = append(c.nets, list)
			c.cost = append(c.cost, g.cost[e])
		}
		b.moves += int64(32 * len(pins))
	}
}

func (g *hypergraph) total() int64 {
	sum := int64(0)
	for _, w := range g.weight {
		sum += w
	}
	return sum
}

// shuffled returns a random permutation of 0 … n−1.
func (b *bisection) shuffled(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		j := int(b.rng.Uint64() % uint64(i+1))
		p[i] = p[j]
		p[j] = int32(i)
	}
	return p
}

// splitCoarse grows one side from a random vertex,
// always by the vertex that cuts least, and refines; the best of a few.
func (b *bisection) splitCoarse(g *hypergraph) []uint8 {
	var best []uint8
	least := logs(0)
	for try := 0; try < coarseTries && (try == 0 || b.pace.Err() == nil); try++ {
		side := slices.Repeat([]uint8{1}, len(g.weight))

		f := newRefinement(g, side, b.half(g), b.pace)
		f.grow(int32(b.rng.Uint64() % uint64(len(side))))
		b.moves += f.moves
		cut := b.refine(g, side)
		if best == nil || cut < least {
			best, least = side, cut
		}
	}
	return best
}

// half is the maximum weight of a side.
func (b *bisection) half(g *hypergraph) int64 {
	total := g.total()
	return max((total*(256+b.imbalance)+511)/512, (total+1)/2)
}

// refine improves a split until a pass gains nothing, and returns the cost of the nets cut.
func (b *bisection) refine(g *hypergraph, side []uint8) logs {
	f := newRefinement(g, side, b.half(g), b.pace)
	for pass := 0; pass < 8 && f.pass(); pass++ {
	}
	b.moves += f.moves
	return f.cut
}
