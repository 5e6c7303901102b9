package trees

// The network form of a hypergraph: wires, and copy tensors where more than two tables have an index.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// form is a hypergraph without its unary tables.
type form struct {
	h      contractionorder.Hypergraph
	hosts  []int   // by table, as Plan.Hosts
	tables [][]int // by index: those that have it, unary ones excepted
	left   []int   // tables without a host
}

// newForm finds a host for every table of one index, if there is one.
func newForm(h contractionorder.Hypergraph) *form {
	f := &form{h: h, hosts: make([]int, len(h.Edges)), tables: make([][]int, len(h.Dims))}
	best := slices.Repeat([]int{-1}, len(h.Dims))
	for t, e := range h.Edges {
		f.hosts[t] = -1
		for _, i := range e {
			if b := best[i]; b < 0 || len(h.Edges[b]) == 1 && len(e) > 1 {
				best[i] = t
			}
		}
	}
	for t, e := range h.Edges {
		if len(e) == 1 && best[e[0]] != t {
			f.hosts[t] = best[e[0]]
			continue
		}
		f.left = append(f.left, t)
		for _, i := range e {
			f.tables[i] = append(f.tables[i], t)
		}
	}
	return f
}

// plan starts a plan of the form without copies, wires and merges.
func (f *form) plan() Plan { return Plan{Tables: len(f.h.Edges), Hosts: f.hosts} }

// chains joins the tables of every index by a chain of copy tensors, sorted by rank of the table's other indices: the order of the wires
// that cross the chain.
func (f *form) chains(rank []int) Plan {
	p := f.plan()
	for i, tables := range f.tables {
		key := func(t int) int {
			least := len(rank)
			for _, j := range f.h.Edges[t] {
				if j != i {
					least = min(least, rank[j])
				}
			}
			return least
		}
		sorted := slices.Clone(tables)
		slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(key(a), key(b)) })
		p.chain(i, sorted)
	}
	return p
}

// chain adds the wires of one index whose tables come in the given sequence.
func (p *Plan) chain(i int, tables []int) {
	if len(tables) == 0 {
		return
	}
	if len(tables) == 1 {
		p.Wires = append(p.Wires, [3]int{i, tables[0], -1})
		return
	}
	end := tables[0]
	for k := 1; k < len(tables)-1; k++ {
		c := p.copyOf(i)
		p.Wires = append(p.Wires, [3]int{i, end, c}, [3]int{i, tables[k], c})
		end = c
	}
	p.Wires = append(p.Wires, [3]int{i, end, tables[len(tables)-1]})
}

// copyOf adds a copy tensor of an index.
func (p *Plan) copyOf(i int) int {
	p.Copies = append(p.Copies, i)
	return p.Tables + len(p.Copies) - 1
}

// shape is the hypergraph without the tables that have hosts.
func (f *form) shape() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: f.h.Dims}
	for _, t := range f.left {
		h.Edges = append(h.Edges, f.h.Edges[t])
	}
	return h
}

// along joins the tables of every index by a tree of copy tensors that is the part of a contraction tree of shape() in which the index
// occurs: every merge takes in the copy tensors between its operands, and no wire is ever fused with another that leads to a copy tensor.
func (f *form) along(t contractionorder.Tree) Plan {
	p := f.plan()
	// ends: by table of the tree, index → node with its open wire
	ends := make([]map[int]int, t.Leaves+len(t.Merges))
	seen := make([]int, len(f.h.Dims)) // wires of the index so far
	for k, table := range f.left {
		ends[k] = make(map[int]int)
		for _, i := range f.h.Edges[table] {
			if len(f.tables[i]) == 1 {
				p.Wires = append(p.Wires, [3]int{i, table, -1})
			} else {
				ends[k][i] = table
			}
		}
	}
	for k, m := range t.Merges {
		a, b := ends[m[0]], ends[m[1]]
		if len(a) < len(b) {
			a, b = b, a
		}
		common := make([]int, 0, len(b))
		for i, end := range b {
			if _, both := a[i]; both {
				common = append(common, i)
			} else {
				a[i] = end
			}
		}
		slices.Sort(common)
		for _, i := range common {
			if seen[i]++; seen[i] == len(f.tables[i])-1 {
				p.Wires = append(p.Wires, [3]int{i, a[i], b[i]})
				delete(a, i)
				continue
			}
			c := p.copyOf(i)
			p.Wires = append(p.Wires, [3]int{i, a[i], c}, [3]int{i, b[i], c})
			a[i] = c
		}
		ends[m[0]] = nil
		ends[m[1]] = nil
		ends[t.Leaves+k] = a
	}
	node := func(v int) int {
		if v < t.Leaves {
			return f.left[v]
		}
		return p.Tables + len(p.Copies) + v - t.Leaves
	}
	for _, m := range t.Merges {
		p.Merges = append(p.Merges, [2]int{node(m[0]), node(m[1])})
	}
	return p
}
