package compiler

// The residual formula: what the assignment leaves of clauses and tables.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// residual is the formula under the solver's assignment.
type residual struct {
	problem *problem
	solver  *sat.Solver   // it counts the work of the whole search, too
	value   []int8        // by literal: the solver's
	clauses [][]lit       // of three literals and more, by number
	tables  []*sliceTable // by number

	bytes int64   // of slices
	scope []int32 // scratch memory: the values of a table's variables
}

// newResidual returns the formula of the clauses of two literals and more and the tables of p. The facts are assigned at the root.
func newResidual(p *problem, facts []lit, clauses [][]lit, numbers drawer) *residual {
	solver := sat.New(p.first)
	r := &residual{problem: p, solver: solver, value: solver.Value}
	for _, l := range facts {
		if r.value[l] == 0 {
			solver.Assign(l, sat.Fact)
		}
	}
	for _, c := range clauses {
		solver.Attach(slices.Clone(c), 0)
		if len(c) > 2 {
			r.clauses = append(r.clauses, c)
		}
	}
	for _, c := range supports(p, r.value, clauses) {
		solver.Attach(c, 0)
	}
	widest := 0
	for i := range p.tables {
		r.tables = append(r.tables, newSliceTable(&p.tables[i], numbers))
		widest = max(widest, len(p.tables[i].scope))
	}
	r.scope = make([]int32, widest)
	return r
}

// openVariables returns the number of Boolean variables without a value.
func (r *residual) openVariables() int {
	open := 0
	for v := range r.problem.owner {
		if r.value[2*v] == 0 {
			open++
		}
	}
	return open
}

// anyOpen reports whether one of the variables has no value.
func (r *residual) anyOpen(vars []int32) bool {
	return slices.ContainsFunc(vars, func(v int32) bool { return r.value[2*v] == 0 })
}

// valueOf returns the value of a variable of the formula, or −1.
func (r *residual) valueOf(v int32) int32 {
	if r.problem.count(v) > 1 {
		return r.solver.Taken[v]
	}
	switch r.value[2*r.problem.first[v]] {
	case 1:
		return 1
	case -1:
		return 0
	}
	return -1
}

// sliceOf returns a slice of a table.
func (r *residual) sliceOf(t tableSlice) *slice { return &r.tables[t.table].met[t.slice] }

// restrict returns a table under the assignment.
func (r *residual) restrict(t int32) tableSlice {
	st := r.tables[t]
	values := r.scope[:len(st.table.scope)]
	for i, v := range st.table.scope {
		values[i] = r.valueOf(v)
	}
	r.solver.Work += int64(len(values))
	before := st.size
	number := st.find(values)
	r.bytes += st.size - before
	return tableSlice{t, number}
}

// dimensions returns the numbers of open values of the formula's variables, 1 for those that have a value.
func (r *residual) dimensions() []int {
	dims := make([]int, len(r.problem.f.Domains))
	for v := range dims {
		first, n := r.problem.first[v], r.problem.count(int32(v))
		open := 0
		for b := first; b < first+n; b++ {
			if r.value[2*b] == 0 {
				open++
			}
		}
		if n == 1 && open == 1 {
			open = 2
		}
		dims[v] = max(open, 1)
	}
	return dims
}

// hypergraph returns the hypergraph of the residual formula: its variables with the values that are open, and a
// scope per clause and table. The clauses are those of two literals and more.
func (r *residual) hypergraph(clauses [][]lit) contractionorder.Hypergraph {
	dims := r.dimensions()
	h := contractionorder.Hypergraph{Dims: dims}
	add := func(vars []int32) {
		var scope []int
		for _, v := range vars {
			if dims[v] > 1 {
				scope = append(scope, int(v))
			}
		}
		h.Edges = append(h.Edges, distinct(scope))
	}
	for _, c := range clauses {
		vars := make([]int32, len(c))
		for i, l := range c {
			vars[i] = r.problem.owner[l.Variable()]
		}
		add(vars)
	}
	for _, t := range r.problem.tables {
		add(t.scope)
	}
	return h
}
