package compiler

// Components: the residual formula under an assignment falls into parts that share no open
// variable.

import (
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
)

// component is a part of the formula: ranges of the search's stacks. All its variables were open when it was found, and it had all
// that was left of every clause and table with one of them.
type component struct {
	vars, varsEnd       int32
	clauses, clausesEnd int32
	tables, tablesEnd   int32
	key                 digest
	wait                int32 // decisions before elimination is worth another look
	stale               bool  // some variables have values since it was found
}

func (c component) size() int32 { return c.varsEnd - c.vars }

// tableSlice is a table under an assignment.
type tableSlice struct {
	table int32
	slice int32 // number among the slices of the table that were met
}

// linkage holds the clauses and tables that a Boolean variable shares with others, as
// ranges of one list:
//
//	variables of binary clauses; clauses of three literals as (number, two literals); longer ones as (number, place of the
//	other literals in others, their number); tables.
type linkage struct {
	binary, ternary, long, tables, end int32
}

// graph is the formula as components see it. It does not change during the search.
type graph struct {
	of     []linkage
	list   []int32
	others []lit
}

// newGraph lists the links of all variables. The clauses have two literals or more, binary ones
// first.
func newGraph(p *problem, clauses [][]lit, tablesOf [][]int32) *graph {
	n := p.booleans()
	g := &graph{of: make([]linkage, n)}
	binary := make([][]int32, n)
	ternary := make([][]int32, n)
	long := make([][]int32, n)
	id := int32(0)
	for _, c := range clauses {
		for i, l := range c {
			v := l.Variable()
			switch len(c) {
			case 2:
				binary[v] = append(binary[v], c[1-i].Variable())
			case 3:
				ternary[v] = append(ternary[v], id, int32(c[(i+1)%3]), int32(c[(i+2)%3]))
			default:
				long[v] = append(long[v], id, int32(len(g.others)), int32(len(c)-1))
				g.others = append(append(g.others, c[:i]...), c[i+1:]...)
			}
		}
		if len(c) > 2 {
			id++
		}
	}
	for v := range n {
		slices.Sort(binary[v])
		at := &g.of[v]
		at.binary = int32(len(g.list))
		g.list = append(g.list, slices.Compact(binary[v])...)
		at.ternary = int32(len(g.list))
		g.list = append(g.list, ternary[v]...)
		at.long = int32(len(g.list))
		g.list = append(g.list, long[v]...)
		at.tables = int32(len(g.list))
		g.list = append(g.list, tablesOf[p.owner[v]]...)
		at.end = int32(len(g.list))
	}
	return g
}

// split finds the components of c's residue under the assignment, pushes those whose sum is not
// known, and multiplies a product by all else: weights of the variables of c that are assigned,
// ratios of tables, and sums that are known.
func (s *search) split(c component, product *product) {
	s.Work += int64(c.size() + c.clausesEnd - c.clauses)
	if s.epoch += 2; s.epoch == 0 {
		clear(s.varMark)
		clear(s.clauseMark)
		clear(s.tableMark)
		s.epoch = 2
	}
	for _, v := range s.vars[c.vars:c.varsEnd] {
		switch s.Value[2*v] {
		case 0:
			s.varMark[v] = s.epoch
			s.heuristic.clauses[v], s.heuristic.tables[v] = 0, 0
		case 1:
			product.times(s.trace.weight(lit(2 * v)))
		default:
			product.times(s.trace.weight(lit(2*v + 1)))
		}
	}
	for _, k := range s.clauses[c.clauses:c.clausesEnd] {
		s.clauseMark[k] = s.epoch
	}
	for _, t := range s.tables[c.tables:c.tablesEnd] {
		product.timesNumber(s.reslice(t))
	}

	// The stacks grow below, and c's own range stays where it is.
	parts, hits := len(s.parts), s.stats.Hits
	for i := c.vars; i < c.varsEnd; i++ {
		if v := s.vars[i]; s.varMark[v] == s.epoch {
			s.explore(v, product)
		}
	}
	s.splits.count(c.size(), len(s.parts) != parts+1 || s.stats.Hits > hits)
}

// someOpen reports whether a variable has no value.
func someOpen(value []int8, vars []int32) bool {
	return slices.ContainsFunc(vars, func(v int32) bool { return value[2*v] == 0 })
}

// odds counts tries and finds by the logarithm of a component's size.
type odds [32]struct{ tried, found int64 }

func (o *odds) count(size int32, found bool) {
	at := &o[bits.Len32(uint32(size))]
	at.tried++
	if found {
		at.found++
	}
}

// poor reports whether less than one of share tries at a size finds anything.
func (o *odds) poor(size int32, share int64) bool {
	at := &o[bits.Len32(uint32(size))]
	return at.tried > oddsTried && at.found*share < at.tried
}

// explore pushes the component of v, or takes it off again and multiplies a product by its sum if that is known.
func (s *search) explore(v int32, product *product) {
	c := component{vars: int32(len(s.vars)), clauses: int32(len(s.clauses)), tables: int32(len(s.tables))}
	s.key = digest{}
	s.edges = 0
	s.visit(v)
	for i := c.vars; i < int32(len(s.vars)); i++ {
		s.expand(s.vars[i])
	}
	c.varsEnd, c.clausesEnd, c.tablesEnd = int32(len(s.vars)), int32(len(s.clauses)), int32(len(s.tables))
	c.key = s.key
	s.Work += int64(c.size())

	known, ok := amount{}, s.edges == 0
	if ok {
		known = s.single(c)
	} else {
		s.stats.Components++
		if known, ok = s.cache.find(c.key); ok {
			s.stats.Hits++
		}
	}
	if !ok {
		s.parts = append(s.parts, c)
		return
	}
	s.forget(c)
	product.times(known)
}

// forget cuts the stacks back to the start of c.
func (s *search) forget(c component) {
	s.vars = s.vars[:c.vars]
	s.clauses = s.clauses[:c.clauses]
	s.tables = s.tables[:c.tables]
}

// single is the sum of one variable of the formula that nothing is said about.
func (s *search) single(c component) amount {
	sum := amount{node: circuit.Zero}
	for _, v := range s.vars[c.vars:c.varsEnd] {
		sum = s.trace.sum(sum, s.trace.weight(lit(2*v)))
	}
	if v := s.vars[c.vars]; !s.p.many[v] {
		sum = s.trace.sum(sum, s.trace.weight(lit(2*v+1)))
	}
	return sum
}

// visit adds an open variable to the component that is explored.
func (s *search) visit(v int32) {
	s.varMark[v] = s.epoch + 1
	s.vars = append(s.vars, v)
	s.key.add(s.varDigest[v])
}

// reach is visit where v is not yet visited.
func (s *search) reach(v int32) {
	if s.varMark[v] == s.epoch {
		s.visit(v)
	}
}

// expand reaches the variables that v shares a clause or a table with.
func (s *search) expand(v int32) {
	if s.p.many[v] {
		owner := s.p.owner[v]
		for w := s.p.first[owner]; w < s.p.first[owner]+s.p.count(owner); w++ {
			s.reach(w)
		}
	}

	at := s.graph.of[v]
	list := s.graph.list
	s.Work += int64(at.end - at.binary)
	binary, assigned := list[at.binary:at.ternary], uint32(0)
	for _, w := range binary {
		mark := s.varMark[w]
		if mark == s.epoch {
			s.visit(w)
		}
		other := (mark | 1) ^ (s.epoch + 1) // 0 where w is open; else the other literal is true, or v would be assigned
		assigned += (other | -other) >> 31  // 1 where it is not 0: a branch would be hard to predict
	}
	links := int32(len(binary)) - int32(assigned)
	s.edges += int(links)
	s.heuristic.clauses[v] += links
	for i := at.ternary; i < at.long; i += 3 {
		if k := list[i]; s.clauseMark[k] == s.epoch {
			s.expandClause(k, v, lit(list[i+1]), lit(list[i+2]))
		}
	}
	for i := at.long; i < at.tables; i += 3 {
		if k := list[i]; s.clauseMark[k] == s.epoch {
			s.expandClause(k, v, s.graph.others[list[i+1]:list[i+1]+list[i+2]]...)
		}
	}
	for _, t := range list[at.tables:at.end] {
		if s.tableMark[t] == s.epoch {
			s.expandTable(t)
		}
	}
}

// expandClause adds clause k, of v and the others, to the component unless it holds.
func (s *search) expandClause(k, v int32, others ...lit) {
	s.clauseMark[k] = 0
	for _, l := range others {
		if s.Value[l] > 0 {
			return
		}
	}
	s.edges++
	s.heuristic.clauses[v]++
	s.clauses = append(s.clauses, k)
	s.key.add(s.clauseDigest[k])
	for _, l := range others {
		if s.Value[l] == 0 {
			s.heuristic.clauses[l.Variable()]++
			s.reach(l.Variable())
		}
	}
}

// expandTable adds a table to the component.
func (s *search) expandTable(t int32) {
	s.tableMark[t] = 0
	s.edges++
	now := s.tableNow[t]
	s.tables = append(s.tables, tableSlice{t, now})
	s.key.add(s.slices[t].met[now].digest)
	for _, u := range s.p.tables[t].scope {
		for w := s.p.first[u]; w < s.p.first[u]+s.p.count(u); w++ {
			s.heuristic.tables[w]++
			s.reach(w)
		}
	}
}
