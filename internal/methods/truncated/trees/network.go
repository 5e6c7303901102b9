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

	// Of the current walk over nodes, see beginWalk:
	walk     int32   // its number, from 1
	stamp    []int32 // by node: the number of the last walk that met it
	position []int32 // by node that the current walk has met: its position in a list of the walk

	// Of the current merge:
	members []int32 // the nodes that become one
	parent  []int32 // by wire: its parent in a union-find forest, whose trees are the wires of one index
	label   []int32 // by wire that is the root of a tree: the label of the index, or −1 if it has none yet

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

// wire is an edge of the network. It carries an index, or the new index of a truncation.
type wire struct {
	ends [2]int32 // nodes; the second is −1 for an index that only one table has, which is summed out when the table is loaded
	dim  int      // number of values of the index
}

// other returns the node at the other end of a wire of node n.
func (w wire) other(n int32) int32 {
	if w.ends[0] == n {
		return w.ends[1]
	}
	return w.ends[0]
}

// newNetwork returns the network of plan p before its merges, for an expression with hypergraph h. Its nodes are the tables, then the copy
// tensors, which join the wires of an index that more than two tables have. A table that is multiplied into another one, its host, gets no
// legs and is not alive. It returns ErrPlan if p does not fit h.
func newNetwork(h contractionorder.Hypergraph, p Plan) (*network, error) {
	if p.Tables != len(h.Edges) || len(p.Hosts) != p.Tables {
		return nil, planError("%d tables and %d hosts for %d tables", p.Tables, len(p.Hosts), len(h.Edges))
	}
	leaves := p.Tables + len(p.Copies)
	n := &network{
		nodes: make([]node, leaves, leaves+len(p.Merges)),
		wires: make([]wire, 0, len(p.Wires)+leaves),
	}

	wireOf := make([]map[int]int32, leaves) // by table: the wire of each index
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

	// A copy tensor has three wires.
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

// addWire adds the wire w = (index, node, node) of plan p to the network, and to wireOf: wireOf[t][i] is the wire of index i at table t.
// The second node is −1 if only one table has the index. It returns ErrPlan if the wire contradicts h or p.
func (n *network) addWire(h contractionorder.Hypergraph, p Plan, w [3]int, wireOf []map[int]int32) error {
	leaves := len(wireOf) // number of tables and copy tensors
	index, first, second := w[0], w[1], w[2]
	isInRange := index >= 0 && index < len(h.Dims) && first >= 0 && first < leaves && second >= -1 && second < leaves
	if !isInRange || first == second || second == -1 && first >= p.Tables {
		return planError("wire %v", w)
	}
	id := int32(len(n.wires))
	n.wires = append(n.wires, wire{ends: [2]int32{int32(first), int32(second)}, dim: h.Dims[index]})
	for _, end := range [2]int{first, second} {
		isCopy := end >= p.Tables
		switch {
		case end < 0: // there is no second node
		case isCopy:
			if p.Copies[end-p.Tables] != index {
				return planError("wire %v meets a copy of index %d", w, p.Copies[end-p.Tables])
			}
			n.nodes[end].legs = append(n.nodes[end].legs, id)
		default:
			if wireOf[end] == nil {
				wireOf[end] = make(map[int]int32)
			}
			if _, hasWire := wireOf[end][index]; hasWire || p.Hosts[end] >= 0 {
				return planError("wire %v is one too many", w)
			}
			wireOf[end][index] = id
			n.nodes[end].legs = append(n.nodes[end].legs, id)
		}
	}
	return nil
}

// checkHost returns ErrPlan if table t cannot be multiplied into its host: t has more than one index, the host does not have it, or the
// host is multiplied into another table itself.
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

// orderLegs sorts the legs of table t as its scope. wireOf has the table's wires by index. The plan may be for larger dimensions: an index
// of dimension 1 may have no wire, and then gets one with a single end; a wire of dimension 1 whose index is not in the scope comes last.
// It returns ErrPlan if wires and scope do not match in indices of dimension above 1.
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

// dropOpenLegs removes the legs of table t whose wires have no second end. The table is summed over them when it is loaded.
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

// beginWalk begins a new walk over nodes, which marks those that it has met (isMet). No node is met yet.
func (n *network) beginWalk() {
	n.walk++
	n.stamp = extendTo(n.stamp, len(n.nodes)+1)
	n.position = extendTo(n.position, len(n.nodes)+1)
}

// isMet reports whether the current walk has met a node.
func (n *network) isMet(i int32) bool { return n.stamp[i] == n.walk }

// markMet marks a node as met by the current walk.
func (n *network) markMet(i int32) { n.stamp[i] = n.walk }

// extendTo returns list with zeros appended so that it has at least the given length. If it appends any, there are half more than needed.
func extendTo(list []int32, length int) []int32 {
	for len(list) < length {
		list = append(list, make([]int32, length+length/2-len(list))...)
	}
	return list
}

// mergeShape describes the product that a merge computes. A label is an index of the product, numbered from 0. Axes with one label run
// together, as the two axes of a diagonal.
type mergeShape struct {
	operands [2]int32   // nodes; −1 for a copy tensor, which has no entries
	labels   [2][]int32 // by operand: the label of each of its axes
	wires    []int32    // of the result; wires with one label are next to each other
	out      []int32    // the label of each wire of the result
	dims     []int      // by label: number of values
	places   []uint8    // by label: the bits inFirst, inSecond and inResult of the tensors that have it
}

// Bits for the tensors of a product that have a label.
const inFirst, inSecond, inResult = 1, 2, 4

// resultRank is the rank of a label of the result by its places: labels of both operands come first, then those of the first, of the
// second, of neither.
var resultRank = [8]int32{inFirst | inSecond | inResult: 0, inFirst | inResult: 1, inSecond | inResult: 2, inResult: 3}

// merge replaces nodes a and b, and the copy tensors between them, by one new node. It returns the number of the new node and sets m to the
// shape of the product. It returns ErrPlan if a and b cannot be merged.
func (n *network) merge(a, b int32, m *mergeShape) (int32, error) {
	end := int32(len(n.nodes))
	if a < 0 || b < 0 || a >= end || b >= end || a == b || !n.nodes[a].isAlive || !n.nodes[b].isAlive {
		return 0, planError("merge of nodes %d and %d", a, b)
	}
	n.gatherMembers(a, b)
	n.joinWires()
	m.assignLabels(n, a, b)

	// The wires of the result lead from members, which the walk has met, to other nodes.
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
		n.nodes[i] = node{} // not alive any more
	}
	n.nodes = append(n.nodes, node{legs: slices.Clone(m.wires), isAlive: true})
	n.updateSize(id)
	return id, nil
}

// gatherMembers sets n.members to the nodes that become one if a and b are merged, and marks them as met. They are a, b, and every copy
// tensor (a node with three wires of one index) of which two or three wires lead to members. A copy tensor of which one such wire was found
// has the stamp −walk until a second one is found.
func (n *network) gatherMembers(a, b int32) {
	n.beginWalk()
	n.members = append(n.members[:0], a, b)
	n.markMet(a)
	n.markMet(b)
	for i := 0; i < len(n.members); i++ {
		for _, w := range n.nodes[n.members[i]].legs {
			neighbour := n.wires[w].other(n.members[i])
			if !n.nodes[neighbour].isCopy || n.isMet(neighbour) {
				continue
			}
			if hasOneWire := n.stamp[neighbour] == -n.walk; hasOneWire { // this is its second wire to a member
				n.markMet(neighbour)
				n.members = append(n.members, neighbour)
			} else {
				n.stamp[neighbour] = -n.walk
			}
		}
	}
}

// joinWires joins the wires of the members that carry the same index into one tree of n.parent (union-find). These are the three wires of
// each copy tensor, which is 1 if all three have the same value and 0 otherwise. The members are the nodes that a merge makes one
// (gatherMembers).
func (n *network) joinWires() {
	n.parent = extendTo(n.parent, len(n.wires))
	for _, i := range n.members {
		for _, w := range n.nodes[i].legs {
			n.parent[w] = w
		}
	}
	for _, i := range n.members {
		if nd := &n.nodes[i]; nd.isCopy {
			x, y, z := n.root(nd.legs[0]), n.root(nd.legs[1]), n.root(nd.legs[2])
			n.parent[y], n.parent[z] = x, x // x, y and z are roots
		}
	}
}

// root returns the root of the tree of wire w in n.parent, which stands for all wires of the same index.
func (n *network) root(w int32) int32 {
	for n.parent[w] != w {
		w = n.parent[w]
	}
	return w
}

// assignLabels sets m to the shape of the merge of a and b, after gatherMembers and joinWires. A label is the number of an index in the
// product; all wires of one index have the same, which n.label has at the root of their tree. m.places has for each label the bits of the
// tensors that have it: the first operand, the second, and the result. The wires of the result are sorted by these bits: labels of both
// operands come first, then those of the first, of the second, of neither (resultRank). So the product has no axes to permute.
func (m *mergeShape) assignLabels(n *network, a, b int32) {
	m.clearLabels(n)

	// Label the wires of both operands. A copy tensor is no operand, since it has no entries.
	for k, i := range [2]int32{a, b} {
		m.operands[k] = i
		m.labels[k] = m.labels[k][:0]
		if n.nodes[i].isCopy {
			m.operands[k] = -1
			continue
		}
		operandBit := [2]uint8{inFirst, inSecond}[k]
		for _, w := range n.nodes[i].legs {
			m.labels[k] = append(m.labels[k], m.addPlace(n, w, operandBit))
		}
	}

	// The wires of the result lead from members, which are the nodes that gatherMembers has met, to other nodes.
	for _, i := range n.members {
		for _, w := range n.nodes[i].legs {
			if !n.isMet(n.wires[w].other(i)) {
				m.wires = append(m.wires, w)
				m.addPlace(n, w, inResult)
			}
		}
	}
	rank := func(w int32) int32 { // by places, then by label
		l := n.label[n.root(w)]
		return resultRank[m.places[l]]<<24 + l // there are fewer than 2^24 labels
	}
	slices.SortStableFunc(m.wires, func(x, y int32) int { return int(rank(x) - rank(y)) })
	for _, w := range m.wires {
		m.out = append(m.out, n.label[n.root(w)])
	}
}

// clearLabels removes all labels of m. In n.label the wires of all members get −1, no label yet.
func (m *mergeShape) clearLabels(n *network) {
	n.label = extendTo(n.label, len(n.wires))
	m.dims = m.dims[:0]
	m.places = m.places[:0]
	m.wires = m.wires[:0]
	m.out = m.out[:0]
	for _, i := range n.members {
		for _, w := range n.nodes[i].legs {
			n.label[n.root(w)] = -1
		}
	}
}

// addPlace adds the bit of a tensor that has wire w to the places of the wire's label. The label is the number of the wire's index in the
// product. It returns the label, a new one at the first time.
func (m *mergeShape) addPlace(n *network, w int32, bit uint8) int32 {
	r := n.root(w) // the wire that stands for all wires of the same index
	if n.label[r] < 0 {
		n.label[r] = int32(len(m.dims))
		m.dims = append(m.dims, n.wires[w].dim)
		m.places = append(m.places, 0)
	}
	m.places[n.label[r]] |= bit
	return n.label[r]
}

// products returns the number of multiplications of a merge: one for each combination of values of all labels.
func (m *mergeShape) products() float64 {
	count := 1.0
	for _, d := range m.dims {
		count *= float64(d)
	}
	return count
}

// compactSize returns the number of entries that the result would have with one axis for each label, even if several wires have the label.
// A label is the number of an index in the product.
func (m *mergeShape) compactSize() float64 {
	size := 1.0
	for l, d := range m.dims {
		if m.places[l]&inResult != 0 {
			size *= float64(d)
		}
	}
	return size
}

// bundle is all wires from one node to another.
type bundle struct {
	to  int32   // the other node
	dim float64 // product of the wires' dimensions
}

// neighbours returns the bundles of node a: all wires to one neighbour are a bundle, whose dim is the product of their dimensions. They
// come in the order of the legs. The list is valid until the next call of neighbours or mergedSize.
func (n *network) neighbours(a int32) []bundle {
	n.beginWalk()
	n.bundleList = n.bundleList[:0]
	for _, w := range n.nodes[a].legs {
		neighbour := n.wires[w].other(a)
		if !n.isMet(neighbour) {
			n.markMet(neighbour)
			n.position[neighbour] = int32(len(n.bundleList))
			n.bundleList = append(n.bundleList, bundle{to: neighbour, dim: 1})
		}
		n.bundleList[n.position[neighbour]].dim *= float64(n.wires[w].dim)
	}
	return n.bundleList
}

// bundleDim returns the product of the dimensions of the wires between two nodes.
func (n *network) bundleDim(a, b int32) float64 {
	d := 1.0
	for _, w := range n.nodes[a].legs {
		if n.wires[w].other(a) == b {
			d *= float64(n.wires[w].dim)
		}
	}
	return d
}

// replaceBundle replaces all wires between nodes a and b by one wire of dimension dim. The new wire becomes the last leg of both nodes.
func (n *network) replaceBundle(a, b int32, dim int) {
	id := int32(len(n.wires))
	n.wires = append(n.wires, wire{ends: [2]int32{a, b}, dim: dim})
	for _, ends := range [2][2]int32{{a, b}, {b, a}} {
		nd := &n.nodes[ends[0]]
		nd.legs = append(slices.DeleteFunc(nd.legs, func(w int32) bool { return n.wires[w].other(ends[0]) == ends[1] }), id)
		n.updateSize(ends[0])
	}
}

// gaugeNode is a node with its parent in one of the two trees that surround a bundle (surroundings). The parent of a root is −1.
type gaugeNode struct{ node, parent int32 }

// surroundings returns the nodes that are at most depth wires away from a or b, each once, in breadth-first order. They form two trees with
// the roots a and b, which come first; the parent of a node is nearer to its root. The list is valid until the next call. A walk marks each
// node that it has met (beginWalk).
func (n *network) surroundings(a, b int32, depth int) []gaugeNode {
	n.beginWalk()
	n.markMet(a)
	n.markMet(b)
	n.surrounding = append(n.surrounding[:0], gaugeNode{a, -1}, gaugeNode{b, -1})
	for next, distance := 0, 0; distance < depth; distance++ {
		end := len(n.surrounding) // the end of the nodes at this distance
		for ; next < end; next++ {
			parent := n.surrounding[next].node
			for _, w := range n.nodes[parent].legs {
				if neighbour := n.wires[w].other(parent); !n.isMet(neighbour) {
					n.markMet(neighbour)
					n.surrounding = append(n.surrounding, gaugeNode{neighbour, parent})
				}
			}
		}
	}
	return n.surrounding
}
