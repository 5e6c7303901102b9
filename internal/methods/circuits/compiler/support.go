package compiler

// Clauses that make propagation arc consistent.

import "slices"

// supports returns, for every value a of a variable of many values and every other such variable y of which it excludes two values or more,
// the clause that a is not taken or one of y's other values is. It follows from the formula: with it propagation excludes a if
// the last of these values is excluded. It is no part of components.
// Source: I. P. Gent, Arc consistency in SAT (ECAI 2002).
func supports(p *problem, value []int8, clauses [][]lit) (out [][]lit) {
	excluded := map[[2]int32][]lit{} // by Boolean variable and other variable of the formula
	var keys [][2]int32
	for _, c := range clauses {
		if len(c) != 2 || c[0].Positive() || c[1].Positive() {
			continue
		}
		for i, l := range c {
			v, w := l.Variable(), c[1-i].Variable()
			if !p.many[v] || !p.many[w] || p.owner[v] == p.owner[w] {
				continue
			}
			key := [2]int32{v, p.owner[w]}
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
		c := []lit{lit(2*key[0] + 1)}
		first := p.first[key[1]]
		for w := first; w < first+p.count(key[1]); w++ {
			if l := lit(2 * w); value[l] == 0 && !slices.Contains(list, l.Not()) {
				c = append(c, l)
			}
		}
		if len(c) > 1 {
			out = append(out, c)
		}
	}
	return out
}
