package trees

// Random trees: drawn anew, drawn like the best so far, or the best so far from some merge on. The copy tensors of an index are a chain
// in a global order of the other indices. Small groups of nodes are merged first, and nodes that a neighbour takes in without growing.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// treeSettings are the settings of a random tree.
type treeSettings struct {
	order int  // the kind of order of the chains of copy tensors, from 0 to chainOrders − 1 (drawRanks)
	first int  // what is merged first: nothingFirst, copiesFirst or tablesFirst
	rule  rule // by which the other nodes are merged
}

// What a random tree merges first.
const (
	nothingFirst = 0
	copiesFirst  = 1 // the copy tensors of small variables
	tablesFirst  = 2 // tables with their copy tensors
)

// Kinds of global orders of the indices: chainOrders is their number. The last is a random order.
const (
	orderByNumber     = 0
	breadthFirstOrder = 1
	eliminationOrder  = 2
	chainOrders       = 4
)

const (
	freshTrees      = 8   // trees that are drawn before the best so far guides the next
	maxFirstEntries = 64  // entries of a node that is merged first, at most
	nodeMoves       = 200 // moves of a meter that a node of a random tree costs
)

// drawSettings returns random settings of a tree: new ones or, half of the time after the first trees, those of the best random tree with
// one of them changed a little. The rule has the parameters of the score by which pairs of nodes are merged: alpha weighs the size of both
// nodes against that of the result, centre the distance from a random root, and temperature noise. Order is the kind of global order
// along which the tables of an index are joined, and first says which nodes are merged first.
func (s *search) drawSettings() treeSettings {
	r := s.rng
	if s.trees > freshTrees && s.hasBest && r.IntN(2) == 0 {
		changed := s.bestSettings
		switch r.IntN(4) {
		case 0:
			changed.order = r.IntN(chainOrders)
		case 1:
			changed.rule.alpha = max(0, changed.rule.alpha+0.2*r.NormFloat64())
		case 2:
			changed.rule.temperature *= math.Exp2(r.NormFloat64())
		default:
			changed.rule.centre *= math.Exp2(r.NormFloat64())
		}
		return changed
	}
	// The first merges take turns, copies twice as often. The rule has alpha up to 1.2, noise of 2^-6 to 2^-1 bits and, half of the time, 2^-2
	// to 2^3 bits for a wire of distance.
	fresh := treeSettings{order: r.IntN(chainOrders), first: []int{copiesFirst, tablesFirst, nothingFirst, copiesFirst}[s.trees%4]}
	fresh.rule = rule{alpha: 1.2 * r.Float64(), temperature: math.Exp2(float64(r.IntN(6) - 6))}
	if r.IntN(2) == 0 {
		fresh.rule.centre = math.Exp2(float64(r.IntN(6) - 2))
	}
	return fresh
}

// tryRandomTree draws a random plan and keeps it if it is the best so far. It draws all merges; or it keeps the first merges of the best
// plan, up to a random one, and draws the others.
func (s *search) tryRandomTree() {
	s.trees++
	extendsBest := s.trees > freshTrees && s.hasBest && s.cost.Loss > 0 && s.rng.IntN(3) == 0 // a third of the later trees; chosen
	settings := s.drawSettings()
	p := s.best // a copy, whose merges are replaced below
	if !extendsBest {
		ranks, err := s.drawRanks(settings.order)
		if err != nil {
			return // the only error is the context's, at which the search ends
		}
		p = s.form.chainPlan(ranks)
	}
	n, err := newNetwork(s.h, p)
	if err != nil {
		s.moves = s.options.Moves // it cannot happen, and ends the search
		return
	}

	// Do the first merges.
	const gauge = 0 // the surroundings of truncations are not looked at
	b := &builder{meter: newMeter(n, s.h, s.options.Bond, gauge)}
	if extendsBest {
		for _, pair := range p.Merges[:s.rng.IntN(len(p.Merges)+1)] {
			b.join(int32(pair[0]), int32(pair[1]))
		}
	} else {
		switch settings.first {
		case copiesFirst:
			b.mergeCopies(p)
		case tablesFirst:
			b.mergeTablesWithCopies(p)
		}
		b.mergeWithoutGrowth()
	}

	isComplete := s.mergeRemaining(b, settings.rule)
	s.moves += meterMoves * (b.moves + int64(nodeMoves*len(n.nodes))) // meterMoves moves of the search for one that b has counted
	if p.Merges = b.merges; isComplete && s.consider(p) {
		s.bestSettings = settings
	}
}

// mergeRemaining merges all nodes that b has not merged yet. The next pair is chosen by rule r, in which the distance from a random root
// may count. It stops and returns false if the tree needs far too much memory, cannot be better than the best plan, or the context has
// ended.
func (s *search) mergeRemaining(b *builder, r rule) (isComplete bool) {
	maxFlops := math.Inf(1) // b counts without the surroundings of truncations; a tree that takes more cannot be better than the best
	if s.hasBest && s.cost.Bytes <= s.memory {
		maxFlops = max(2*s.cost.Flops, s.options.Flops)
	}
	root := s.drawRoot(b.net)
	if root < 0 {
		return true
	}
	var distance []float64
	if r.centre > 0 {
		distance = b.net.distancesFrom(root)
	}
	// b.peak counts numbers of 8 bytes. More than 4 times the memory is taken as hopeless.
	return b.mergeGreedily(r, distance, s.rng, func() bool {
		return b.peak*8 > 4*s.memory || b.flops > maxFlops || s.ctx.Err() != nil
	})
}

// drawRanks returns the rank of every index in a global order of a kind: by number, breadth first from random indices, by min-fill
// elimination, or at random. The only error is the context's.
func (s *search) drawRanks(kind int) ([]int, error) {
	order := s.rng.Perm(len(s.h.Dims))
	switch kind {
	case orderByNumber:
		for i := range order {
			order[i] = i
		}
	case breadthFirstOrder:
		neighbours, isVisited := legs.Neighbours(s.h), make([]bool, len(order))
		var visited []int
		for _, start := range order {
			if !isVisited[start] {
				visited = append(visited, legs.BreadthFirst(neighbours, isVisited, start, nil)...)
			}
		}
		order = visited
	case eliminationOrder: // indices of dimension 1, which min-fill leaves out, come last
		if s.minFill == nil {
			var err error
			if s.minFill, err = contractionorder.MinFill(s.ctx, s.h); err != nil {
				return nil, err
			}
			for i, d := range s.h.Dims {
				if d == 1 {
					s.minFill = append(s.minFill, i)
				}
			}
		}
		order = s.minFill
	}
	rank := make([]int, len(order))
	for k, i := range order {
		rank[i] = k
	}
	return rank, nil
}

// drawRoot returns a random node that has wires, or −1 if no node has any.
func (s *search) drawRoot(n *network) int32 {
	var linked []int32
	for i, nd := range n.nodes {
		if nd.isAlive && len(nd.legs) > 0 {
			linked = append(linked, int32(i))
		}
	}
	if len(linked) == 0 {
		return -1
	}
	return linked[s.rng.IntN(len(linked))]
}

// distancesFrom returns, by node, its distance from root in wires. It is 0 for nodes that are not connected with root.
func (n *network) distancesFrom(root int32) []float64 {
	distance := make([]float64, len(n.nodes))
	for _, s := range n.surroundings(root, root, len(n.nodes)) { // root is both ends, and no node is farther than their number
		if s.parent >= 0 {
			distance[s.node] = distance[s.parent] + 1
		}
	}
	return distance
}

// builder is a meter that records its merges.
type builder struct {
	*meter
	merges [][2]int
}

// join merges two nodes, records the merge, and returns the new node. ok is false if the merge is not possible. Since the next merge is not
// known, it truncates every bundle that exceeds the bond.
func (b *builder) join(x, y int32) (id int32, ok bool) {
	id, err := b.merge(x, y, nil) // nil: no next merges are known
	if err == nil {
		b.merges = append(b.merges, [2]int{int(x), int(y)})
	}
	return id, err == nil
}

// mergeWithoutGrowth merges pairs of neighbours whose result is not larger than the larger one of them, until there is no such pair. Copy
// tensors are left to other merges, which take them in.
func (b *builder) mergeWithoutGrowth() {
	n := b.net
	for isMerged := true; isMerged; {
		isMerged = false
		for a := 0; a < len(n.nodes); a++ { // merges append nodes, which get their turn in the same pass
			if !n.nodes[a].isAlive || n.nodes[a].isCopy || len(n.nodes[a].legs) == 0 {
				continue
			}
			for _, bundle := range slices.Clone(n.neighbours(int32(a))) {
				neighbour := bundle.to // joined to a by a bundle of wires
				if n.mergedSize(int32(a), neighbour, math.Inf(1)) > max(n.nodes[a].size, n.nodes[neighbour].size) {
					continue
				}
				_, isMerged = b.join(int32(a), neighbour) // not read: the new node, which comes later in n.nodes
				break                                     // a is a part of a new node now
			}
		}
	}
}

// mergeCopies merges the copy tensors of every index, nodes that join three of its wires, into one node, if that has at most
// maxFirstEntries entries. The copy tensors of an index are a chain and follow each other in p.Copies; k of them make a node with k + 2
// legs.
func (b *builder) mergeCopies(p Plan) {
	for first := 0; first < len(p.Copies); {
		// Copies first ≤ k < end are those of an index with dim values.
		dim := float64(b.net.wires[b.net.nodes[p.Tables+first].legs[0]].dim)
		end, size := first, dim*dim
		for ; end < len(p.Copies) && p.Copies[end] == p.Copies[first]; end++ {
			size *= dim
		}
		merged := int32(p.Tables + first)
		for k := first + 1; k < end && size <= maxFirstEntries; k++ {
			merged, _ = b.join(merged, int32(p.Tables+k)) // neighbours in a chain can always be merged
		}
		first = end
	}
}

// mergeTablesWithCopies merges every table with the copy tensors that join it to the chains of its indices, as long as the result has at
// most maxFirstEntries entries. A dense model becomes a lattice of tables, whose wires are the chains.
func (b *builder) mergeTablesWithCopies(p Plan) {
	tableOf := make([]int, len(p.Copies)) // by copy tensor: the table that it joins to its chain
	for _, w := range p.Wires {           // index, node, node; nodes from p.Tables on are copy tensors
		if w[1] < p.Tables && w[2] >= p.Tables {
			tableOf[w[2]-p.Tables] = w[1]
		}
	}
	nodeOf := make([]int32, p.Tables) // by table: the node that has it now
	for t := range nodeOf {
		nodeOf[t] = int32(t)
	}
	for c, t := range tableOf {
		table, copyNode := nodeOf[t], int32(p.Tables+c)
		areAlive := b.net.nodes[table].isAlive && b.net.nodes[copyNode].isAlive
		if areAlive && b.net.mergedSize(table, copyNode, math.Inf(1)) <= maxFirstEntries {
			nodeOf[t], _ = b.join(table, copyNode) // both are alive, so that they can be merged
		}
	}
}
