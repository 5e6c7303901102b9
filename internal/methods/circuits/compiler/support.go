package compiler

// Clauses that make propagation arc consistent.

import "slices"

// supports returns clauses that follow from the formula, with which propagation excludes more. Let x and y be variables of more than two
// values, and let clauses of two literals state that value a of x excludes two or more values of y. Then a clause states: x ≠ a, or y has
// one of the values that a does not exclude. With this clause propagation excludes a when no value of y is left that a does not exclude
// (arc consistency). It leaves out values of y that are excluded at the root (value), and clauses without a value of y. The clauses are no
// part of components. Source: I. P. Gent, Arc consistency in SAT (ECAI 2002).
func supports(p *problem, value []int8, clauses [][]lit) (supporting [][]lit) {
	list, excluded := exclusions(p, clauses)
	for _, e := range list {
		if len(excluded[e]) < 2 {
			continue
		}
		clause := []lit{negative(e.value)} // x ≠ a, or y has an open value that a does not exclude
		first := p.firstBoolean[e.variable]
		for w := first; w < first+p.booleanCount(e.variable); w++ {
			if l := positive(w); value[l] == 0 && !slices.Contains(excluded[e], l.Not()) {
				clause = append(clause, l)
			}
		}
		if len(clause) > 1 {
			supporting = append(supporting, clause)
		}
	}
	return supporting
}

// exclusion stands for what a value x = a excludes of another variable y of the formula.
type exclusion struct {
	value    int32 // the Boolean variable of x = a
	variable int32 // y
}

// exclusions returns what values of variables exclude, for variables of more than two values. A clause of two negative literals, x ≠ a or
// y ≠ b, states that x = a excludes y = b, and the other way round. A key e is a value x = a and a variable y: excluded[e] has the literals
// y ≠ b for all b that x = a excludes. list has the keys of excluded in the order of the clauses.
func exclusions(p *problem, clauses [][]lit) (list []exclusion, excluded map[exclusion][]lit) {
	excluded = map[exclusion][]lit{}
	for _, c := range clauses {
		excludesPair := len(c) == 2 && !c[0].IsPositive() && !c[1].IsPositive()
		if !excludesPair {
			continue
		}
		for i, l := range c {
			v, w := l.Variable(), c[1-i].Variable()
			if !p.isOneOfMany[v] || !p.isOneOfMany[w] || p.formulaVariable[v] == p.formulaVariable[w] {
				continue
			}
			e := exclusion{v, p.formulaVariable[w]}
			if excluded[e] == nil {
				list = append(list, e)
			}
			excluded[e] = append(excluded[e], c[1-i])
		}
	}
	return list, excluded
}
