package trees

// Random trees: drawn afresh, drawn like the best so far, or the best so far from some merge on. The copy tensors of an index are a chain
// in a global order of the other indices; small sites are merged first, and nodes that a neighbour takes in without growing.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// draw is the settings of a random tree.
type draw struct {
	order int // of chains: a kind of ranks
	sites int // merged first: 1 the copy tensors of small variables, 2 tables with their copy tensors, 0 nothing
	rule  rule
}

const (
	firstDraws  = 8  // trees before the best so far guides the next
	chainOrders = 4  // kinds of global orders
	largestSite = 64 // entries of a site that is merged first, at most
)

// draw returns new settings or, half of the time, the settings of the best plan with one of them changed a little.
func (s *search) draw() draw {
	r := s.rng
	if s.tries > firstDraws && s.found && r.IntN(2) == 0 {
		d := s.drawn
		switch r.IntN(4) {
		case 0:
			d.order = r.IntN(chainOrders)
		case 1:
			d.rule.alpha = max(0, d.rule.alpha+0.2*r.NormFloat64())
		case 2:
			d.rule.temperature *= math.Exp2(r.NormFloat64())
		default:
			d.rule.centre *= math.Exp2(r.NormFloat64())
		}
		return d
	}
	d := draw{order: r.IntN(chainOrders), sites: []int{1, 2, 0, 1}[s.tries%4]}
	d.rule = rule{alpha: 1.2 * r.Float64(), temperature: math.Exp2(float64(r.IntN(6) - 6))}
	if r.IntN(2) == 0 {
		d.rule.centre = math.Exp2(float64(r.IntN(6) - 2))
	}
	return d
}

// attempt considers one random tree: all of it drawn, or the best so far up to some merge.
func (s *search) attempt() {
	s.tries++
	again := s.tries > firstDraws && s.found && s.cost.Loss > 0 && s.rng.IntN(3) == 0
	d := s.draw()
	p := s.best
	if !again {
		ranks, err := s.ranks(d.order)
		if err != nil {
			return // the context's: the search ends
		}
		p = s.f.chains(ranks)
	}
	n, err := newNetwork(s.h, p)
	if err != nil {
		s.moves = s.o.Moves
		return
	}
	b := &builder{meter: newMeter(n, s.h, s.o.Bond, 0)}
	switch {
	case again:
		for _, pair := range p.Merges[:s.rng.IntN(len(p.Merges)+1)] {
			b.join(int32(pair[0]), int32(pair[1]))
		}
	case d.sites == 1:
		b.sites(p)
	case d.sites == 2:
		b.crossings(p)
	}
	if !again {
		b.simplify()
	}
	most := math.Inf(1) // flops, gauges not counted, from which nothing can be won
	if s.found && s.cost.Bytes <= s.memory {
		most = max(2*s.cost.Flops, s.o.Flops)
	}
	ok := true
	if root := s.root(n); root >= 0 {
		var depth []float64
		if d.rule.centre > 0 {
			depth = n.distances(root)
		}
		ok = b.greedy(d.rule, depth, s.rng, func() bool { return b.peak*8 > 4*s.memory || b.flops > most || s.ctx.Err() != nil })
	}
	s.moves += slowness * (b.moves + int64(200*len(n.node)))
	if p.Merges = b.merges; ok && s.consider(p) {
		s.drawn = d
	}
}

// ranks gives a global order of the indices, as places by index: by number, breadth first from a random one, by elimination, or at
// random.
func (s *search) ranks(kind int) ([]int, error) {
	order := s.rng.Perm(len(s.h.Dims))
	switch kind {
	case 0:
		for i := range order {
			order[i] = i
		}
	case 1:
		near, seen := legs.Neighbours(s.h), make([]bool, len(order))
		var out []int
		for _, start := range order {
			if !seen[start] {
				out = append(out, legs.BreadthFirst(near, seen, start, nil)...)
			}
		}
		order = out
	case 2: // min-fill, indices of dimension 1 last
		if s.order == nil {
			var err error
			if s.order, err = contractionorder.MinFill(s.ctx, s.h); err != nil {
				return nil, err
			}
			for i, d := range s.h.Dims {
				if d == 1 {
					s.order = append(s.order, i)
				}
			}
		}
		order = s.order
	}
	rank := make([]int, len(order))
	for k, i := range order {
		rank[i] = k
	}
	return rank, nil
}

// root draws a node that has wires; −1 if none has.
func (s *search) root(n *network) int32 {
	var linked []int32
	for i, nd := range n.node {
		if nd.alive && len(nd.legs) > 0 {
			linked = append(linked, int32(i))
		}
	}
	if len(linked) == 0 {
		return -1
	}
	return linked[s.rng.IntN(len(linked))]
}

// distances lists the distance of every node from one, in wires; 0 for nodes that are not connected with it.
func (n *network) distances(root int32) []float64 {
	out := make([]float64, len(n.node))
	for _, s := range n.surroundings(root, root, len(n.node)) {
		if s.parent >= 0 {
			out[s.node] = out[s.parent] + 1
		}
	}
	return out
}

// builder is a meter that writes its merges down.
type builder struct {
	*meter
	merges [][2]int
}

// join merges two nodes, after which the next merge is not known.
func (b *builder) join(x, y int32) (id int32, ok bool) {
	id, err := b.merge(x, y, nil)
	if err == nil {
		b.merges = append(b.merges, [2]int{int(x), int(y)})
	}
	return id, err == nil
}

// simplify merges every node into a neighbour that does not grow by it.
func (b *builder) simplify() {
	n := b.n
	for again := true; again; {
		again = false
		for a := 0; a < len(n.node); a++ {
			if !n.node[a].alive || n.node[a].copy || len(n.node[a].legs) == 0 {
				continue
			}
			for _, o := range slices.Clone(n.neighbours(int32(a))) {
				if n.estimate(int32(a), o.to, math.Inf(1)) > max(n.node[a].size, n.node[o.to].size) {
					continue
				}
				_, again = b.join(int32(a), o.to)
				break
			}
		}
	}
}

// sites merges the chain of copy tensors of every index into one, where that is small.
func (b *builder) sites(p Plan) {
	for c := 0; c < len(p.Copies); {
		dim := float64(b.n.wire[b.n.node[p.Tables+c].legs[0]].dim)
		end, size := c, dim*dim
		for ; end < len(p.Copies) && p.Copies[end] == p.Copies[c]; end++ {
			size *= dim
		}
		at := int32(p.Tables + c)
		for k := c + 1; k < end && size <= largestSite; k++ {
			at, _ = b.join(at, int32(p.Tables+k))
		}
		c = end
	}
}

// crossings merges every table with the copy tensors that tie it to chains, where that is small: a dense model becomes a lattice of the
// places where chains meet.
func (b *builder) crossings(p Plan) {
	table := make([]int, len(p.Copies)) // by copy tensor: the table that it ties to the chain, which comes last in chain
	for _, w := range p.Wires {
		if w[1] < p.Tables && w[2] >= p.Tables {
			table[w[2]-p.Tables] = w[1]
		}
	}
	at := make([]int32, p.Tables) // by table: its node now
	for t := range at {
		at[t] = int32(t)
	}
	for c, t := range table {
		x, y := at[t], int32(p.Tables+c)
		if b.n.node[x].alive && b.n.node[y].alive && b.n.estimate(x, y, math.Inf(1)) <= largestSite {
			at[t], _ = b.join(x, y)
		}
	}
}
