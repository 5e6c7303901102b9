package einsum

// The leaves of a program: tables of the network, and which of them has a variable's weights.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// addLeaves takes the tables that are no weights. It says no where the entries of one are too far apart, and where one is below 0:
// terms may cancel then, and nobody would count it.
func (p *Program) addLeaves(apart *lower.Template) bool {
	for _, table := range apart.Tables {
		data := table.Data
		top, low, negative := floats.Extent(data)
		if negative || top >= 1024 || top-low > spanLimit {
			return false
		}
		for _, x := range data {
			p.above = p.above && x > 0
		}
		n := floats.Normalise(data)
		p.scale = p.scale.Mul(n)
		if len(table.Scope) == 0 {
			p.scale = p.scale.Mul(scaled.FromFloat(data[0]))
			continue
		}
		p.leaves = append(p.leaves, leaf{scope: table.Scope, data: data, low: low - int(n.Exp)})
	}
	return true
}

// host chooses for the weights of every variable the smallest table that has it; a table of ones where there is none.
func (p *Program) host(apart *lower.Template) {
	best := slices.Repeat([]int{noTable}, len(p.dims))
	for t, leaf := range p.leaves {
		for _, i := range leaf.scope {
			if best[i] < 0 || len(leaf.data) < len(p.leaves[best[i]].data) {
				best[i] = t
			}
		}
	}
	for v, of := range apart.Weights {
		i := of.Index
		p.weights = append(p.weights, weights{own: of.Own, link: of.Link, values: of.Values, dim: p.dims[i], leaf: noTable})
		w := &p.weights[v]
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
		w.inner = inner(p.dims, host.scope, i)
	}
}

// weighAll makes the leaves with the weights of the network as it is.
func (p *Program) weighAll(net *btn.Network) {
	w := newSpace(p)
	for t := range p.leaves {
		w.exp = 0
		if l := &p.leaves[t]; len(l.hosted) > 0 && p.weigh(net, w, t) {
			l.ready = &weighed{data: w.Tables[t], low: w.depth[t].Low, exp: w.exp, shift: w.shift[t]}
		}
	}
}

const (
	spanLimit = 500  // tables whose entries are further apart than 2^spanLimit are left to the general way
	deepest   = -960 // products of entries stay above 2^deepest, or the general way is taken
)
