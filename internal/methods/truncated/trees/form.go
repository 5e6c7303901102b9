package trees

// The network form of a hypergraph: wires, and copy tensors where more than two tables have an index.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// form is a hypergraph in which a table of one index is multiplied into another table, its host, so that it needs no node.
type form struct {
	h        contractionorder.Hypergraph
	hosts    []int   // by table: its host, −1 if it has none (Plan.Hosts)
	tablesOf [][]int // by index: the tables without a host that have it
	unhosted []int   // the tables without a host
}

// newForm returns the form of a hypergraph. The host of a table of one index is another table that has the index, into which it is
// multiplied: the first larger one or, if there is none, the first table of that index alone. That table has no host itself.
func newForm(h contractionorder.Hypergraph) *form {
	f := &form{h: h, hosts: make([]int, len(h.Edges)), tablesOf: make([][]int, len(h.Dims))}

	hostOf := slices.Repeat([]int{-1}, len(h.Dims)) // by index
	for t, scope := range h.Edges {
		f.hosts[t] = -1
		for _, i := range scope {
			if host := hostOf[i]; host < 0 || len(h.Edges[host]) == 1 && len(scope) > 1 { // the first, or the first larger one
				hostOf[i] = t
			}
		}
	}

	for t, scope := range h.Edges {
		if len(scope) == 1 && hostOf[scope[0]] != t { // it is multiplied into its host and needs no node
			f.hosts[t] = hostOf[scope[0]]
			continue
		}
		f.unhosted = append(f.unhosted, t)
		for _, i := range scope {
			f.tablesOf[i] = append(f.tablesOf[i], t)
		}
	}
	return f
}

// emptyPlan returns a plan of the form without copies, wires and merges.
func (f *form) emptyPlan() Plan { return Plan{Tables: len(f.h.Edges), Hosts: f.hosts} }

// chainPlan returns a plan without merges, in which the tables of every index are joined by a chain of copy tensors. rank has the rank of
// every index in a global order. Along a chain, tables are sorted by the lowest rank of their other indices, whose wires cross the chain. A
// copy tensor joins three wires of one index.
func (f *form) chainPlan(rank []int) Plan {
	p := f.emptyPlan()
	for i, tables := range f.tablesOf {
		lowestOther := func(t int) int { // the lowest rank of another index of table t
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

// addChain joins the tables of index i, in the given sequence, by wires and a chain of copy tensors, nodes that join three wires of one
// index. Two tables need a wire only, k tables need k − 2 copy tensors. A single table gets a wire with one end. A wire is (index, node,
// node).
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

// addCopy adds a copy tensor of index i to the plan and returns its node number.
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

// treePlan returns the plan that merges along t, a contraction tree of unhostedHypergraph. The tables of every index are joined by copy
// tensors in the same tree: two operands of a merge that both have the index get a copy tensor between them, which the merge takes in. A
// copy tensor joins three wires of one index.
func (f *form) treePlan(t contractionorder.Tree) Plan {
	// Go up the tree. open has, by vertex of t, the indices that are needed further up, each with the node where its next wire starts.
	p := f.emptyPlan()
	open := make([]map[int]int, t.Leaves+len(t.Merges))
	for k, table := range f.unhosted {
		open[k] = make(map[int]int)
		for _, i := range f.h.Edges[table] {
			if len(f.tablesOf[i]) == 1 {
				p.Wires = append(p.Wires, [3]int{i, table, -1}) // the wire ends nowhere: no other table has the index
			} else {
				open[k][i] = table
			}
		}
	}
	joins := make([]int, len(f.h.Dims)) // by index: how many merges so far had it in both operands
	for k, m := range t.Merges {
		open[t.Leaves+k] = f.joinOpen(&p, open[m[0]], open[m[1]], joins)
		open[m[0]] = nil
		open[m[1]] = nil
	}

	// A vertex of t is a table, or the result of a merge, whose nodes come after the copy tensors.
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

// joinOpen adds to p the wires (index, node, node) between two operands of a merge. An index is open if a later merge needs it. a and b map
// the open indices of each operand to the node where the next wire of the index starts. The result is that map for the result of the
// merge; it is the larger of a and b, changed.
//
// If only one operand has an index, its wire goes on. If both have it, joins of the index is raised: it counts the merges of that kind. If
// this is the last one, one wire joins the operands, and the index is not open any more. Else the index gets a copy tensor with a wire to
// each operand, and its next wire starts from the copy tensor.
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
		if joins[i]++; joins[i] == len(f.tablesOf[i])-1 { // k tables are joined by k − 1 merges
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
