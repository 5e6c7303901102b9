package compiler

// Clauses that make propagation arc consistent.

import "slices"

// supports returns clauses that follow from the formula and make propagation arc consistent. Let x and y be variables of more than two
// values, and let clauses of two literals state that value a of x excludes two or more values of y. Then a clause states: x ≠ a, or y has
// one of the values that a does not exclude. With it propagation excludes a when the last of these is excluded. It leaves out values of y
// that are excluded at the root (value), and clauses without a value of y. The clauses are no part of components. Source: I. P. Gent, Arc
// consistency in SAT (ECAI 2002).
func supports(p *problem, value []int8, clauses [][]lit) (supporting [][]lit) {
	// By Boolean variable of x = a and variable y: the literals that state that y has not the values that a excludes.
	excluded := map[[2]int32][]lit{}
	var keys [][2]int32
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
			key := [2]int32{v, p.formulaVariable[w]}
			if excluded[key] == nil {
				keys = append(keys, key)
			}
			excluded[key] = append(excluded[key], c[1-i])
		}
	}

	for _, key := range keys {
		list := excluded[key]
		if len(list) < 2 {
			continue
		}
		clause := []lit{negative(key[0])} // x ≠ a, or y has an open value that a does not exclude
		first := p.firstBoolean[key[1]]
		for w := first; w < first+p.booleanCount(key[1]); w++ {
			if l := positive(w); value[l] == 0 && !slices.Contains(list, l.Not()) {
				clause = append(clause, l)
			}
		}
		if len(clause) > 1 {
			supporting = append(supporting, clause)
		}
	}
	return supporting
}
