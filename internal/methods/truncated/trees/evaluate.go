package trees

// Evaluate: the cost of a plan, by going through its steps without entries.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Cost bounds Contract with the same bond. If ranks turn out lower than the bond, Contract is cheaper.
type Cost struct {
	legs.Cost
	MarginalBytes float64 // Bytes with Options.Marginals
	Loss          float64 // Σ over the truncations of log2²(dimension / bond); 0: exact
}

// Evaluate returns the cost of contracting h along p with wires of at most bond, gauged out to distance 3. Linear in the nodes times the
// surroundings of a truncation. Errors: ErrPlan; bad_input for an inconsistent hypergraph.
func Evaluate(h contractionorder.Hypergraph, p Plan, bond int) (Cost, error) {
	if err := h.Validate(); err != nil {
		return Cost{}, err
	}
	n, err := newNetwork(h, p)
	if err != nil {
		return Cost{}, err
	}
	m := newMeter(n, h, bond, defaultGauge)
	err = m.mergeAll(p.Merges, nil)
	return m.cost(), err
}

// meter goes through the steps of a contraction without entries, and adds up their cost.
type meter struct {
	n     *network
	bond  int
	gauge int // as Options.Gauge
	// memory for one step
	shape         mergeShape // of the last merge
	childrensDims []float64  // by position in the surroundings of a bundle; see countGauge

	flops      float64
	held, peak float64 // entries of all tensors now, and the most so far with the memory of a step
	recorded   float64 // entries that marginals keep for the way back
	loss       float64 // see Cost
	moves      int64   // work of this meter, for the budget of a search
}

// newMeter returns a meter that has counted the tables of the expression and one copy of them as leaves.
func newMeter(n *network, h contractionorder.Hypergraph, bond, gauge int) *meter {
	m := &meter{n: n, bond: max(bond, 1), gauge: gauge}
	for t, scope := range h.Edges {
		size := 1.0
		for _, i := range scope {
			size *= float64(h.Dims[i])
		}
		m.held += 2 * size
		m.flops += 2 * size
		if n.nodes[t].isAlive {
			n.dropOpenLegs(int32(t))
		}
	}
	m.peak = m.held
	return m
}

// mergeAll goes through the merges of a plan. After each it calls shouldStop, if that is not nil, and returns nil if the answer is yes:
// the figures then are those of the merges so far. It returns ErrPlan if a merge is not possible or wires are left at the end.
func (m *meter) mergeAll(merges [][2]int, shouldStop func() bool) error {
	partner := partners(merges, len(m.n.nodes))
	for _, pair := range merges {
		if _, err := m.merge(int32(pair[0]), int32(pair[1]), partner); err != nil {
			return err
		}
		if shouldStop != nil && shouldStop() {
			return nil
		}
	}
	return m.n.checkFinished()
}

// partners returns, by node, the node that it is merged with, or −1. leaves is the number of nodes before the merges.
func partners(merges [][2]int, leaves int) []int32 {
	partner := slices.Repeat([]int32{-1}, leaves+len(merges))
	for _, pair := range merges {
		for k, i := range pair {
			if i >= 0 && i < len(partner) {
				partner[i] = int32(pair[1-k])
			}
		}
	}
	return partner
}

// checkFinished returns ErrPlan if a node still has wires after all merges.
func (n *network) checkFinished() error {
	for i, nd := range n.nodes {
		if nd.isAlive && len(nd.legs) > 0 {
			return planError("node %d is left with %d wires", i, len(nd.legs))
		}
	}
	return nil
}

// merge merges two nodes, truncates the bundles of the new node, and counts both. partner is that of bundlesToTruncate. It returns the
// number of the new node, or ErrPlan if the merge is not possible.
func (m *meter) merge(a, b int32, partner []int32) (int32, error) {
	in := 0.0 // entries of the operands
	if int(max(a, b)) < len(m.n.nodes) && min(a, b) >= 0 {
		for _, i := range [2]int32{a, b} {
			if !m.n.nodes[i].isCopy {
				in += m.n.nodes[i].size
			}
		}
	}
	id, err := m.n.merge(a, b, &m.shape)
	if err != nil {
		return 0, err
	}
	out := m.n.nodes[id].size
	m.flops += 2*m.shape.products() + in + out
	m.peak = max(m.peak, m.held+in+m.shape.compactSize()+out)
	m.held += out - in
	m.recorded += in
	m.moves += int64(60 + 40*len(m.shape.wires))
	for _, bundle := range m.n.bundlesToTruncate(id, m.bond, partner) {
		m.truncate(id, bundle)
	}
	return id, nil
}

// bundlesToTruncate lists the bundles of a new node that exceed the bond. It leaves out the bundle to partner[id], which the node is
// merged with next, and bundles to copy tensors, whose wires stay as they are. If the next merges are not known, partner is nil.
func (n *network) bundlesToTruncate(id int32, bond int, partner []int32) []bundle {
	var out []bundle
	for _, b := range n.neighbours(id) {
		if b.dim > float64(bond) && (partner == nil || partner[id] != b.to) && !n.nodes[b.to].isCopy {
			out = append(out, b)
		}
	}
	return out
}

// truncate replaces a bundle of node id by one wire of at most the bond. It counts the gauge, the projectors and the products with them.
func (m *meter) truncate(id int32, b bundle) {
	n := m.n
	largest, triangles := m.countGauge(id, b)
	sizeA := n.nodes[id].size
	sizeB := n.nodes[b.to].size
	rowsA := min(b.dim, sizeA/b.dim) // of the triangle R_A
	rowsB := min(b.dim, sizeB/b.dim)
	k := min(rowsA, rowsB) // singular values of R_A R_Bᵀ
	r := min(float64(m.bond), b.dim)
	// R_A R_Bᵀ, its SVD, the projectors, and the products of both tensors with them
	m.flops += 2*rowsA*rowsB*b.dim + 20*rowsA*rowsB*k + 2*r*b.dim*(rowsA+rowsB) + 2*r*(sizeA+sizeB)
	scratch := triangles + 4*largest + 8*b.dim*b.dim + (rowsA+rowsB)*k*3 + 4*r*b.dim
	m.peak = max(m.peak, m.held+scratch)
	if k > r {
		bits := math.Log2(min(k, b.dim) / r)
		m.loss += bits * bits
	}
	m.recorded += 2 * r * b.dim
	n.replaceBundle(id, b.to, int(r))
	m.held += n.nodes[id].size + n.nodes[b.to].size - sizeA - sizeB
}

// countGauge counts the work of the triangles of both ends of a bundle and of their surroundings, from the farthest nodes to the ends. It
// returns the entries of the largest tensor there, and of all triangles that are handed on.
func (m *meter) countGauge(id int32, b bundle) (largest, triangles float64) {
	n := m.n
	surrounding := n.surroundings(id, b.to, m.gauge)
	childrensDims := m.childrensDims[:0] // the sum of the dimensions of the bundles to the node's children
	for range surrounding {
		childrensDims = append(childrensDims, 0)
	}
	m.childrensDims = childrensDims
	for i, s := range surrounding {
		n.position[s.node] = int32(i)
	}
	for i := len(surrounding) - 1; i >= 0; i-- {
		s := surrounding[i]
		size := n.nodes[s.node].size
		dim := b.dim // of the bundle towards the truncated bundle
		if s.parent >= 0 {
			dim = n.bundleDim(s.node, s.parent)
			childrensDims[n.position[s.parent]] += dim
			triangles += dim * min(dim, size/dim)
		}
		if n.nodes[s.node].isCopy && childrensDims[i] == 0 {
			continue // its triangle is a multiple of the identity
		}
		m.flops += 2 * size * childrensDims[i]
		if rows := size / dim; rows > dim {
			m.flops += 5 * size * dim
		}
		largest = max(largest, size)
		m.moves += int64(20 * len(n.nodes[s.node].legs))
	}
	return largest, triangles
}

// cost returns the figures so far.
func (m *meter) cost() Cost {
	return Cost{
		Cost:          legs.Cost{Flops: min(m.flops, math.MaxFloat64), Bytes: min(8*m.peak, math.MaxFloat64)},
		MarginalBytes: min(8*(2*m.peak+m.recorded), math.MaxFloat64),
		Loss:          m.loss,
	}
}
