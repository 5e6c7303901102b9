package trees

// Evaluate: the cost of a plan, by going through its steps without entries.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Cost bounds Contract with the same bond: ranks that turn out lower make it cheaper.
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
	err = m.run(p.Merges, nil)
	return m.cost(), err
}

// meter goes through the steps of a contraction and adds up.
type meter struct {
	n        *network
	bond     int
	gauge    int       // as Options.Gauge
	merging  merging   // the last one
	children []float64 // by place in the surroundings: Σ of the dimensions of the bundles to the nodes behind

	flops      float64
	live, peak float64 // entries
	kept       float64 // entries that marginals keep for the way back
	loss       float64 // see Cost
	moves      int64   // of the search
}

// newMeter counts the expression, and one copy of it as leaves.
func newMeter(n *network, h contractionorder.Hypergraph, bond, gauge int) *meter {
	m := &meter{n: n, bond: max(bond, 1), gauge: gauge}
	for t, scope := range h.Edges {
		size := 1.0
		for _, i := range scope {
			size *= float64(h.Dims[i])
		}
		m.live += 2 * size
		m.flops += 2 * size
		if n.node[t].alive {
			n.drop(int32(t))
		}
	}
	m.peak = m.live
	return m
}

// run goes through the merges; stop, if any, is asked after each whether to give up, which leaves the figures as they are.
func (m *meter) run(merges [][2]int, stop func() bool) error {
	partner := partners(merges, len(m.n.node))
	for _, pair := range merges {
		if _, err := m.merge(int32(pair[0]), int32(pair[1]), partner); err != nil {
			return err
		}
		if stop != nil && stop() {
			return nil
		}
	}
	return m.n.finished()
}

// partners lists by node the node that it is merged with, −1 for none.
func partners(merges [][2]int, leaves int) []int32 {
	partner := slices.Repeat([]int32{-1}, leaves+len(merges))
	for _, m := range merges {
		for k, i := range m {
			if i >= 0 && i < len(partner) {
				partner[i] = int32(m[1-k])
			}
		}
	}
	return partner
}

// finished says whether nothing but numbers is left.
func (n *network) finished() error {
	for i, nd := range n.node {
		if nd.alive && len(nd.legs) > 0 {
			return planError("node %d is left with %d wires", i, len(nd.legs))
		}
	}
	return nil
}

// merge counts the merge of two nodes and the truncations after it.
func (m *meter) merge(a, b int32, partner []int32) (int32, error) {
	in := 0.0
	if int(max(a, b)) < len(m.n.node) && min(a, b) >= 0 {
		for _, i := range [2]int32{a, b} {
			if !m.n.node[i].copy {
				in += m.n.node[i].size
			}
		}
	}
	id, err := m.n.merge(a, b, &m.merging)
	if err != nil {
		return 0, err
	}
	out := m.n.node[id].size
	m.flops += 2*m.merging.volume() + in + out
	m.peak = max(m.peak, m.live+in+m.merging.compact()+out)
	m.live += out - in
	m.kept += in
	m.moves += int64(60 + 40*len(m.merging.wires))
	for _, b := range m.n.truncatable(id, m.bond, partner) {
		m.truncate(id, b)
	}
	return id, nil
}

// truncatable lists the bundles of a new node that exceed the bond, except the one that is contracted next, and copy tensors, whose wires
// are single. A nil partner says that the next merge is not known.
func (n *network) truncatable(id int32, bond int, partner []int32) []bundle {
	var out []bundle
	for _, b := range n.neighbours(id) {
		if b.dim > float64(bond) && (partner == nil || partner[id] != b.to) && !n.node[b.to].copy {
			out = append(out, b)
		}
	}
	return out
}

// truncate counts the QR decompositions of the surroundings, the SVD, and the products with the projectors.
func (m *meter) truncate(id int32, b bundle) {
	n := m.n
	ball := n.surroundings(id, b.to, m.gauge)
	m.children = m.children[:0]
	for range ball {
		m.children = append(m.children, 0)
	}
	for i, s := range ball {
		n.count[s.node] = int32(i)
	}
	widest := 0.0 // entries of a tensor
	gauges := 0.0 // entries of the triangles
	for i := len(ball) - 1; i >= 0; i-- {
		s := ball[i]
		size := n.node[s.node].size
		dim := b.dim
		if s.parent >= 0 {
			dim = n.between(s.node, s.parent)
			m.children[n.count[s.parent]] += dim
			gauges += dim * min(dim, size/dim)
		}
		if n.node[s.node].copy && m.children[i] == 0 {
			continue
		}
		m.flops += 2 * size * m.children[i]
		if rows := size / dim; rows > dim {
			m.flops += 5 * size * dim
		}
		widest = max(widest, size)
		m.moves += int64(20 * len(n.node[s.node].legs))
	}
	// QR of both sides, their product and its SVD, the projectors, and the products with them
	sizeA := n.node[id].size
	sizeB := n.node[b.to].size
	rowsA := min(b.dim, sizeA/b.dim)
	rowsB := min(b.dim, sizeB/b.dim)
	k := min(rowsA, rowsB)
	r := min(float64(m.bond), b.dim)
	m.flops += 2*rowsA*rowsB*b.dim + 20*rowsA*rowsB*k + 2*r*b.dim*(rowsA+rowsB) + 2*r*(sizeA+sizeB)
	space := gauges + 4*widest + 8*b.dim*b.dim + (rowsA+rowsB)*k*3 + 4*r*b.dim
	m.peak = max(m.peak, m.live+space)
	if k > r {
		bits := math.Log2(min(k, b.dim) / r)
		m.loss += bits * bits
	}
	m.kept += 2 * r * b.dim
	n.replace(id, b.to, int(r))
	m.live += n.node[id].size + n.node[b.to].size - sizeA - sizeB
}

// cost returns the figures so far.
func (m *meter) cost() Cost {
	return Cost{
		Cost:          legs.Cost{Flops: min(m.flops, math.MaxFloat64), Bytes: min(8*m.peak, math.MaxFloat64)},
		MarginalBytes: min(8*(2*m.peak+m.kept), math.MaxFloat64),
		Loss:          m.loss,
	}
}
