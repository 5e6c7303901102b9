package junction

// What a query costs before a tree is made.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Prices are the flops of the merges of a tree, by which derivatives have their price.
type Prices struct {
	leaf       []int     // by variable: the leaf that its weights are multiplied into, −1 if it has none
	parent     []int     // by table: the output of the merge that has the table as an input; −1 for the root
	flops      []float64 // by table: the flops of the merge that makes it, 0 for a leaf
	totalFlops float64   // the flops of all merges
}

// NewPrices returns the prices of the tree that Compile makes. ok is false if net or tree does not fit, as in Compile; digits that Compile
// would lose are not noticed. Cost: that of Shape.
//
// Tables are numbered: the leaves first, then the outputs of the merges in their sequence.
func NewPrices(net *btn.Network, tree contractionorder.Tree) (prices *Prices, ok bool) {
	t, scopes, ok := layOutTree(net, tree)
	if !ok {
		return nil, false
	}
	tables := len(scopes)
	p := &Prices{parent: make([]int, tables), flops: make([]float64, tables)}
	for _, w := range t.weights {
		p.leaf = append(p.leaf, w.leaf) // −1 if the variable has one value
	}
	for table := range p.parent {
		p.parent[table] = -1
	}
	for k, m := range t.merges {
		output := t.outputOf(k)
		p.parent[m.left], p.parent[m.right], p.flops[output] = output, output, m.flops
		p.totalFlops += m.flops
	}
	return p, true
}

// FlopsWithMarginals returns an upper bound for the flops of a query with the marginals of the targets: those of all tables, and those of
// the derivatives by the tables between the root and the leaves that have the targets' weights. A derivative costs as much as the merge
// above its table.
func (p *Prices) FlopsWithMarginals(targets []int) float64 {
	flops := p.totalFlops
	isCounted := make([]bool, len(p.parent))
	for _, v := range targets {
		for table := p.leaf[v]; table >= 0 && !isCounted[table]; table = p.parent[table] {
			isCounted[table] = true
			if parent := p.parent[table]; parent >= 0 {
				flops += p.flops[parent]
			}
		}
	}
	return flops
}
