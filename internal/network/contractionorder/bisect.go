package contractionorder

// Trees by recursive bisection: nested dissection of the tensors.

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// dissection tells how a network is cut into parts.
type dissection struct {
	imbalance int64 // in 256ths: a part may be (1 + imbalance/256)/2 of the whole
	openCost  logs  // the cost of cutting an index that is already cut, relative to that of the first cut: 1<<16 for the same cost
	pieceSize int   // a part of so many tensors or fewer is not cut further
}

// dissect returns the merges of a tree over n and the number of moves that it took. It builds the tree from the top down: it splits the
// tensors into two parts that have few indices in common, and each part again. Within a small part the tensors are merged one after the
// other; the reconfiguration improves that later. After the pace has ended, the remaining parts are merged in any sequence. Time: about
// O(pins · log²).
func dissect(n *network, plan dissection, rng *rand.PCG, pace *pace.Pace) (merges [][2]int, moves int64) {
	d := &dissector{
		n:           n,
		plan:        plan,
		splitter:    bisection{rng: rng, imbalance: plan.imbalance, pace: pace},
		netOf:       make([]int32, len(n.indexOf)),
		tensorCount: make([]int32, len(n.indexOf)),
	}

	for i := range d.netOf {
		d.netOf[i] = none
	}

	for _, e := range n.edges {
		for _, v := range e {
			d.tensorCount[v]++
		}
	}

	all := make([]int32, len(n.edges))
	for t := range all {
		all[t] = int32(t)
	}
	if len(all) > 0 {
		d.treeOf(all)
	}
	return d.merges, d.splitter.moves
}

// dissector is the state of one dissection.
type dissector struct {
	n           *network
	plan        dissection
	splitter    bisection
	netOf       []int32  // by index: its net in the part that is being split; none for indices that it does not have
	tensorCount []int32  // by index: the number of tensors that have it
	merges      [][2]int // so far, as in Tree.Merges
}

// treeOf merges the tensors of a part and returns the number of the resulting table.
func (d *dissector) treeOf(part []int32) int {
	if len(part) <= max(d.plan.pieceSize, 1) || d.splitter.pace.Over(int64(len(part))) {
		table := int(part[0])
		for _, t := range part[1:] {
			table = d.merge(table, int(t))
		}
		return table
	}

	var sides [2][]int32
	for i, s := range d.splitter.split(d.partHypergraph(part)) {
		sides[s] = append(sides[s], part[i])
	}
	if len(sides[0]) == 0 || len(sides[1]) == 0 {
		sides = [2][]int32{part[:len(part)/2], part[len(part)/2:]} // the pace has ended: any split will do
	}

	a := d.treeOf(sides[0])
	return d.merge(a, d.treeOf(sides[1]))
}

// merge merges two tables and returns the number of the result.
func (d *dissector) merge(a, b int) int {
	d.merges = append(d.merges, [2]int{a, b})
	return len(d.n.edges) + len(d.merges) - 1
}

// partHypergraph returns a hypergraph whose vertices are the given tensors and whose nets are the indices that two or more of them have.
// The cost of a net is log2 of the dimension of its index. It is multiplied by openCost if other tensors have the index, too: then it is
// cut already.
func (d *dissector) partHypergraph(tensors []int32) *hypergraph {
	part := &hypergraph{weight: make([]int64, len(tensors))}
	var indexOf []int32 // by net
	for i, t := range tensors {
		part.weight[i] = 1
		for _, index := range d.n.edges[t] {
			if d.netOf[index] == none {
				d.netOf[index] = int32(len(part.nets))
				part.nets = append(part.nets, nil)
				indexOf = append(indexOf, index)
			}
			part.nets[d.netOf[index]] = append(part.nets[d.netOf[index]], int32(i))
		}
		d.splitter.moves += int64(32 * len(d.n.edges[t]))
	}

	// Nets with one vertex are dropped, since no split cuts them.
	cuttable := part.nets[:0]
	for e, index := range indexOf {
		d.netOf[index] = none
		pins := part.nets[e]
		cost := d.n.log2DimOf(index)
		isOpen := int(d.tensorCount[index]) > len(pins)
		if isOpen {
			cost = cost * d.plan.openCost >> fraction
		}
		if len(pins) > 1 && cost > 0 {
			cuttable = append(cuttable, pins)
			part.cost = append(part.cost, cost)
		}
	}
	part.nets = cuttable
	part.linkNets()
	return part
}
