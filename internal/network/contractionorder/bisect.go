package contractionorder

// Trees by recursive bisection: nested dissection of the tensors.

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// dissection is how a network is cut up.
type dissection struct {
	imbalance int64 // in 256ths: a part may be (1 + imbalance/256)/2 of the whole
	// cost of cutting an index of dimension 2 once more, 65536 for the full
	// cost
	open  logs
	small int // tensors of a part that is not cut up any further
}

// dissect builds a tree from the top down: the tensors are split so that the indices in both parts
// are few, and each part again. Parts of a few tensors are left as chains, for the reconfiguration
// to put in order.
// Time: about O(pins · log²). Once the pace has ended, the remaining parts are joined in any
// sequence.
func dissect(n *network, d dissection, rng *rand.PCG, p *pace.Pace) (merges [][2]int, moves int64) {
	c := &cutter{
		n:     n,
		d:     d,
		b:     bisection{rng: rng, imbalance: d.imbalance, pace: p},
		local: make([]int32, len(n.of)),
		total: make([]int32, len(n.of)),
	}

	for i := range c.local {
		c.local[i] = none
	}

	for _, e := range n.edges {
		for _, v := range e {
			c.total[v]++
		}
	}

	all := make([]int32, len(n.edges))
	for t := range all {
		all[t] = int32(t)
	}
	if len(all) > 0 {
		c.tree(all)
	}
	return c.merges, c.b.moves
}

// cutter carries one dissection.
type cutter struct {
	n      *network
	d      dissection
	b      bisection
	local  []int32 // by index: its net in the part that is being split, none elsewhere
	total  []int32 // by index: tensors that have it
	merges [][2]int
}

// tree builds the tree of a part and returns its table.
func (c *cutter) tree(part []int32) int {
	if len(part) <= max(c.d.small, 1) || c.b.pace.Over(int64(len(part))) {
		v := int(part[0])
		for _, t := range part[1:] {
			v = c.join(v, int(t))
		}
		return v
	}

	var sides [2][]int32
	for i, s := range c.b.split(c.hypergraph(part)) {
		sides[s] = append(sides[s], part[i])
	}
	if len(sides[0]) == 0 || len(sides[1]) == 0 {
		sides = [2][]int32{part[:len(part)/2], part[len(part)/2:]}
	}

	a := c.tree(sides[0])
	return c.join(a, c.tree(sides[1]))
}

// join merges two tables and returns the number of the result.
func (c *cutter) join(a, b int) int {
	c.merges = append(c.merges, [2]int{a, b})
	return len(c.n.edges) + len(c.merges) - 1
}

// hypergraph has the tensors of a part as vertices and
// the indices that two or more of them have as nets.
func (c *cutter) hypergraph(part []int32) *hypergraph {
	g := &hypergraph{weight: make([]int64, len(part))}
	var index []int32 // by net
	for i, t := range part {
		g.weight[i] = 1
		for _, v := range c.n.edges[t] {
			if c.local[v] == none {
				c.local[v] = int32(len(g.nets))
				g.nets = append(g.nets, nil)
				index = append(index, v)
			}
			g.nets[c.local[v]] = append(g.nets[c.local[v]], int32(i))
		}
		c.b.moves += int64(32 * len(c.n.edges[t]))
	}

	// Nets of one vertex cut nothing. An index that other parts have as well is cut already.
	kept := g.nets[:0]
	for e, v := range index {
		c.local[v] = none
		pins := g.nets[e]
		cost := c.n.weight(v)
		if int(c.total[v]) > len(pins) {
			cost = cost * c.d.open >> fraction
		}
		if len(pins) > 1 && cost > 0 {
			kept = append(kept, pins)
			g.cost = append(g.cost, cost)
		}
	}
	g.nets = kept
	g.link()
	return g
}
