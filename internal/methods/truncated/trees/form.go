package trees

// The network form of a hypergraph: wires, and copy tensors where more than two tables have an index.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// form is a hypergraph whose tables of one index have hosts, so that they need no nodes.
type form struct {
	h        contractionorder.Hypergraph
	hosts    []int   // by table, as Plan.Hosts
	tablesOf [][]int // by index: the tables without a host that have it
	unhosted []int   // the tables without a host
}

// newForm finds a host for every table of one index. If no other table has the index, the table has no host.
func newForm(h contractionorder.Hypergraph) *form {
	f := &form{h: h, hosts: make([]int, len(h.Edges)), tablesOf: make([][]int, len(h.Dims))}
	// by index: its first table of two or more indices, or else its first table of one
	hostOf := slices.Repeat([]int{-1}, len(h.Dims))
	for t, e := range h.Edges {
		f.hosts[t] = -1
		for _, i := range e {
			if b := hostOf[i]; b < 0 || len(h.Edges[b]) == 1 && len(e) > 1 {
				hostOf[i] = t
			}
		}
	}
	for t, e := range h.Edges {
		if len(e) == 1 && hostOf[e[0]] != t {
			f.hosts[t] = hostOf[e[0]]
			continue
		}
		f.unhosted = append(f.unhosted, t)
		for _, i := range e {
			f.tablesOf[i] = append(f.tablesOf[i], t)
		}
	}
	return f
}

// emptyPlan returns a plan of the form without copies, wires and merges.
func (f *form) emptyPlan() Plan { return Plan{Tables: len(f.h.Edges), Hosts: f.hosts} }

// chainPlan returns a plan without merges, in which the tables of every index are joined by a chain of copy tensors. rank is a global
// order of the indices. Along a chain, tables are sorted by the lowest rank of their other indices, which are the wires that cross it.
func (f *form) chainPlan(rank []int) Plan {
	p := f.emptyPlan()
	for i, tables := range f.tablesOf {
		lowestOther := func(t int) int {
			lowest := len(rank)
			for _, j := range f.h.Edges[t] {
				if j != i {
					lowest = min(lowest, rank[j])
				}
			}
			return lowest
		}
		sorted := slices.Clone(tables)
		slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(lowestOther(a), lowestOther(b)) })
		p.addChain(i, sorted)
	}
	return p
}

// addChain adds the wires and copy tensors of index i, whose tables come in the given sequence. Two tables need no copy tensor, k tables
// need k − 2.
func (p *Plan) addChain(i int, tables []int) {
	if len(tables) == 0 {
		return
	}
	if len(tables) == 1 {
		p.Wires = append(p.Wires, [3]int{i, tables[0], -1})
		return
	}
	end := tables[0] // the node at the end of the chain so far
	for k := 1; k < len(tables)-1; k++ {
		c := p.addCopy(i)
		p.Wires = append(p.Wires, [3]int{i, end, c}, [3]int{i, tables[k], c})
		end = c
	}
	p.Wires = append(p.Wires, [3]int{i, end, tables[len(tables)-1]})
}

// addCopy adds a copy tensor of index i and returns its node.
func (p *Plan) addCopy(i int) int {
	p.Copies = append(p.Copies, i)
	return p.Tables + len(p.Copies) - 1
}

// unhostedHypergraph returns the hypergraph without the tables that have hosts. Its k-th edge is table unhosted[k].
func (f *form) unhostedHypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: f.h.Dims}
	for _, t := range f.unhosted {
		h.Edges = append(h.Edges, f.h.Edges[t])
	}
	return h
}

// treePlan returns the plan that merges along t, a contraction tree of unhostedHypergraph. The tables of every index are joined by a tree
// of copy tensors: the part of t in which the index occurs. So every merge takes in the copy tensors between its operands, and no wire
// ever is in a bundle with a wire that leads to a copy tensor.
func (f *form) treePlan(t contractionorder.Tree) Plan {
	p := f.emptyPlan()
	// By vertex of t: the indices that are needed further up, each with the node that its next wire starts from.
	open := make([]map[int]int, t.Leaves+len(t.Merges))
	for k, table := range f.unhosted {
		open[k] = make(map[int]int)
		for _, i := range f.h.Edges[table] {
			if len(f.tablesOf[i]) == 1 {
				p.Wires = append(p.Wires, [3]int{i, table, -1})
			} else {
				open[k][i] = table
			}
		}
	}
	joins := make([]int, len(f.h.Dims)) // by index: how often two nodes with it have been joined
	for k, m := range t.Merges {
		open[t.Leaves+k] = f.joinOpen(&p, open[m[0]], open[m[1]], joins)
		open[m[0]] = nil
		open[m[1]] = nil
	}
	nodeOf := func(vertex int) int {
		if vertex < t.Leaves {
			return f.unhosted[vertex]
		}
		return p.Tables + len(p.Copies) + vertex - t.Leaves
	}
	for _, m := range t.Merges {
		p.Merges = append(p.Merges, [2]int{nodeOf(m[0]), nodeOf(m[1])})
	}
	return p
}

// joinOpen adds to p the wires between two vertices of a contraction tree with the open indices a and b, and returns those of the merged
// vertex. It reuses the larger map. An index of both gets a copy tensor with a wire to each and an open third wire. At its last join it
// gets a plain wire, and is not open any more.
func (f *form) joinOpen(p *Plan, a, b map[int]int, joins []int) map[int]int {
	if len(a) < len(b) {
		a, b = b, a
	}
	common := make([]int, 0, len(b))
	for i, end := range b {
		if _, isInBoth := a[i]; isInBoth {
			common = append(common, i)
		} else {
			a[i] = end
		}
	}
	slices.Sort(common)
	for _, i := range common {
		if joins[i]++; joins[i] == len(f.tablesOf[i])-1 {
			p.Wires = append(p.Wires, [3]int{i, a[i], b[i]})
			delete(a, i)
			continue
		}
		c := p.addCopy(i)
		p.Wires = append(p.Wires, [3]int{i, a[i], c}, [3]int{i, b[i], c})
		a[i] = c
	}
	return a
}
