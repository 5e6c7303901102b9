package trees

// The network as nodes and wires, without entries: the effect of merges and truncations on its shape. The search, the price of a plan and
// the contraction itself go through the same steps.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// network is the shape of the tensors left: nodes, and wires between them. Lists grow with the merges.
type network struct {
	node []node
	wire []wire

	stamp   []int32  // by node, of the merge or walk under way
	count   []int32  // by node: a number that belongs to the stamp
	counter int32    // the stamp under way
	parent  []int32  // union-find over wires
	label   []int32  // by wire that is a root: its label in the merge under way
	members []int32  // of the merge under way: its nodes
	bundles []bundle // room for neighbours and estimate
	ball    []spoke  // room for surroundings
}

// node is a tensor.
type node struct {
	legs  []int32 // wires, in the order of the axes
	size  float64 // Π of their dimensions
	alive bool
	copy  bool // a copy tensor that no merge has touched
}

// wire is an edge of the network.
type wire struct {
	end [2]int32 // −1: a table's own index, summed when it is loaded
	dim int
}

// other returns the end of a wire that is not n.
func (w wire) other(n int32) int32 {
	if w.end[0] == n {
		return w.end[1]
	}
	return w.end[0]
}

// newNetwork lays p out over h, or says why they do not fit. Tables that have a host get no legs.
func newNetwork(h contractionorder.Hypergraph, p Plan) (*network, error) {
	if p.Tables != len(h.Edges) || len(p.Hosts) != p.Tables {
		return nil, planError("%d tables and %d hosts for %d tables", p.Tables, len(p.Hosts), len(h.Edges))
	}
	leaves := p.Tables + len(p.Copies)
	n := &network{
		node: make([]node, leaves, leaves+len(p.Merges)),
		wire: make([]wire, 0, len(p.Wires)+leaves),
	}
	at := make([]map[int]int32, leaves) // by table: index → wire
	for _, w := range p.Wires {
		if err := n.connect(h, p, w, at); err != nil {
			return nil, err
		}
	}
	for t, scope := range h.Edges {
		if err := n.settle(h, p, t, scope, at[t]); err != nil {
			return nil, err
		}
	}
	for c := p.Tables; c < leaves; c++ {
		if len(n.node[c].legs) != 3 {
			return nil, planError("copy %d has %d wires", c, len(n.node[c].legs))
		}
		n.node[c].copy = true
	}
	for i := range n.node {
		n.node[i].alive = i >= p.Tables || p.Hosts[i] < 0
		n.resize(int32(i))
	}
	return n, nil
}

// connect adds a wire of p; at[t] has the wires of table t by index.
func (n *network) connect(h contractionorder.Hypergraph, p Plan, w [3]int, at []map[int]int32) error {
	leaves := len(at)
	if w[0] < 0 || w[0] >= len(h.Dims) || w[1] < 0 || w[1] >= leaves || w[2] < -1 ||
		w[2] >= leaves || w[1] == w[2] || w[2] == -1 && w[1] >= p.Tables {
		return planError("wire %v", w)
	}
	id := int32(len(n.wire))
	n.wire = append(n.wire, wire{end: [2]int32{int32(w[1]), int32(w[2])}, dim: h.Dims[w[0]]})
	for _, end := range w[1:] {
		switch {
		case end < 0:
		case end >= p.Tables:
			if p.Copies[end-p.Tables] != w[0] {
				return planError("wire %v meets a copy of index %d", w, p.Copies[end-p.Tables])
			}
			n.node[end].legs = append(n.node[end].legs, id)
		default:
			if at[end] == nil {
				at[end] = make(map[int]int32)
			}
			if _, twice := at[end][w[0]]; twice || p.Hosts[end] >= 0 {
				return planError("wire %v is one too many", w)
			}
			at[end][w[0]] = id
			n.node[end].legs = append(n.node[end].legs, id)
		}
	}
	return nil
}

// settle puts the legs of table t into the order of its scope; wires whose index it has lost follow.
func (n *network) settle(h contractionorder.Hypergraph, p Plan, t int, scope []int, at map[int]int32) error {
	if host := p.Hosts[t]; host >= 0 {
		if host >= p.Tables || host == t || p.Hosts[host] >= 0 || len(scope) > 1 {
			return planError("table %d cannot be multiplied into %d", t, host)
		}
		for _, i := range scope {
			if h.Dims[i] > 1 && !slices.Contains(h.Edges[host], i) {
				return planError("table %d has not the index of table %d", host, t)
			}
		}
		return nil
	}
	var legs []int32
	for _, i := range scope {
		w, ok := at[i]
		if !ok && h.Dims[i] > 1 {
			return planError("index %d of table %d has no wire", i, t)
		}
		if !ok { // a leg of its own, to be summed over its one value
			w = int32(len(n.wire))
			n.wire = append(n.wire, wire{end: [2]int32{int32(t), -1}, dim: 1})
		}
		legs = append(legs, w)
	}
	for _, w := range n.node[t].legs {
		if !slices.Contains(legs, w) {
			if n.wire[w].dim > 1 {
				return planError("table %d has not the index of wire %d", t, w)
			}
			legs = append(legs, w)
		}
	}
	n.node[t].legs = legs
	return nil
}

// drop takes the legs without another end off a table, which sums over them.
func (n *network) drop(t int32) {
	n.node[t].legs = slices.DeleteFunc(n.node[t].legs, func(w int32) bool { return n.wire[w].end[1] < 0 })
	n.resize(t)
}

// resize computes the size of a node from its wires.
func (n *network) resize(i int32) {
	size := 1.0
	for _, w := range n.node[i].legs {
		size *= float64(n.wire[w].dim)
	}
	n.node[i].size = size
}

// clone copies nodes and wires, and none of the rooms.
func (n *network) clone() *network {
	c := &network{node: slices.Clone(n.node), wire: slices.Clone(n.wire)}
	for i := range c.node {
		c.node[i].legs = slices.Clone(c.node[i].legs)
	}
	return c
}

// begin begins a walk: no node has its stamp yet.
func (n *network) begin() {
	n.counter++
	n.stamp = grow(n.stamp, len(n.node)+1)
	n.count = grow(n.count, len(n.node)+1)
}

// grow lengthens a list by zeros, by half more than asked for.
func grow(s []int32, length int) []int32 {
	for len(s) < length {
		s = append(s, make([]int32, length+length/2-len(s))...)
	}
	return s
}

// merging describes the product of a merge. Axes with one label run together. Labels are numbered; dims gives their sizes.
type merging struct {
	operand [2]int32 // nodes, −1 for a copy tensor, whose entries are never looked at
	labels  [2][]int32
	wires   []int32 // of the result, with one label next to each other
	out     []int32 // their labels
	dims    []int
	where   []uint8 // by label: 1 in the first operand, 2 in the second, 4 in the result
}

// Where a label is.
const inFirst, inSecond, inResult = 1, 2, 4

// outRank is the place of labels in the result by where they are: both, first, second.
var outRank = [8]int32{inFirst | inSecond | inResult: 0, inFirst | inResult: 1, inSecond | inResult: 2, inResult: 3}

// merge makes one node of a and b and the copy tensors between them, and fills m in.
func (n *network) merge(a, b int32, m *merging) (int32, error) {
	leaves := int32(len(n.node))
	if a < 0 || b < 0 || a >= leaves || b >= leaves || a == b || !n.node[a].alive || !n.node[b].alive {
		return 0, planError("merge of nodes %d and %d", a, b)
	}
	n.gather(a, b)
	m.label(n, a, b)
	id := int32(len(n.node))
	for _, w := range m.wires {
		end := &n.wire[w].end
		if n.stamp[end[0]] == n.counter {
			end[0] = id
		} else {
			end[1] = id
		}
	}
	for _, i := range n.members {
		n.node[i] = node{}
	}
	n.node = append(n.node, node{legs: slices.Clone(m.wires), alive: true})
	n.resize(id)
	return id, nil
}

// gather lists a, b and the copy tensors that two wires join to them, and joins the wires of copy tensors.
func (n *network) gather(a, b int32) {
	n.begin()
	n.members = append(n.members[:0], a, b)
	n.stamp[a] = n.counter
	n.stamp[b] = n.counter
	n.parent = grow(n.parent, len(n.wire))
	// A copy tensor is stamped −counter by its first wire to a member, and is one itself by the second.
	for i := 0; i < len(n.members); i++ {
		for _, w := range n.node[n.members[i]].legs {
			o := n.wire[w].other(n.members[i])
			if !n.node[o].copy || n.stamp[o] == n.counter {
				continue
			}
			if n.stamp[o] == -n.counter {
				n.stamp[o] = n.counter
				n.members = append(n.members, o)
			} else {
				n.stamp[o] = -n.counter
			}
		}
	}
	// All three wires of a copy tensor carry one index.
	for _, i := range n.members {
		for _, w := range n.node[i].legs {
			n.parent[w] = w
		}
	}
	for _, i := range n.members {
		if nd := &n.node[i]; nd.copy {
			x, y, z := n.root(nd.legs[0]), n.root(nd.legs[1]), n.root(nd.legs[2])
			n.parent[y], n.parent[z] = x, x
			n.parent[n.root(z)] = x
		}
	}
}

// root returns the wire that stands for all wires of its index.
func (n *network) root(w int32) int32 {
	for n.parent[w] != w {
		w = n.parent[w]
	}
	return w
}

// label numbers the labels: the labels of the result first, in the order both, first, second, so that no result is permuted.
func (m *merging) label(n *network, a, b int32) {
	n.label = grow(n.label, len(n.wire))
	m.dims = m.dims[:0]
	m.where = m.where[:0]
	m.wires = m.wires[:0]
	m.out = m.out[:0]
	for _, i := range n.members {
		for _, w := range n.node[i].legs {
			n.label[n.root(w)] = -1
		}
	}
	see := func(w int32, bit uint8) int32 {
		r := n.root(w)
		if n.label[r] < 0 {
			n.label[r] = int32(len(m.dims))
			m.dims = append(m.dims, n.wire[w].dim)
			m.where = append(m.where, 0)
		}
		m.where[n.label[r]] |= bit
		return n.label[r]
	}
	for k, i := range [2]int32{a, b} {
		m.operand[k] = i
		m.labels[k] = m.labels[k][:0]
		if n.node[i].copy {
			m.operand[k] = -1
			continue
		}
		for _, w := range n.node[i].legs {
			m.labels[k] = append(m.labels[k], see(w, 1<<k))
		}
	}
	for _, i := range n.members {
		for _, w := range n.node[i].legs {
			if n.stamp[n.wire[w].other(i)] != n.counter {
				m.wires = append(m.wires, w)
				see(w, inResult)
			}
		}
	}
	rank := func(w int32) int32 {
		l := n.label[n.root(w)]
		return outRank[m.where[l]]<<24 + l
	}
	slices.SortStableFunc(m.wires, func(x, y int32) int { return int(rank(x) - rank(y)) })
	for _, w := range m.wires {
		m.out = append(m.out, n.label[n.root(w)])
	}
}

// volume is the number of products of a merge.
func (m *merging) volume() float64 {
	v := 1.0
	for _, d := range m.dims {
		v *= float64(d)
	}
	return v
}

// compact is the size of the result with every label once.
func (m *merging) compact() float64 {
	v := 1.0
	for l, d := range m.dims {
		if m.where[l]&inResult != 0 {
			v *= float64(d)
		}
	}
	return v
}

// bundle is all wires from one node to another.
type bundle struct {
	to  int32
	dim float64
}

// neighbours lists the bundles of a node in the order of its legs. The list is valid until the next call.
func (n *network) neighbours(a int32) []bundle {
	n.begin()
	n.bundles = n.bundles[:0]
	for _, w := range n.node[a].legs {
		o := n.wire[w].other(a)
		if n.stamp[o] != n.counter {
			n.stamp[o] = n.counter
			n.count[o] = int32(len(n.bundles))
			n.bundles = append(n.bundles, bundle{to: o, dim: 1})
		}
		n.bundles[n.count[o]].dim *= float64(n.wire[w].dim)
	}
	return n.bundles
}

// between is the dimension of the bundle of two nodes.
func (n *network) between(a, b int32) float64 {
	d := 1.0
	for _, w := range n.node[a].legs {
		if n.wire[w].other(a) == b {
			d *= float64(n.wire[w].dim)
		}
	}
	return d
}

// replace puts one wire of dimension r in the place of the bundle of a and b, as the last leg of both.
func (n *network) replace(a, b int32, r int) int32 {
	id := int32(len(n.wire))
	n.wire = append(n.wire, wire{end: [2]int32{a, b}, dim: r})
	for _, end := range [2][2]int32{{a, b}, {b, a}} {
		nd := &n.node[end[0]]
		nd.legs = append(slices.DeleteFunc(nd.legs, func(w int32) bool { return n.wire[w].other(end[0]) == end[1] }), id)
		n.resize(end[0])
	}
	return id
}

// spoke is a node of the tree of surroundings that a bond is gauged by.
type spoke struct{ node, parent int32 }

// surroundings walks breadth first from both ends of a bond, at most depth wires far; every node is reached once. The ends come first.
// The list is valid until the next call.
func (n *network) surroundings(a, b int32, depth int) []spoke {
	n.begin()
	n.stamp[a] = n.counter
	n.stamp[b] = n.counter
	n.ball = append(n.ball[:0], spoke{a, -1}, spoke{b, -1})
	for from, level := 0, 0; level < depth; level++ {
		end := len(n.ball)
		for ; from < end; from++ {
			at := n.ball[from].node
			for _, w := range n.node[at].legs {
				if o := n.wire[w].other(at); n.stamp[o] != n.counter {
					n.stamp[o] = n.counter
					n.ball = append(n.ball, spoke{o, at})
				}
			}
		}
	}
	return n.ball
}
