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

// Evaluate returns the cost of contracting an expression with hypergraph h along plan p, with bundles truncated to the bond. A truncation
// looks at the nodes within defaultGauge wires, its surroundings. The time is linear in the nodes times the surroundings of a truncation.
// Errors: ErrPlan; bad_input for an inconsistent hypergraph. A bundle is all wires between two nodes.
func Evaluate(h contractionorder.Hypergraph, p Plan, bond int) (Cost, error) {
	if err := h.Validate(); err != nil {
		return Cost{}, err
	}
	n, err := newNetwork(h, p)
	if err != nil {
		return Cost{}, err
	}
	m := newMeter(n, h, bond, defaultGauge)
	err = m.mergeAll(p.Merges, nil) // nil: it does not stop early
	return m.cost(), err
}

// meter goes through the steps of a contraction without entries, and adds up their cost.
type meter struct {
	net   *network
	bond  int // largest dimension of a wire after truncation
	gauge int // distance in wires of the surroundings that a truncation looks at, as Options.Gauge
	// Scratch for one step:
	shape         mergeShape // of the last merge
	childrensDims []float64  // by position in the surroundings of a bundle (countGauge)

	flops      float64
	held, peak float64 // numbers in all tensors now, and the most so far, with the memory of a step
	recorded   float64 // numbers that the tape for marginals keeps
	loss       float64 // Cost.Loss so far
	moves      int64   // work of this meter, for the budget of a search
}

// newMeter returns a meter of a contraction along the network n, before its merges. Bundles of wires are truncated to the bond, and gauge
// is the distance in wires that a truncation looks at. The meter has counted the tables of the expression, and the copies of them that
// become nodes.
func newMeter(n *network, h contractionorder.Hypergraph, bond, gauge int) *meter {
	m := &meter{net: n, bond: max(bond, 1), gauge: gauge}
	for t, scope := range h.Edges {
		size := 1.0
		for _, i := range scope {
			size *= float64(h.Dims[i])
		}
		m.held += 2 * size // the table and its copy
		m.flops += 2 * size
		if n.nodes[t].isAlive {
			n.dropOpenLegs(int32(t))
		}
	}
	m.peak = m.held
	return m
}

// mergeAll adds up the cost of the merges of a plan. After each merge it calls shouldStop, unless that is nil, and stops if the answer is
// true: then m has the cost of the merges so far. It returns ErrPlan if a merge is not possible or wires are left at the end. The merges
// are pairs of nodes.
func (m *meter) mergeAll(merges [][2]int, shouldStop func() bool) error {
	partner := mergePartners(merges, len(m.net.nodes))
	for _, pair := range merges {
		if _, err := m.merge(int32(pair[0]), int32(pair[1]), partner); err != nil {
			return err
		}
		if shouldStop != nil && shouldStop() {
			return nil
		}
	}
	return m.net.checkFinished()
}

// mergePartners returns for every node the node that it is merged with, or −1 if there is none. leaves is the number of nodes before the
// merges.
func mergePartners(merges [][2]int, leaves int) []int32 {
	partner := slices.Repeat([]int32{-1}, leaves+len(merges))
	for _, pair := range merges {
		for k, i := range pair {
			if i >= 0 && i < len(partner) { // the plan is not checked yet: merges of nodes that do not exist fail later
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

// merge merges nodes a and b of the meter's network, truncates the bundles of the new node that exceed the bond, and adds the cost of the
// merge and of the truncations. A bundle is all wires between two nodes. It returns the number of the new node, or ErrPlan if the merge is
// not possible. partner[i] is the node that node i is merged with; partner is nil if the merges are not known.
func (m *meter) merge(a, b int32, partner []int32) (int32, error) {
	in := 0.0                                                // entries of the operands; copy tensors are not stored
	if int(max(a, b)) < len(m.net.nodes) && min(a, b) >= 0 { // else the merge below returns the error
		for _, i := range [2]int32{a, b} {
			if !m.net.nodes[i].isCopy {
				in += m.net.nodes[i].size
			}
		}
	}
	id, err := m.net.merge(a, b, &m.shape)
	if err != nil {
		return 0, err
	}

	out := m.net.nodes[id].size                // entries of the result
	m.flops += 2*m.shape.products() + in + out // the operands and the result are also copied
	m.peak = max(m.peak, m.held+in+m.shape.compactSize()+out)
	m.held += out - in
	m.recorded += in                             // the tape for marginals keeps the operands
	m.moves += int64(60 + 40*len(m.shape.wires)) // the time of this function: a fixed part, and one for each wire
	for _, bundle := range m.net.bundlesToTruncate(id, m.bond, partner) {
		m.truncate(id, bundle)
	}
	return id, nil
}

// bundlesToTruncate returns the bundles of a new node, all wires to one neighbour each, whose dimension exceeds the bond. It leaves out
// bundles to copy tensors, whose wires stay as they are, and the bundle to partner[id], with which the node is merged next. partner is nil
// if the next merges are not known. A copy tensor is 1 if its three wires have the same value, and 0 otherwise.
func (n *network) bundlesToTruncate(id int32, bond int, partner []int32) []bundle {
	var bundles []bundle
	for _, b := range n.neighbours(id) {
		isMergedNext := partner != nil && partner[id] == b.to
		if b.dim > float64(bond) && !isMergedNext && !n.nodes[b.to].isCopy {
			bundles = append(bundles, b)
		}
	}
	return bundles
}

// svdRate is about the number of flops of a singular value decomposition for each entry of the matrix and singular value.
const svdRate = 20

// truncate replaces the bundle b, all wires between node id and another one, by one wire of at most the bond, and adds the cost. Node A is
// a matrix (other axes × bundle) with the triangle R_A of its QR decomposition, and so is B at the other end. The cost is that of R_A and
// R_B with their surroundings (countGauge), of the singular values of R_A R_Bᵀ, and of the products of both nodes with projectors.
func (m *meter) truncate(id int32, b bundle) {
	n := m.net
	largest, triangles := m.countGauge(id, b)
	sizeA := n.nodes[id].size
	sizeB := n.nodes[b.to].size
	rowsA := min(b.dim, sizeA/b.dim) // of the triangle R_A
	rowsB := min(b.dim, sizeB/b.dim)
	valueCount := min(rowsA, rowsB) // singular values of R_A R_Bᵀ
	rank := min(float64(m.bond), b.dim)
	productFlops, svdFlops := 2*rowsA*rowsB*b.dim, svdRate*rowsA*rowsB*valueCount // of R_A R_Bᵀ
	// The projectors of both nodes are products of rank × rows with rows × dim. Then each node is multiplied by its projector.
	m.flops += productFlops + svdFlops + 2*rank*b.dim*(rowsA+rowsB) + 2*rank*(sizeA+sizeB)
	scratch := triangles + // numbers held during the truncation
		4*largest + // copies of the largest tensor
		8*b.dim*b.dim + // R_A and R_B with their decompositions
		(rowsA+rowsB)*valueCount*3 + // U and V
		4*rank*b.dim // projectors
	m.peak = max(m.peak, m.held+scratch)
	if valueCount > rank {
		bits := math.Log2(min(valueCount, b.dim) / rank) // by which the truncation shrinks the bundle; Cost.Loss adds up their squares
		m.loss += bits * bits
	}
	m.recorded += 2 * rank * b.dim // the tape for marginals keeps both projectors
	n.replaceBundle(id, b.to, int(rank))
	m.held += n.nodes[id].size + n.nodes[b.to].size - sizeA - sizeB
}

// countGauge adds the work of the triangles in the surroundings of a bundle of node id, the nodes within m.gauge wires. They are two trees,
// whose roots are the ends of the bundle. From the farthest nodes on, a node is multiplied by the triangles of its children, and factored
// into Q times its own triangle. largest is the number of entries of the largest tensor in the surroundings, and triangles the number of
// entries of all triangles that go to a parent. A bundle is all wires between two nodes.
func (m *meter) countGauge(id int32, b bundle) (largest, triangles float64) {
	n := m.net
	surrounding := n.surroundings(id, b.to, m.gauge)
	childrensDims := m.childrensDims[:0] // by position: the sum of the dimensions of the bundles to the node's children
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
			m.flops += 5 * size * dim // QR of rows × dim
		}
		largest = max(largest, size)
		m.moves += int64(20 * len(n.nodes[s.node].legs)) // 20 for each leg that is looked at
	}
	return largest, triangles
}

// cost returns the cost so far.
func (m *meter) cost() Cost {
	// Numbers have 8 bytes. The pass back for marginals holds as much again as the contraction, beside the recorded operands.
	return Cost{
		Cost:          legs.Cost{Flops: min(m.flops, math.MaxFloat64), Bytes: min(8*m.peak, math.MaxFloat64)},
		MarginalBytes: min(8*(2*m.peak+m.recorded), math.MaxFloat64),
		Loss:          m.loss,
	}
}
