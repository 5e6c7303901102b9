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
	dims     []int
	leaves   []leaf
	merges   []merge
	products []products // by merge
	weights  []weights  // by variable
	scale    scaled.Number
	base     []table // by table: without evidence

	mu   sync.Mutex
	free []*run // that have ended
}

// merge is a product of two tables, from which indices are summed that no other table has. Table k of a tree is leaf k, or the output of
// merge k − len(leaves).
type merge struct {
	left, right int
	flops       float64 // in one lane: of the product forth, and of each of those back
}

// products are the three products of a merge.
type products struct {
	forth   product // out ← Σ left·right
	toLeft  product // derivative by left ← Σ derivative by out · right
	toRight product // derivative by right ← Σ derivative by out · left
}

// Shape returns the hypergraph of the tables that a tree of net has as leaves: a contraction tree over it is one for Compile. ok is false
// if net is not for this engine: Z is 0 by the zeros of net, entries of a table are further apart than 2^500, an entry is below 0, net has
// more than 2^14 tables, or it is invalid. Other engines then contract the network, or report the error. Cost: that of lower.Apart.
func Shape(net *btn.Network) (h contractionorder.Hypergraph, ok bool) {
	t, ok := begin(net)
	if !ok {
		return contractionorder.Hypergraph{}, false
	}
	return t.shape(), true
}

// Compile makes the tree of a network along a contraction tree over its Shape, without the network's own evidence, and computes its
// tables. ok is false if Shape's is, if tree is not one over Shape, or if digits may be lost even without evidence.
//
// Cost: that of Shape, and the flops of Cost(false).
func Compile(net *btn.Network, tree contractionorder.Tree) (compiled *Tree, ok bool) {
	t, scopes, ok := lay(net, tree)
	if !ok {
		return nil, false
	}
	t.connect(scopes)
	return t, t.calibrate(net)
}

// lay returns a tree with leaves and merges, but without products and tables, and the scopes of all its tables. ok is false if tree is not
// one over the Shape of net.
func lay(net *btn.Network, tree contractionorder.Tree) (t *Tree, scopes [][]int, ok bool) {
	t, ok = begin(net)
	if !ok || tree.Leaves != len(t.leaves) || tree.Validate() != nil {
		return nil, nil, false
	}
	h := t.shape()
	_, price := follow(h, tree)
	p, _ := follow(h, reroot(tree, price, t.leaves))
	t.leaves = append(t.leaves, leaf{data: []float64{1}})
	t.merges = p.merges
	return t, p.scopes, true
}

// MostLeaves is the largest number of leaves of a tree. Each takes some 1,000 bytes in addition to its entries.
const MostLeaves = 1 << 14

// begin returns a tree that has only its leaves. ok is false as in Shape.
func begin(net *btn.Network) (t *Tree, ok bool) {
	apart, ok := lower.Apart(context.Background(), net)
	if !ok {
		return nil, false
	}
	t = &Tree{dims: apart.Dims, scale: apart.Scale}
	if !t.addLeaves(apart) {
		return nil, false
	}
	t.placeWeights(apart)
	return t, len(t.leaves) > 0 && len(t.leaves) <= MostLeaves
}

// shape returns the hypergraph of the leaves.
func (t *Tree) shape() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: t.dims}
	for k := range t.leaves {
		h.Edges = append(h.Edges, t.leaves[k].scope)
	}
	return h
}

// Price returns the cost of a query along a contraction tree over Shape: the flops of a run that computes every table, with marginals
// also of its pass back, and the bytes of a tree and a run. The root of the tree changes no more of it than its last merge.
func Price(h contractionorder.Hypergraph, tree contractionorder.Tree) (forth, both query.Cost) {
	p, _ := follow(h, tree)
	forth = query.Cost{Flops: p.flops, Log2Table: p.largest, Width: p.width, Slices: 1, Bytes: 2 * 8 * p.entries}
	return forth, WithMarginals(forth)
}

// WithMarginals returns the cost of a query with marginals, from its cost without: for each merge one product forth, and one back to each
// of its two tables.
func WithMarginals(forth query.Cost) query.Cost {
	forth.Flops *= 3
	forth.Bytes *= 1.5
	return forth
}

// follow lists the merges of a tree over the tables of h, and one further table of the single entry 1. A table with an index that no other
// has is merged with that table first, which sums the index out. price has the flops of each merge of tree, by table of tree.
func follow(h contractionorder.Hypergraph, tree contractionorder.Tree) (p *planner, price []float64) {
	tables := h.Edges
	p = newPlanner(h.Dims, tables)
	place := make([]int, len(tables), len(tables)+len(tree.Merges)) // by table of tree: its number in p
	one := len(tables)
	p.add(nil)
	for k := range tables {
		place[k] = k
		if p.hasOwn(k) || len(tables) == 1 {
			place[k] = p.merge(k, one)
		}
	}
	price = make([]float64, len(tables))
	for _, m := range tree.Merges {
		before := p.flops
		place = append(place, p.merge(place[m[0]], place[m[1]]))
		price = append(price, p.flops-before)
	}
	return p, price
}

// connect makes the products of the merges.
func (t *Tree) connect(scopes [][]int) {
	t.products = make([]products, len(t.merges))
	for k, m := range t.merges {
		left, right, out := scopes[m.left], scopes[m.right], scopes[len(t.leaves)+k]
		p := &t.products[k]
		p.forth.dims, p.forth.out, p.forth.a, p.forth.b = t.dims, out, left, right
		p.toLeft.dims, p.toLeft.out, p.toLeft.a, p.toLeft.b = t.dims, left, out, right
		p.toRight.dims, p.toRight.out, p.toRight.a, p.toRight.b = t.dims, right, out, left
	}
}
