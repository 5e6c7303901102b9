package trees

// What is done to the network before a random tree is drawn:
// the order of chains, sites, matrices taken in.

import (
	"math"

	"github.com/basetensor/basetensor/internal/contractionorder"
)

// chainOrders is the number of kinds of global orders.
const chainOrders = 4

// ranks gives a global order of the indices, as places by index:
// by number, breadth first from a random one, by elimination, or at random.
func (s *search) ranks(kind int) ([]int, error) {
	order := s.rng.Perm(len(s.h.Dims))
	switch kind {
	case 0:
		for i := range order {
			order[i] = i
		}
	case 1:
		order = s.breadthFirst(order)
	case 2:
		var err error
		if order, err = s.eliminated(); err != nil {
			return nil, err
		}
	}

	rank := make([]int, len(order))
	for k, i := range order {
		rank[i] = k
	}
	return rank, nil
}

// eliminated is the min-fill order, indices of dimension 1 last.
func (s *search) eliminated() ([]int, error) {
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
	return s.order, nil
}

// breadthFirst lists the indices by distance from the first of a list.
func (s *search) breadthFirst(starts []int) []int {
	seen := make([]bool, len(starts))
	var out []int

	for _, start := range starts {
		if seen[start] {
			continue
		}
		seen[start] = true
		out = append(out, start)
		for k := len(out) - 1; k < len(out); k++ {
			for _, t := range s.f.tables[out[k]] {
				for _, j := range s.h.Edges[t] {
					if !seen[j] {
						seen[j] = true
						out = append(out, j)
					}
				}
			}
		}
	}
	return out
}

// simplify merges every node into a neighbour that does not grow by it.
func simplify(m *meter, merges [][2]int) [][2]int {
	n := m.n
	for again := true; again; {
		again = false
		for a := 0; a < len(n.node); a++ {
			if !n.node[a].alive || n.node[a].copy || len(n.node[a].legs) == 0 {
				continue
			}
			for _, b := range n.neighbours(int32(a)) {
				least := max(n.node[a].size, n.node[b.to].size)
				if n.estimate(int32(a), b.to, math.Inf(1)) > least {
					continue
				}
				if _, err := m.merge(int32(a), b.to, nil); err != nil {
					return merges
				}
				merges = append(merges, [2]int{a, int(b.to)})
				again = true
				break
			}
		}
	}
	return merges
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

// distances are those of all nodes from one, in wires; 0 for what is not connected with it.
func (n *network) distances(root int32) []float64 {
	out := make([]float64, len(n.node))
	seen := make([]bool, len(n.node))
	seen[root] = true
	queue := []int32{root}
	for k := 0; k < len(queue); k++ {
		at := queue[k]
		for _, w := range n.node[at].legs {
			if o := n.wire[w].other(at); !seen[o] {
				seen[o] = true
				out[o] = out[at] + 1
				queue = append(queue, o)
			}
		}
	}
	return out
}

// largestSite bounds what sites and crossings merge.
const largestSite = 64 // entries

// sites merges the chain of copy tensors of every index into one, where that is small.
func sites(m *meter, p Plan) [][2]int {
	var merges [][2]int
	for c := 0; c < len(p.Copies); {
		end := c
		size := float64(m.n.dimension(p.Tables+c) * m.n.dimension(p.Tables+c))
		for ; end < len(p.Copies) && p.Copies[end] == p.Copies[c]; end++ {
			size *= float64(m.n.dimension(p.Tables + c))
		}

		at := p.Tables + c
		for k := c + 1; k < end && size <= largestSite; k++ {
			id, err := m.merge(int32(at), int32(p.Tables+k), nil)
			if err != nil {
				return merges
			}
			merges = append(merges, [2]int{at, p.Tables + k})
			at = int(id)
		}
		c = end
	}
	return merges
}

// crossings merges every table with the copy tensors that tie it to chains, where that is small:
// a dense model becomes a lattice of the places where chains meet.
func crossings(m *meter, p Plan) [][2]int {
	// table: by copy tensor, the table that it ties to the chain, which comes last in chain
	table := make([]int, len(p.Copies))
	for _, w := range p.Wires {
		if w[1] < p.Tables && w[2] >= p.Tables {
			table[w[2]-p.Tables] = w[1]
		}
	}

	at := make([]int32, p.Tables) // by table: what it has been merged into
	for t := range at {
		at[t] = int32(t)
	}

	var merges [][2]int
	for c, t := range table {
		a, b := at[t], int32(p.Tables+c)
		if !m.n.node[a].alive || !m.n.node[b].alive ||
			m.n.estimate(a, b, math.Inf(1)) > largestSite {
			continue
		}

		id, err := m.merge(a, b, nil)
		if err != nil {
			return merges
		}
		merges = append(merges, [2]int{int(a), int(b)})
		at[t] = id
	}
	return merges
}

// dimension is that of the wires of a copy tensor.
func (n *network) dimension(c int) int { return n.wire[n.node[c].legs[0]].dim }
