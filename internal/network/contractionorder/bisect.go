package contractionorder

// Trees by recursive bisection: nested dissection of the tensors.

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// dissection tells how a network is cut into parts.
type dissection struct {
	imbalance int64     // in 256ths: a part may be (1 + imbalance/256)/2 of the whole
	openCost  log2Fixed // the cost of cutting an index that is already cut, relative to that of the first cut: 1<<16 for the same cost
	pieceSize int       // a part of so many tensors or fewer is not cut further
}

// dissect returns the merges of a tree over n and the number of moves (elementary operations) that it took. It builds the tree from the
// top down: it splits the tensors into two parts that have few indices in common, and each part again. A part of at most plan.pieceSize
// tensors is merged one tensor after the other; that is improved later. After the context has ended, the remaining parts are merged in any
// sequence. Time: about O(p · log² p) for p entries in the scopes of all tensors.
func dissect(n *network, plan dissection, rng *rand.PCG, pace *pace.Pace) (merges [][2]int, moves int64) {
	d := &dissector{
		network:     n,
		plan:        plan,
		splitter:    bisection{rng: rng, imbalance: plan.imbalance, pace: pace},
		netOf:       make([]int32, len(n.indexOf)),
		tensorCount: make([]int32, len(n.indexOf)),
	}

	// By index: netOf, its net in the hypergraph that is being made, is none yet; tensorCount is the number of tensors that have it.
	for i := range d.netOf {
		d.netOf[i] = none
	}
	for _, edge := range n.edges {
		for _, v := range edge {
			d.tensorCount[v]++
		}
	}

	// Split the part of all tensors.
	whole := make([]int32, len(n.edges))
	for t := range whole {
		whole[t] = int32(t)
	}
	if len(whole) > 0 {
		d.buildTree(whole)
	}
	return d.merges, d.splitter.movesSpent
}

// dissector is the state of one dissection.
type dissector struct {
	network     *network
	plan        dissection
	splitter    bisection
	netOf       []int32  // by index: its net in the part that is being split; none for indices that it does not have
	tensorCount []int32  // by index: the number of tensors that have it
	merges      [][2]int // so far, as in Tree.Merges
}

// buildTree merges the tensors of a part and returns the number of the resulting table. A part of at most pieceSize tensors is merged one
// tensor after the other, and so is any part after the context has ended. A larger part is split into two sides; buildTree merges each
// side, and then the tables of the two sides.
func (d *dissector) buildTree(part []int32) int {
	isSmall := len(part) <= max(d.plan.pieceSize, 1)
	if isSmall || d.splitter.pace.Over(int64(len(part))) {
		table := int(part[0])
		for _, t := range part[1:] {
			table = d.merge(table, int(t))
		}
		return table
	}

	var sides [2][]int32
	for i, side := range d.splitter.split(d.partHypergraph(part)) {
		sides[side] = append(sides[side], part[i])
	}
	if len(sides[0]) == 0 || len(sides[1]) == 0 {
		sides = [2][]int32{part[:len(part)/2], part[len(part)/2:]} // the context has ended: any split will do
	}

	a := d.buildTree(sides[0])
	return d.merge(a, d.buildTree(sides[1]))
}

// merge records the merge of two tables and returns the number of the result. Results are numbered after the tensors.
func (d *dissector) merge(a, b int) int {
	d.merges = append(d.merges, [2]int{a, b})
	return len(d.network.edges) + len(d.merges) - 1
}

// partHypergraph returns a hypergraph whose vertices are the given tensors, each of weight 1. Its nets are the indices that two or more of
// the tensors have; a net lists the vertices with the index. The cost of a net is log2 of the dimension of its index. It is multiplied by
// openCost if tensors outside the part have the index, too: then an earlier split has cut it.
func (d *dissector) partHypergraph(tensors []int32) *hypergraph {
	part := &hypergraph{weight: make([]int64, len(tensors))}
	indexOf := d.addNets(part, tensors)

	// Drop nets with one vertex, since no split cuts them, and nets without cost.
	kept := part.nets[:0]
	for net, index := range indexOf {
		vertices := part.nets[net]
		cost := d.network.log2DimOf(index)
		isOpen := int(d.tensorCount[index]) > len(vertices)
		if isOpen {
			cost = cost * d.plan.openCost >> fractionBits // openCost is in fixed point
		}
		if len(vertices) > 1 && cost > 0 {
			kept = append(kept, vertices)
			part.cost = append(part.cost, cost)
		}
	}
	part.nets = kept
	part.linkNets()
	return part
}

// addNets adds the given tensors as vertices of weight 1 to part, and a net for every index of them, which lists the vertices with the
// index. It returns by net its index.
func (d *dissector) addNets(part *hypergraph, tensors []int32) (indexOf []int32) {
	for i, t := range tensors {
		part.weight[i] = 1
		for _, index := range d.network.edges[t] {
			if d.netOf[index] == none {
				d.netOf[index] = int32(len(part.nets))
				part.nets = append(part.nets, nil)
				indexOf = append(indexOf, index)
			}
			net := d.netOf[index]
			part.nets[net] = append(part.nets[net], int32(i))
		}
		d.splitter.movesSpent += int64(32 * len(d.network.edges[t])) // 32 elementary operations for each index
	}
	for _, index := range indexOf {
		d.netOf[index] = none // for the next call
	}
	return indexOf
}
