package lower

// Layout: which tables over which indices a network is, before anything is copied.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// raw is a table of the network as it is stored there.
// Its modes are nodes: legs, and hidden indices of the tensors.
type raw struct {
	nodes []int
	dims  []int // of the stored data
	data  []float64
	exp   []int64 // entry k is data[k]·2^exp[k]; nil: data[k]. Of wide layouts only
	// maps[k]: matrix (nodes[k], the mode in data) yet to be applied along
	// mode k, nil for none; nil when all are.
	maps   []*raw
	matrix bool // rank × dimension, rows the terms of a CP tensor
	gone   bool // absorbed into another table

	rounded bool // sumproduct.Table.Rounded
	waiting bool // to be looked at, in support
}

// layout is a network as raw tables. Nodes are the legs first,
// then the hidden indices of the links, then the cores' ones, each in their order.
type layout struct {
	dims     []int // per node
	parent   []int // union-find: nodes that are one index
	tables   []*raw
	scale    scaled.Number
	number   []int    // per node that is its own root: index number, −1 where no table has it
	count    int      // indices
	legs     int      // nodes below are legs
	hidden   []int    // per link: its hidden index, if it is in CP form
	matrices bool     // some table is a matrix
	alive    [][]bool // per root: values not yet excluded; nil: all
	zero     bool     // Z is 0
	pace     *pace.Pace
	wide     bool    // every entry is exact, at any size
	counters []int   // nodes whose values the variables decide
	chains   *chains // nil: CP tensors are stars
	unfit    string  // why the entries are not all there in float64; empty where they are

	ints   arena.Slab[int]
	scopes arena.Slab[int] // of the tables made of the layout
	raws   arena.Slab[raw]
	hit    []bool // of hits
}

// lay splits every tensor of net into raw tables. The numbering of the indices depends on the
// forms, shapes and identities of the tensors only, never on entries, so that an order stays good
// under evidence.
//
// A wide layout has every entry of net as it is, in tables with exponents where that takes some:
// chains count without joining states, and maps stay tables of their own. One that is not wide may
// be unfit.
func lay(ctx context.Context, net *btn.Network, wide bool, c *chains) (*layout, error) {
	l, err := layLinks(ctx, net, wide)
	if err != nil {
		return nil, err
	}
	l.chains = c
	for c, k := range net.Cores {
		if err := l.add("core", c, k.Legs, k.T); err != nil {
			return nil, err
		}
	}

	if l.pace.Over(0) {
		return nil, l.pace.Err()
	}

	if !wide {
		l.absorb()
	}
	l.assign()
	if !l.zero {
		l.applyMaps()
		l.support()
	}
	return l, l.pace.Err()
}

// layLinks is a layout of the links of net, before its cores are added.
func layLinks(ctx context.Context, net *btn.Network, wide bool) (*layout, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := net.Validate(); err != nil {
		return nil, err
	}

	nodes := len(net.Dims) + len(net.Links)   // most networks have no more
	tables := len(net.Links) + len(net.Cores) // nor of these
	l := &layout{
		dims:   append(make([]int, 0, nodes), net.Dims...),
		parent: make([]int, len(net.Dims), nodes),
		legs:   len(net.Dims),
		tables: make([]*raw, 0, tables),
		hidden: make([]int, 0, len(net.Links)),
		scale:  net.Scale,
		zero:   net.Scale.IsZero(),
		pace:   pace.New(ctx),
		wide:   wide,
	}
	for i := range l.parent {
		l.parent[i] = i
	}

	for j, k := range net.Links {
		l.hidden = append(l.hidden, len(l.parent)) // the first node that addCP makes
		first := len(l.tables)
		if err := l.add("link", j, k.Legs, k.T); err != nil {
			return nil, err
		}
		if len(l.tables) > first && slices.Contains(net.Rounded, j) {
			l.tables[first].rounded = true // the weights
		}
	}
	return l, nil
}

// tableWork is the cost of a table beside its entries, in operations on them.
const tableWork = 16

// add writes a tensor as raw tables.
func (l *layout) add(what string, at int, legs []int, t tensor.Tensor) error {
	if l.pace.Over(int64(tableWork + len(legs))) {
		return l.pace.Err()
	}
	switch t := t.(type) {
	case *tensor.Dense:
		l.table(legs, raw{dims: t.Shape, data: t.Data})
	case *tensor.CP:
		if what != "core" || l.chains == nil || !l.addUnsigned(at, legs, t) {
			l.addCP(legs, t)
		}
	case *tensor.Symmetric:
		one := tensor.SymmetryRankOne{Alpha: 1, S: t.Values}
		return l.addSymmetric(what, at, legs, t.Shape, t.Levels, []tensor.SymmetryRankOne{one})
	case *tensor.SymmetryCP:
		return l.addSymmetric(what, at, legs, t.Shape, t.Levels, t.Terms)
	}
	return nil
}

// addSymmetric writes a tensor that is a sum of symmetric terms times vectors as a chain.
func (l *layout) addSymmetric(
	what string, at int, legs, dims []int, levels countspace.Levels, terms []tensor.SymmetryRankOne,
) error {
	if len(terms) == 0 {
		l.zero = true
		return nil
	}
	if l.wide {
		return l.addCounters(what, at, legs, dims, levels, terms)
	}
	return l.addChain(what, at, legs, dims, levels, terms)
}

// addCP makes a star: one hidden index over the terms with the weights, and a matrix per leg.
// A leg whose vectors are the identity is the hidden index itself.
// Source: P. Savický and J. Vomlel,
// Exploiting tensor rank-one decomposition in probabilistic inference (2007).
func (l *layout) addCP(legs []int, t *tensor.CP) {
	rank := len(t.Weights)
	hidden := l.node(rank)
	if rank == 0 {
		l.zero = true
		return
	}
	l.table([]int{hidden}, raw{dims: l.ints.Copy([]int{rank}), data: t.Weights})
	for k, leg := range legs {
		if v := t.Vectors[k]; v == nil {
			l.parent[l.find(leg)] = l.find(hidden)
		} else {
			l.table([]int{hidden, leg}, raw{
				dims:   l.ints.Copy([]int{rank, t.Shape[k]}),
				data:   v,
				matrix: true,
			})
			l.matrices = true
		}
	}
}

// node makes an index and returns its number.
func (l *layout) node(dim int) int {
	l.dims = append(l.dims, max(dim, 1))
	l.parent = append(l.parent, len(l.parent))
	return len(l.parent) - 1
}

// table adds a raw table over nodes.
func (l *layout) table(nodes []int, r raw) {
	own := &l.raws.Make(1)[0]
	*own = r
	own.nodes = l.ints.Copy(nodes)
	l.tables = append(l.tables, own)
}

// find returns the root of a node: the one that stands for all nodes of its index.
func (l *layout) find(v int) int {
	for l.parent[v] != v {
		l.parent[v] = l.parent[l.parent[v]]
		v = l.parent[v]
	}
	return v
}

// absorb removes legs that are nothing but a matrix between two tensors: where a leg joins the
// matrix of a CP tensor of rank at most the leg's dimension and one other table, that table gets
// the matrix applied along the mode. A reparameterised network with its maps thus becomes a network
// over the original variables again.
func (l *layout) absorb() {
	if !l.matrices {
		return
	}
	for _, u := range l.uses() {
		if l.pace.Over(tableWork) {
			return
		}
		if len(u) != 2 || u[0].t == u[1].t {
			continue
		}
		if !l.absorbInto(u[1], u[0].t) {
			l.absorbInto(u[0], u[1].t)
		}
	}
}

// use is a mode of a table.
type use struct {
	t    *raw
	mode int
}

// uses lists the modes that have a leg, for every leg that is an index of its own.
func (l *layout) uses() [][]use {
	merged := make([]bool, len(l.parent)) // roots with more than one node
	for v := range l.parent {
		if r := l.find(v); r != v {
			merged[r] = true
		}
	}

	uses := make([][]use, l.legs)
	for _, t := range l.tables {
		for k, v := range t.nodes {
			if v < l.legs && l.parent[v] == v && !merged[v] {
				uses[v] = append(uses[v], use{t, k})
			}
		}
	}

	return uses
}

// absorbInto has matrix m applied along a mode of another table, if it is one that may be:
// then the mode is the hidden index of m, which is gone.
func (l *layout) absorbInto(other use, m *raw) bool {
	if !m.matrix || m.dims[0] > m.dims[1] || m.maps != nil || l.has(other.t, m.nodes[0]) {
		return false
	}
	if other.t.maps == nil {
		other.t.maps = make([]*raw, len(other.t.nodes))
	}
	other.t.maps[other.mode] = m
	other.t.nodes[other.mode] = m.nodes[0]
	m.gone = true
	return true
}

// has reports whether a node's index is in t.
func (l *layout) has(t *raw, node int) bool {
	for _, v := range t.nodes {
		if l.find(v) == l.find(node) {
			return true
		}
	}
	return false
}

// assign numbers the indices that tables have:
// hidden ones of links, hidden ones of cores, then legs.
func (l *layout) assign() {
	used := make([]bool, len(l.parent))
	for _, t := range l.tables {
		if !t.gone {
			for _, v := range t.nodes {
				used[l.find(v)] = true
			}
		}
	}

	l.number = make([]int, len(l.parent))
	for i := range l.number {
		l.number[i] = -1
	}

	// Hidden nodes first, legs last.
	for i := range l.parent {
		v := (i + l.legs) % len(l.parent)
		if r := l.find(v); used[r] && l.number[r] < 0 {
			l.number[r] = l.count
			l.count++
		}
	}
}
