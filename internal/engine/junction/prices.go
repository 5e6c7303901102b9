package junction

// What a query costs before a tree is made.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Prices are the flops of the merges of a tree, by which derivatives have their price.
type Prices struct {
	leaf   []int     // by variable: the table that has its weights, −1 for none
	parent []int     // by table: the merge that takes it, as a table; −1 for the last
	flops  []float64 // by table: of the merge that makes it, 0 for a leaf
	all    float64   // of all merges
}

// NewPrices returns the prices of the tree that Compile makes. ok is false if Compile makes none, unless the reason is lost digits. Cost:
// that of Shape.
func NewPrices(net *btn.Network, tree contractionorder.Tree) (prices *Prices, ok bool) {
	t, scopes, ok := lay(net, tree)
	if !ok {
		return nil, false
	}
	p := &Prices{parent: make([]int, len(scopes)), flops: make([]float64, len(scopes))}
	for _, w := range t.weights {
		p.leaf = append(p.leaf, w.leaf)
	}
	for k := range p.parent {
		p.parent[k] = -1
	}
	for k, m := range t.merges {
		table := len(t.leaves) + k
		p.parent[m.left], p.parent[m.right], p.flops[table] = table, table, m.flops
		p.all += m.flops
	}
	return p, true
}

// Of returns the flops of a run that computes every table, and the derivatives on the way from the root to the targets: an upper bound for
// a query with the targets' marginals.
func (p *Prices) Of(targets []int) float64 {
	flops := p.all
	needed := make([]bool, len(p.parent))
	for _, v := range targets {
		for table := p.leaf[v]; table >= 0 && !needed[table]; table = p.parent[table] {
			needed[table] = true
			if up := p.parent[table]; up >= 0 {
				flops += p.flops[up]
			}
		}
	}
	return flops
}
