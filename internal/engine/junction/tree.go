// Package junction contracts a network that is asked again and again, each time under other evidence. The network without evidence is
// compiled once, to a tree of products of two tables. Evidence is a weight on every value of a variable: a run computes only the tables
// that differ from those without evidence, for eight queries at a time, and marginals by one pass back.
//
// The numbers of a query have the same bits whichever queries it runs beside.
package junction

import (
	"context"
	"sync"

	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Lanes is the number of queries that a run computes at a time: one register of the loops.
const Lanes = kernel.Columns

// Tree is a network along a contraction tree. An excluded value has weight 0 and keeps its place, so that no shape depends on a query. It
// does not change, and may be used by several goroutines.
type Tree struct {
	dims     []int // by index: the number of its values
	leaves   []leaf
	merges   []merge       // in an order in which both inputs exist before a merge
	products []products    // by merge
	weights  []weights     // by variable
	scale    scaled.Number // a factor of Z that is in no table
	base     []table       // all tables without evidence: the leaves, then the outputs of the merges

	mu   sync.Mutex
	free []*run // finished runs, whose memory the next ones use
}

// merge is a product of two tables, from which indices are summed that no other table has. Tables are numbered: the leaves first, then the
// outputs of the merges (outputOf).
type merge struct {
	left, right int     // numbers of the two tables
	flops       float64 // for one query: of the product, and of each of the two derivatives
}

// outputOf returns the number of the table that merge k makes: the leaves come first.
func (t *Tree) outputOf(k int) int { return len(t.leaves) + k }

// products are the three products of a merge out = Σ left·right.
type products struct {
	forth   product // out ← Σ left·right
	toLeft  product // ∂Z/∂left ← Σ ∂Z/∂out · right
	toRight product // ∂Z/∂right ← Σ ∂Z/∂out · left
}

// Shape returns the hypergraph of the leaves of net's tree, over which a contraction tree for Compile is made: one edge for each leaf.
// ok is false if net is not for this engine: Z is 0 by the zeros of net, entries of a table are further apart than 2^500, an entry is below
// 0, net has more than 2^14 tables, or it is invalid. Other engines then contract the network, or report the error. Cost: that of
// lower.NewTemplate.
func Shape(net *btn.Network) (h contractionorder.Hypergraph, ok bool) {
	t, ok := newLeavesOnly(net)
	if !ok {
		return contractionorder.Hypergraph{}, false
	}
	return t.shape(), true
}

// Compile makes the tree of a network along a contraction tree over its Shape, and computes all tables without the network's own evidence.
// ok is false if Shape's is, if tree is not a contraction tree over Shape, or if digits may be lost even without evidence.
//
// Cost: that of Shape, and the flops of a query without marginals (Price).
func Compile(net *btn.Network, tree contractionorder.Tree) (compiled *Tree, ok bool) {
	t, scopes, ok := layOutTree(net, tree)
	if !ok {
		return nil, false
	}
	t.addProducts(scopes)
	return t, t.computeBase(net)
}

// layOutTree returns a tree with leaves and merges, but without products and tables, and the scopes of all its tables. The merges are those
// of tree with the best root (reroot). ok is false if Shape's is, or if tree is not a contraction tree over Shape.
func layOutTree(net *btn.Network, tree contractionorder.Tree) (t *Tree, scopes [][]int, ok bool) {
	t, ok = newLeavesOnly(net)
	if !ok || tree.Leaves != len(t.leaves) || tree.Validate() != nil {
		return nil, nil, false
	}
	h := t.shape()
	_, flops := planMerges(h, tree) // flops: of the merge that makes each table; they decide the root
	p, _ := planMerges(h, reroot(tree, flops, t.leaves))
	t.leaves = append(t.leaves, leaf{data: []float64{1}}) // the table of the entry 1, merges with which sum an index out (planMerges)
	t.merges = p.merges
	return t, p.scopes, true
}

// MaxLeaves is the largest number of leaves of a tree. Each takes some 1,000 bytes in addition to its entries.
const MaxLeaves = 1 << 14

// newLeavesOnly returns a tree that has its leaves and the weights of its variables, and no merges. ok is false as in Shape.
func newLeavesOnly(net *btn.Network) (t *Tree, ok bool) {
	template, ok := lower.NewTemplate(context.Background(), net)
	if !ok {
		return nil, false
	}
	t = &Tree{dims: template.Dims, scale: template.Scale}
	if !t.addLeaves(template) {
		return nil, false
	}
	t.placeWeights(template)
	return t, len(t.leaves) > 0 && len(t.leaves) <= MaxLeaves
}

// shape returns the hypergraph of the leaves: edge k has the indices of leaf k.
func (t *Tree) shape() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: t.dims}
	for k := range t.leaves {
		h.Edges = append(h.Edges, t.leaves[k].scope)
	}
	return h
}

// Price returns the cost of a query along a contraction tree over Shape, without marginals and with all marginals: the flops of a run that
// computes every table, and the bytes of a tree and a run. Another root of the tree changes only the cost of the last merge.
func Price(h contractionorder.Hypergraph, tree contractionorder.Tree) (withoutMarginals, withMarginals query.Cost) {
	p, _ := planMerges(h, tree) // not read: the flops of each merge; p has their sum
	// Bytes: the tables of a tree and of a run, at 8 bytes an entry.
	cost := query.Cost{Flops: p.flops, Log2Table: p.log2Largest, Width: p.width, Slices: 1, Bytes: 2 * 8 * p.entries}
	return cost, WithMarginals(cost)
}

// WithMarginals returns the cost of a query with marginals from its cost without. Each merge takes three products instead of one: its own,
// and the derivatives by its two tables.
func WithMarginals(cost query.Cost) query.Cost {
	cost.Flops *= 3
	cost.Bytes *= 1.5
	return cost
}

// planMerges plans the merges of a tree over the tables of h, and returns the flops of each merge of tree, by its output; those of the
// leaves are 0.
//
// It adds one further table, of the single entry 1. A table with an index that no other has is first merged with that table, which sums
// the index out. A single table is, too, so that there is a merge.
func planMerges(h contractionorder.Hypergraph, tree contractionorder.Tree) (p *planner, flops []float64) {
	leaves := len(h.Edges)
	p = newPlanner(h.Dims, h.Edges)
	one := leaves // the number of the table of the single entry 1
	p.add(nil)
	planned := make([]int, leaves, leaves+len(tree.Merges)) // by table of tree: its number in the plan
	for k := range leaves {
		planned[k] = k
		if p.hasPrivateIndex(k) || leaves == 1 {
			planned[k] = p.merge(k, one)
		}
	}
	flops = make([]float64, leaves)
	for _, m := range tree.Merges {
		flopsBefore := p.flops
		planned = append(planned, p.merge(planned[m[0]], planned[m[1]]))
		flops = append(flops, p.flops-flopsBefore)
	}
	return p, flops
}

// addProducts sets the three products of every merge. scopes has the indices of every table, those of the output of merge k at outputOf(k).
func (t *Tree) addProducts(scopes [][]int) {
	t.products = make([]products, len(t.merges))
	for k, m := range t.merges {
		left, right, out := scopes[m.left], scopes[m.right], scopes[t.outputOf(k)]
		p := &t.products[k]
		p.forth.dims, p.forth.out, p.forth.a, p.forth.b = t.dims, out, left, right
		p.toLeft.dims, p.toLeft.out, p.toLeft.a, p.toLeft.b = t.dims, left, out, right
		p.toRight.dims, p.toRight.out, p.toRight.a, p.toRight.b = t.dims, right, out, left
	}
}
