package trees

// The network as nodes and wires, without entries: the effect of merges and truncations on its shape. The search, the price of a plan and
// the contraction itself go through the same steps.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// network is the shape of the tensors that are not merged yet: nodes, and wires between them. A merge adds a node, a truncation adds a
// wire. The nodes and wires that they replace keep their numbers.
type network struct {
	nodes []node
	wires []wire

	// of the current walk over nodes, see beginWalk
	walk     int32   // its number, from 1
	stamp    []int32 // by node: the number of the last walk that met it
	position []int32 // by node that the current walk has met: its position in a list of the walk

	// of the current merge
	members []int32 // the nodes that become one
	parent  []int32 // by wire: union-find forest, in which a tree is the wires of one index
	label   []int32 // by wire that is a root in this forest: the label of the index, or −1

	bundleList  []bundle    // memory of neighbours and mergedSize
	surrounding []gaugeNode // memory of surroundings
}

// node is a tensor.
type node struct {
	legs    []int32 // wires, in the order of the axes
	size    float64 // number of entries: the product of the legs' dimensions
	isAlive bool    // false for tables that have a host, and after a merge
	isCopy  bool    // a copy tensor that no merge has touched
}

// wire is an edge of the network.
type wire struct {
	ends [2]int32 // nodes; the second is −1 for an index that only one table has, which is summed out when the table is loaded
	dim  int
}

// other returns the end of a wire that is not n.
func (w wire) other(n int32) int32 {
	if w.ends[0] == n {
		return w.ends[1]
	}
	return w.ends[0]
}

// newNetwork returns the network of p over h. Tables that have a host get no legs. It returns ErrPlan if p does not fit h.
func newNetwork(h contractionorder.Hypergraph, p Plan) (*network, error) {
	if p.Tables != len(h.Edges) || len(p.Hosts) != p.Tables {
		return nil, planError("%d tables and %d hosts for %d tables", p.Tables, len(p.Hosts), len(h.Edges))
	}
	leaves := p.Tables + len(p.Copies)
	n := &network{
		nodes: make([]node, leaves, leaves+len(p.Merges)),
		wires: make([]wire, 0, len(p.Wires)+leaves),
	}
	wireOf := make([]map[int]int32, leaves) // by table: index → wire
	for _, w := range p.Wires {
		if err := n.addWire(h, p, w, wireOf); err != nil {
			return nil, err
		}
	}
	for t, scope := range h.Edges {
		var err error
		if p.Hosts[t] >= 0 {
			err = checkHost(h, p, t)
		} else {
			err = n.orderLegs(h, t, scope, wireOf[t])
		}
		if err != nil {
			return nil, err
		}
	}
	for c := p.Tables; c < leaves; c++ {
		if len(n.nodes[c].legs) != 3 {
			return nil, planError("copy %d has %d wires", c, len(n.nodes[c].legs))
		}
		n.nodes[c].isCopy = true
	}
	for i := range n.nodes {
		n.nodes[i].isAlive = i >= p.Tables || p.Hosts[i] < 0
		n.updateSize(int32(i))
	}
	return n, nil
}

// addWire adds the wire w = (index, node, node) of p, and enters it into wireOf, which has the wire of each index by table. It returns
// ErrPlan if the wire contradicts h or p.
func (n *network) addWire(h contractionorder.Hypergraph, p Plan, w [3]int, wireOf []map[int]int32) error {
	leaves := len(wireOf)
	if w[0] < 0 || w[0] >= len(h.Dims) || w[1] < 0 || w[1] >= leaves || w[2] < -1 ||
		w[2] >= leaves || w[1] == w[2] || w[2] == -1 && w[1] >= p.Tables {
		return planError("wire %v", w)
	}
	id := int32(len(n.wires))
	n.wires = append(n.wires, wire{ends: [2]int32{int32(w[1]), int32(w[2])}, dim: h.Dims[w[0]]})
	for _, end := range w[1:] {
		switch {
		case end < 0:
		case end >= p.Tables:
			if p.Copies[end-p.Tables] != w[0] {
				return planError("wire %v meets a copy of index %d", w, p.Copies[end-p.Tables])
			}
			n.nodes[end].legs = append(n.nodes[end].legs, id)
		default:
			if wireOf[end] == nil {
				wireOf[end] = make(map[int]int32)
			}
			if _, isTaken := wireOf[end][w[0]]; isTaken || p.Hosts[end] >= 0 {
				return planError("wire %v is one too many", w)
			}
			wireOf[end][w[0]] = id
			n.nodes[end].legs = append(n.nodes[end].legs, id)
		}
	}
	return nil
}

// checkHost returns ErrPlan if table t cannot be multiplied into its host.
func checkHost(h contractionorder.Hypergraph, p Plan, t int) error {
	host, scope := p.Hosts[t], h.Edges[t]
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

// orderLegs puts the legs of table t into the order of its scope. wireOf has its wires by index. Wires whose index is not in the scope any
// more come last. It returns ErrPlan if wires and scope do not match in indices of dimension above 1.
func (n *network) orderLegs(h contractionorder.Hypergraph, t int, scope []int, wireOf map[int]int32) error {
	var legs []int32
	for _, i := range scope {
		w, hasWire := wireOf[i]
		if !hasWire && h.Dims[i] > 1 {
			return planError("index %d of table %d has no wire", i, t)
		}
		if !hasWire { // a wire without another end, to be summed over its only value
			w = int32(len(n.wires))
			n.wires = append(n.wires, wire{ends: [2]int32{int32(t), -1}, dim: 1})
		}
		legs = append(legs, w)
	}
	for _, w := range n.nodes[t].legs {
		if !slices.Contains(legs, w) {
			if n.wires[w].dim > 1 {
				return planError("table %d has not the index of wire %d", t, w)
			}
			legs = append(legs, w)
		}
	}
	n.nodes[t].legs = legs
	return nil
}

// dropOpenLegs takes the legs without another end off table t, which is summed over them when it is loaded.
func (n *network) dropOpenLegs(t int32) {
	n.nodes[t].legs = slices.DeleteFunc(n.nodes[t].legs, func(w int32) bool { return n.wires[w].ends[1] < 0 })
	n.updateSize(t)
}

// updateSize computes the size of a node from its wires.
func (n *network) updateSize(i int32) {
	size := 1.0
	for _, w := range n.nodes[i].legs {
		size *= float64(n.wires[w].dim)
	}
	n.nodes[i].size = size
}

// clone returns a copy with the same nodes and wires, and memory not shared with n.
func (n *network) clone() *network {
	c := &network{nodes: slices.Clone(n.nodes), wires: slices.Clone(n.wires)}
	for i := range c.nodes {
		c.nodes[i].legs = slices.Clone(c.nodes[i].legs)
	}
	return c
}

// beginWalk begins a walk that has not met any node yet.
func (n *network) beginWalk() {
	n.walk++
	n.stamp = extend(n.stamp, len(n.nodes)+1)
	n.position = extend(n.position, len(n.nodes)+1)
}

// isMet reports whether the current walk has met a node.
func (n *network) isMet(i int32) bool { return n.stamp[i] == n.walk }

// meet notes that the current walk has met a node.
func (n *network) meet(i int32) { n.stamp[i] = n.walk }

// extend appends zeros to a list that is shorter than length, up to half more than length.
func extend(s []int32, length int) []int32 {
	for len(s) < length {
		s = append(s, make([]int32, length+length/2-len(s))...)
	}
	return s
}

// mergeShape describes the product that a merge computes. A label is an index of the product, numbered from 0. Axes with one label run
// together, as the two axes of a diagonal.
type mergeShape struct {
	operands [2]int32 // nodes; −1 for a copy tensor, which has no entries
	labels   [2][]int32
	wires    []int32 // of the result; wires with one label are next to each other
	out      []int32 // the label of each wire of the result
	dims     []int   // by label
	places   []uint8 // by label: the bits inFirst, inSecond and inResult of the tensors that have it
}

// Bits for the tensors of a product that have a label.
const inFirst, inSecond, inResult = 1, 2, 4

// resultRank orders the labels of a result by their places: those of both operands, of the first, of the second, of the result only.
var resultRank = [8]int32{inFirst | inSecond | inResult: 0, inFirst | inResult: 1, inSecond | inResult: 2, inResult: 3}

// merge makes one node of a, b and the copy tensors between them, returns its number, and sets m to the shape of the product. It returns
// ErrPlan if a and b cannot be merged.
func (n *network) merge(a, b int32, m *mergeShape) (int32, error) {
	end := int32(len(n.nodes))
	if a < 0 || b < 0 || a >= end || b >= end || a == b || !n.nodes[a].isAlive || !n.nodes[b].isAlive {
		return 0, planError("merge of nodes %d and %d", a, b)
	}
	n.gatherMembers(a, b)
	n.joinWires()
	m.assignLabels(n, a, b)
	id := int32(len(n.nodes))
	for _, w := range m.wires {
		ends := &n.wires[w].ends
		if n.isMet(ends[0]) {
			ends[0] = id
		} else {
			ends[1] = id
		}
	}
	for _, i := range n.members {
		n.nodes[i] = node{}
	}
	n.nodes = append(n.nodes, node{legs: slices.Clone(m.wires), isAlive: true})
	n.updateSize(id)
	return id, nil
}

// gatherMembers lists the members of the merge of a and b, which the walk then has met: a, b, and every copy tensor that two or three
// wires join to members.
func (n *network) gatherMembers(a, b int32) {
	n.beginWalk()
	n.members = append(n.members[:0], a, b)
	n.meet(a)
	n.meet(b)
	for i := 0; i < len(n.members); i++ {
		for _, w := range n.nodes[n.members[i]].legs {
			o := n.wires[w].other(n.members[i])
			if !n.nodes[o].isCopy || n.isMet(o) {
				continue
			}
			if hasOneWire := n.stamp[o] == -n.walk; hasOneWire { // this is its second wire to a member
				n.meet(o)
				n.members = append(n.members, o)
			} else {
				n.stamp[o] = -n.walk
			}
		}
	}
}

// joinWires makes one tree in parent of all wires of members that carry the same index: the three wires of a copy tensor.
func (n *network) joinWires() {
	n.parent = extend(n.parent, len(n.wires))
	for _, i := range n.members {
		for _, w := range n.nodes[i].legs {
			n.parent[w] = w
		}
	}
	for _, i := range n.members {
		if nd := &n.nodes[i]; nd.isCopy {
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

// assignLabels fills in m for the merge of a and b, after gatherMembers and joinWires. The wires of the result come in the order of
// resultRank, so that the product has no axes to permute.
func (m *mergeShape) assignLabels(n *network, a, b int32) {
	n.label = extend(n.label, len(n.wires))
	m.dims = m.dims[:0]
	m.places = m.places[:0]
	m.wires = m.wires[:0]
	m.out = m.out[:0]
	for _, i := range n.members {
		for _, w := range n.nodes[i].legs {
			n.label[n.root(w)] = -1
		}
	}
	// addPlace notes that a tensor has a wire, and returns the label of the wire, a new label at the first time.
	addPlace := func(w int32, place uint8) int32 {
		r := n.root(w)
		if n.label[r] < 0 {
			n.label[r] = int32(len(m.dims))
			m.dims = append(m.dims, n.wires[w].dim)
			m.places = append(m.places, 0)
		}
		m.places[n.label[r]] |= place
		return n.label[r]
	}
	for k, i := range [2]int32{a, b} {
		m.operands[k] = i
		m.labels[k] = m.labels[k][:0]
		if n.nodes[i].isCopy {
			m.operands[k] = -1
			continue
		}
		for _, w := range n.nodes[i].legs {
			m.labels[k] = append(m.labels[k], addPlace(w, 1<<k)) // inFirst, inSecond
		}
	}
	for _, i := range n.members {
		for _, w := range n.nodes[i].legs {
			if !n.isMet(n.wires[w].other(i)) {
				m.wires = append(m.wires, w)
				addPlace(w, inResult)
			}
		}
	}
	rank := func(w int32) int32 {
		l := n.label[n.root(w)]
		return resultRank[m.places[l]]<<24 + l
	}
	slices.SortStableFunc(m.wires, func(x, y int32) int { return int(rank(x) - rank(y)) })
	for _, w := range m.wires {
		m.out = append(m.out, n.label[n.root(w)])
	}
}

// products returns the number of products of a merge: one for each value of all labels.
func (m *mergeShape) products() float64 {
	v := 1.0
	for _, d := range m.dims {
		v *= float64(d)
	}
	return v
}

// compactSize returns the number of entries of the result if each label had a single axis.
func (m *mergeShape) compactSize() float64 {
	v := 1.0
	for l, d := range m.dims {
		if m.places[l]&inResult != 0 {
			v *= float64(d)
		}
	}
	return v
}

// bundle is all wires from one node to another.
type bundle struct {
	to  int32
	dim float64 // product of the wires' dimensions
}

// neighbours lists the bundles of a node in the order of its legs. The list is valid until the next call of neighbours or mergedSize.
func (n *network) neighbours(a int32) []bundle {
	n.beginWalk()
	n.bundleList = n.bundleList[:0]
	for _, w := range n.nodes[a].legs {
		o := n.wires[w].other(a)
		if !n.isMet(o) {
			n.meet(o)
			n.position[o] = int32(len(n.bundleList))
			n.bundleList = append(n.bundleList, bundle{to: o, dim: 1})
		}
		n.bundleList[n.position[o]].dim *= float64(n.wires[w].dim)
	}
	return n.bundleList
}

// bundleDim returns the dimension of the bundle of two nodes.
func (n *network) bundleDim(a, b int32) float64 {
	d := 1.0
	for _, w := range n.nodes[a].legs {
		if n.wires[w].other(a) == b {
			d *= float64(n.wires[w].dim)
		}
	}
	return d
}

// replaceBundle puts one wire of dimension dim in the place of the bundle of a and b. It becomes the last leg of both.
func (n *network) replaceBundle(a, b int32, dim int) {
	id := int32(len(n.wires))
	n.wires = append(n.wires, wire{ends: [2]int32{a, b}, dim: dim})
	for _, ends := range [2][2]int32{{a, b}, {b, a}} {
		nd := &n.nodes[ends[0]]
		nd.legs = append(slices.DeleteFunc(nd.legs, func(w int32) bool { return n.wires[w].other(ends[0]) == ends[1] }), id)
		n.updateSize(ends[0])
	}
}

// gaugeNode is a node of the two trees of surroundings by which a bundle is gauged. The parent of the roots is −1.
type gaugeNode struct{ node, parent int32 }

// surroundings returns the nodes at most depth wires from a or b, each once, in the order of a breadth-first walk from both: first a and
// b, the roots of two trees. The list is valid until the next call.
func (n *network) surroundings(a, b int32, depth int) []gaugeNode {
	n.beginWalk()
	n.meet(a)
	n.meet(b)
	n.surrounding = append(n.surrounding[:0], gaugeNode{a, -1}, gaugeNode{b, -1})
	for next, distance := 0, 0; distance < depth; distance++ {
		end := len(n.surrounding) // the end of the nodes at this distance
		for ; next < end; next++ {
			parent := n.surrounding[next].node
			for _, w := range n.nodes[parent].legs {
				if o := n.wires[w].other(parent); !n.isMet(o) {
					n.meet(o)
					n.surrounding = append(n.surrounding, gaugeNode{o, parent})
				}
			}
		}
	}
	return n.surrounding
}
