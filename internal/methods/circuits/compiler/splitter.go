package compiler

// Splitting: a walk over what the assignment left of a component finds the components in it.

import "github.com/basetensor/basetensor/pkg/scaled"

// splitter finds components.
type splitter struct {
	residual *residual
	graph    *graph
	stack    content // components are ranges of it

	varDigest    []digest
	clauseDigest []digest
	clauses      []int32 // by variable: the number of its clauses in its component
	tables       []int32 // by variable: the number of its tables

	// Marks of a walk: variables and clauses that are not yet reached carry its number, which is even; variables that are reached carry the
	// next one.
	epoch       uint32
	varMark     []uint32
	clauseMark  []uint32
	tableMark   []uint32
	sliceNumber []int32 // by table: the number of its slice in this walk
	assigned    []lit   // true literals of its variables

	// Of the component that is explored.
	key   digest
	links int
}

// newSplitter returns a splitter of components of the residual formula r, whose stack of components is empty. clauses are those of two
// literals and more; r.clauses has only those of three and more. Each variable and each clause of r.clauses gets a random digest, from
// which keys of components are made.
func newSplitter(r *residual, clauses [][]lit, digestDrawer drawer) *splitter {
	n := r.problem.booleans()
	s := &splitter{
		residual: r, graph: newGraph(r.problem, clauses), clauses: make([]int32, n), tables: make([]int32, n),
		varMark: make([]uint32, n), clauseMark: make([]uint32, len(r.clauses)),
		tableMark: make([]uint32, len(r.tables)), sliceNumber: make([]int32, len(r.tables)),
	}
	s.clauseDigest = digestDrawer.drawAll(len(r.clauses))
	s.varDigest = digestDrawer.drawAll(n)
	return s
}

// whole pushes the whole formula on the stack of components, and returns it as a component: it begins at the start of the stack. The
// slice of each table is the whole table.
func (s *splitter) whole() component {
	for v := range s.varMark {
		s.stack.vars = append(s.stack.vars, int32(v))
	}
	for k := range s.clauseMark {
		s.stack.clauses = append(s.stack.clauses, int32(k))
	}
	for t, st := range s.residual.tables {
		s.stack.tables = append(s.stack.tables, tableSlice{int32(t), st.whole()})
	}
	return component{to: s.stack.extent()} // from is 0, the start of the stack
}

// begin begins a walk over component c. A walk has a number, the epoch, which is even: a mark of epoch states that a variable or a clause
// of c is not reached yet, and other marks are those of walks before. It marks the open variables and the clauses of c as not reached,
// and returns the true literals of its variables that have values. The next call overwrites the result.
func (s *splitter) begin(c component) (assigned []lit) {
	content := s.stack.contentOf(c)
	s.residual.solver.Work += int64(len(content.vars) + len(content.clauses))
	if s.epoch += 2; s.epoch == 0 { // all numbers were used: begin anew
		clear(s.varMark)
		clear(s.clauseMark)
		clear(s.tableMark)
		s.epoch = 2
	}

	s.assigned = s.assigned[:0]
	for _, v := range content.vars {
		switch s.residual.value[positive(v)] {
		case 0:
			s.varMark[v] = s.epoch
			s.clauses[v], s.tables[v] = 0, 0 // the walk counts the clauses and tables of v
		case 1:
			s.assigned = append(s.assigned, positive(v))
		default:
			s.assigned = append(s.assigned, negative(v))
		}
	}
	for _, k := range content.clauses {
		s.clauseMark[k] = s.epoch
	}
	return s.assigned
}

// addTable adds a table of a component to the walk. t is the table's slice when the component was found; under the present assignment the
// slice is smaller. If its entries are all equal, it connects no variables and is not added. A slice counts without its factor, so addTable
// returns the factor of the smaller slice divided by that of t: the sum of the walk has to be multiplied by it.
func (s *splitter) addTable(t tableSlice) scaled.Number {
	restricted := s.residual.restrict(t.table)
	slice := s.residual.sliceOf(restricted)
	if !slice.constant {
		s.sliceNumber[t.table] = restricted.slice
		s.tableMark[t.table] = s.epoch
	}
	return scaled.FromFloat(slice.factor).Div(scaled.FromFloat(s.residual.sliceOf(t).factor))
}

// isUnreached reports whether v is an open variable of the walk that is in no component yet.
func (s *splitter) isUnreached(v int32) bool { return s.varMark[v] == s.epoch }

// explore pushes the component of open variable v on the stack: all variables that clauses and tables connect with it. It returns the
// component and its number of links, which are clauses and tables between its variables. Without links it is one variable of the formula.
func (s *splitter) explore(v int32) (c component, links int) {
	c.from = s.stack.extent()
	s.key, s.links = digest{}, 0
	s.visit(v)
	for i := c.from.vars; i < int32(len(s.stack.vars)); i++ { // the list grows
		s.expand(s.stack.vars[i])
	}
	c.to = s.stack.extent()
	c.key = s.key
	s.residual.solver.Work += int64(c.size())
	return c, s.links
}

// visit adds open variable v to the component that is explored, and marks it as reached: by the number of the walk plus 1.
func (s *splitter) visit(v int32) {
	s.varMark[v] = s.epoch + 1
	s.stack.vars = append(s.stack.vars, v)
	s.key.add(s.varDigest[v])
}

// visitIfUnreached visits v unless it has a value or was reached.
func (s *splitter) visitIfUnreached(v int32) {
	if s.isUnreached(v) {
		s.visit(v)
	}
}

// expand adds the clauses and tables of v to the component that is explored, and reaches their other open variables. s.links counts the
// clauses and tables of the component, s.clauses[v] the clauses of v.
//
// s.varMark[w] is s.epoch (an even number) if w is open and not reached yet, s.epoch + 1 if it is open and reached, and less if w has a
// value. The mark of a clause or a table is s.epoch if it is not added yet.
func (s *splitter) expand(v int32) {
	// Other values of the same variable of the formula.
	p := s.residual.problem
	if p.isOneOfMany[v] {
		owner := p.formulaVariable[v]
		for w := p.firstBoolean[owner]; w < p.firstBoolean[owner]+p.booleanCount(owner); w++ {
			s.visitIfUnreached(w)
		}
	}

	// The clauses and tables of v are entries of a list, by their kind (linkage).
	ranges := s.graph.ranges[v]
	list := s.graph.list
	s.residual.solver.Work += int64(ranges.end - ranges.binary)
	s.expandBinary(v, list[ranges.binary:ranges.ternary])
	epoch, clauseMark := s.epoch, s.clauseMark
	for i := ranges.ternary; i < ranges.long; i += 3 { // the number of the clause and its two other literals
		if k := list[i]; clauseMark[k] == epoch {
			s.expandClause(k, v, lit(list[i+1]), lit(list[i+2]))
		}
	}
	// Longer clauses: the number of the clause, where its other literals are in s.graph.others, and how many they are.
	for i := ranges.long; i < ranges.tables; i += 3 {
		if k := list[i]; clauseMark[k] == epoch {
			s.expandClause(k, v, s.graph.others[list[i+1]:list[i+1]+list[i+2]]...)
		}
	}
	for _, t := range list[ranges.tables:ranges.end] {
		if s.tableMark[t] == epoch {
			s.expandTable(t)
		}
	}
}

// expandBinary visits the unreached ones of neighbours, the other variables of v's clauses of two literals, and counts the clauses. It does
// not count a clause whose other variable has a value: the clause is true, since else propagation would have assigned v.
func (s *splitter) expandBinary(v int32, neighbours []int32) {
	epoch, varMark := s.epoch, s.varMark
	assigned := uint32(0) // neighbours that have a value: their marks are less than epoch
	for _, w := range neighbours {
		mark := varMark[w]
		if mark == epoch {
			s.visit(w)
		}
		// Count w if it has a value, without a branch, which would be hard to predict.
		difference := (mark | 1) ^ (epoch + 1)       // 0 if the mark is epoch or epoch + 1
		assigned += (difference | -difference) >> 31 // 1 if the difference is not 0: then it or its negative has the highest bit
	}
	links := int32(len(neighbours)) - int32(assigned)
	s.links += int(links)
	s.clauses[v] += links
}

// expandClause adds clause k to the component, unless one of its literals is true, and reaches its open variables. The clause has a
// literal of the open variable v, and the literals others.
func (s *splitter) expandClause(k, v int32, others ...lit) {
	s.clauseMark[k] = 0 // looked at: it is added below, or true
	value := s.residual.value
	for _, l := range others {
		if value[l] > 0 {
			return
		}
	}
	s.links++
	s.clauses[v]++
	s.stack.clauses = append(s.stack.clauses, k)
	s.key.add(s.clauseDigest[k])
	for _, l := range others {
		if value[l] == 0 {
			s.clauses[l.Variable()]++
			s.visitIfUnreached(l.Variable())
		}
	}
}

// expandTable adds the slice of table t, what the assignment leaves of it, to the component, and the slice's digest to the component's key.
// It reaches the slice's open variables, and counts the table for each of them.
func (s *splitter) expandTable(t int32) {
	s.tableMark[t] = 0 // it is added once
	s.links++
	slice := tableSlice{t, s.sliceNumber[t]}
	s.stack.tables = append(s.stack.tables, slice)
	s.key.add(s.residual.sliceOf(slice).digest)
	p := s.residual.problem
	for _, u := range p.tables[t].scope {
		for w := p.firstBoolean[u]; w < p.firstBoolean[u]+p.booleanCount(u); w++ { // the Boolean variables of u
			s.tables[w]++
			s.visitIfUnreached(w)
		}
	}
}
