package compiler

// The links of variables: their clauses and tables.

import "slices"

// linkage holds the clauses and tables that a Boolean variable shares with others, as four ranges of graph.list. A range begins at the
// field and ends where the next one begins:
//
//	binary   the other variables of clauses of two literals
//	ternary  clauses of three literals, as (number, two other literals)
//	long     longer clauses, as (number, index of the other literals in graph.others, how many they are)
//	tables   numbers of tables
type linkage struct {
	binary, ternary, long, tables, end int32
}

// graph is the formula as components see it. It does not change during the search.
type graph struct {
	ranges []linkage // by variable
	list   []int32
	others []lit
}

// newGraph returns the links of all Boolean variables: the clauses and tables that each is in. The clauses have two literals or more, and
// come with those of two literals first. Those of three and more are numbered from 0. g.list has for each variable, one after the other:
//
//   - the other variable of each clause of two literals;
//   - for each clause of three literals its number and the other two literals;
//   - for each longer clause its number, the position of its other literals in g.others, and how many they are;
//   - the numbers of the tables of the formula's variable.
func newGraph(p *problem, clauses [][]lit) *graph {
	n := p.booleans()
	tables := make([][]int32, len(p.f.Domains))
	for i := range p.tables {
		for _, v := range p.tables[i].scope {
			tables[v] = append(tables[v], int32(i))
		}
	}

	// The entries of each variable (see linkage), by the length of the clause.
	g := &graph{ranges: make([]linkage, n)}
	binary := make([][]int32, n)
	ternary := make([][]int32, n)
	long := make([][]int32, n)
	id := int32(0) // of the next clause of three literals or more
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
		ranges := &g.ranges[v]
		ranges.binary = g.append(slices.Compact(binary[v]))
		ranges.ternary = g.append(ternary[v])
		ranges.long = g.append(long[v])
		ranges.tables = g.append(tables[p.formulaVariable[v]])
		ranges.end = int32(len(g.list))
	}
	return g
}

// append appends entries to g.list and returns the position of the first one.
func (g *graph) append(entries []int32) (start int32) {
	start = int32(len(g.list))
	g.list = append(g.list, entries...)
	return start
}
