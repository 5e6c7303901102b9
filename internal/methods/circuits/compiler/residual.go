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

// newResidual returns the residual formula with the given clauses, of two literals and more, and the tables of p. The facts are assigned at
// the root. The residual formula's own list has only clauses of three literals and more: the solver keeps those of two as implications.
// digestDrawer draws the random digests of the slices of tables.
func newResidual(p *problem, facts []lit, clauses [][]lit, digestDrawer drawer) *residual {
	solver := sat.New(p.firstBoolean) // exactly one of a variable's Boolean variables is true, if it has several
	r := &residual{problem: p, solver: solver, value: solver.Value}
	for _, l := range facts {
		if r.value[l] == 0 {
			solver.Assign(l, sat.Fact)
		}
	}

	const isOfFormula = 0 // the mark of a clause that is not learned
	for _, c := range clauses {
		solver.Attach(slices.Clone(c), isOfFormula)
		if len(c) > 2 {
			r.clauses = append(r.clauses, c)
		}
	}
	for _, c := range supports(p, r.value, clauses) { // clauses that follow, for propagation only
		solver.Attach(c, isOfFormula)
	}

	longestScope := 0
	for i := range p.tables {
		r.tables = append(r.tables, newSliceTable(&p.tables[i], digestDrawer))
		longestScope = max(longestScope, len(p.tables[i].scope))
	}
	r.scope = make([]int32, longestScope)
	return r
}

// openVariables returns the number of Boolean variables without a value.
func (r *residual) openVariables() int {
	open := 0
	for v := range r.problem.formulaVariable {
		if r.value[positive(int32(v))] == 0 {
			open++
		}
	}
	return open
}

// hasOpen reports whether one of the Boolean variables vars has no value.
func (r *residual) hasOpen(vars []int32) bool {
	return slices.ContainsFunc(vars, func(v int32) bool { return r.value[positive(v)] == 0 })
}

// valueOf returns the value that a variable of the formula has under the assignment, −1 if it is open.
func (r *residual) valueOf(v int32) int32 {
	if r.problem.booleanCount(v) > 1 { // a Boolean variable for each value, one of which is true: −1 if none is yet
		return r.solver.TrueMember[v]
	}
	// Two values: the positive literal states value 1.
	switch r.value[positive(r.problem.firstBoolean[v])] {
	case 1:
		return 1
	case -1:
		return 0
	}
	return -1
}

// sliceOf returns the slice that t refers to.
func (r *residual) sliceOf(t tableSlice) *slice { return &r.tables[t.table].met[t.slice] }

// restrict returns table t under the assignment: the slice at the values of its variables, −1 for open ones. A slice that was not met
// before is computed; r.bytes counts the memory of all slices.
func (r *residual) restrict(t int32) tableSlice {
	st := r.tables[t]
	values := r.scope[:len(st.table.scope)]
	for i, v := range st.table.scope {
		values[i] = r.valueOf(v)
	}
	r.solver.Work += int64(len(values))
	sizeBefore := st.size
	number := st.find(values)
	r.bytes += st.size - sizeBefore
	return tableSlice{t, number}
}

// dimensions returns, for each variable of the formula, the number of values that it may still have: 1 if it has a value.
func (r *residual) dimensions() []int {
	dims := make([]int, len(r.problem.f.Domains))
	for v := range dims {
		first, n := r.problem.firstBoolean[v], r.problem.booleanCount(int32(v))
		open := 0
		for b := first; b < first+n; b++ {
			if r.value[positive(b)] == 0 {
				open++
			}
		}
		if n == 1 && open == 1 { // one open Boolean variable, which has two values
			open = 2
		}
		dims[v] = max(open, 1)
	}
	return dims
}

// hypergraph returns the hypergraph of the residual formula. It has a dimension for each variable of the formula, the number of its open
// values, and an edge over the open variables of each clause and each table. The clauses are those of two literals and more.
func (r *residual) hypergraph(clauses [][]lit) contractionorder.Hypergraph {
	dims := r.dimensions()
	h := contractionorder.Hypergraph{Dims: dims}
	addEdge := func(vars []int32) {
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
			vars[i] = r.problem.formulaVariable[l.Variable()]
		}
		addEdge(vars)
	}
	for _, t := range r.problem.tables {
		addEdge(t.scope)
	}
	return h
}
