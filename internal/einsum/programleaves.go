package einsum

// The leaves of a program: tables of the network, and which of them has a variable's weights.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/arena"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weightsOf lists the weights of the variables, and by table of the layout whose they are, −1 for none.
func (p *Program) weightsOf(l *layout, net *btn.Network) []int {
	of := make([]int, len(l.tables))
	hidden := map[int]int{}
	for v, at := range net.Variables {
		p.weights = append(p.weights, weights{own: weightsAt(net, at.Link), link: at.Link, leaf: noTable})
		hidden[l.hidden[at.Link]] = v
	}
	for t, table := range l.tables {
		of[t] = noTable
		if v, ok := hidden[table.nodes0()]; ok && len(table.nodes) == 1 {
			if same(p.weights[v].own, table.data) {
				of[t] = v
			}
		}
	}
	return of
}

// weightsAt returns the weights that a link in CP form has.
func weightsAt(net *btn.Network, link int) []float64 { return net.Links[link].T.(*tensor.CP).Weights }

// same reports whether a and b are one piece of memory.
func same(a, b []float64) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// nodes0 is the first node of a table, −1 where it has none.
func (t *raw) nodes0() int {
	if len(t.nodes) == 0 {
		return -1
	}
	return t.nodes[0]
}

// addLeaves copies the tables that are no weights. It says no where the entries of one are too far apart, and where one is below 0:
// terms may cancel then, and nobody would count it.
func (p *Program) addLeaves(l *layout, of []int) bool {
	var floats arena.Slab[float64]
	for t, table := range l.tables {
		if table.gone || of[t] >= 0 {
			continue
		}
		data := restrict(l, table, table.data, floats.Make)
		top, low, negative := scaled.Extent(data)
		if negative || top >= 1024 || top-low > spanLimit {
			return false
		}
		for _, x := range data {
			p.above = p.above && x > 0
		}
		n := scaled.Normalise(data)
		p.scale = p.scale.Mul(n)
		scope := l.scope(table, p.dims)
		if len(scope) == 0 {
			p.scale = p.scale.Mul(scaled.FromFloat(data[0]))
			continue
		}
		p.leaves = append(p.leaves, leaf{scope: scope, data: data, low: low - int(n.Exp)})
	}
	return true
}

// host chooses for the weights of every variable the smallest table that has it; a table of ones where there is none.
func (p *Program) host(l *layout) {
	best := slices.Repeat([]int{noTable}, len(p.dims))
	for t, leaf := range p.leaves {
		for _, i := range leaf.scope {
			if best[i] < 0 || len(leaf.data) < len(p.leaves[best[i]].data) {
				best[i] = t
			}
		}
	}
	for v := range p.weights {
		w := &p.weights[v]
		root := l.find(l.hidden[w.link])
		i := l.number[root]
		w.dim = p.dims[i]
		if !l.whole(root) {
			w.values = l.values(root)
		}
		if w.dim == 1 {
			continue
		}
		if best[i] < 0 {
			best[i] = len(p.leaves)
			p.leaves = append(p.leaves, leaf{scope: []int{i}, data: slices.Repeat([]float64{1}, w.dim)})
		}
		w.leaf = best[i]
		host := &p.leaves[w.leaf]
		host.hosted = append(host.hosted, v)
		w.inner = p.inner(host.scope, i)
	}
}

// weighAll makes the leaves with the weights of the network as it is.
func (p *Program) weighAll(net *btn.Network) {
	w := newSpace(p)
	for t := range p.leaves {
		w.exp = 0
		if l := &p.leaves[t]; len(l.hosted) > 0 && p.weigh(net, w, t) {
			l.ready = &weighed{data: w.data[t], low: w.low[t], exp: w.exp, shift: w.shift[t]}
		}
	}
}

// inner is the number of entries of a table between one value of index i and the next.
func (p *Program) inner(scope []int, i int) int {
	inner := 1
	for a := len(scope) - 1; scope[a] != i; a-- {
		inner *= p.dims[scope[a]]
	}
	return inner
}

const (
	spanLimit = 500  // tables whose entries are further apart than 2^spanLimit are left to the general way
	deepest   = -960 // products of entries stay above 2^deepest, or the general way is taken
)
