package formula

// Auxiliary variables that the links determine, by resolution.

import "slices"

// longestResolvent is the largest number of literals of a clause that elimination makes.
const longestResolvent = 12

// eliminate tries to sum out auxiliary variables by resolution, one after the other (isCandidate, eliminateVariable), and reports whether
// it has summed out one. It ends early after 1/eliminateShare of the remaining work, if the context ends, or if a contradiction is found.
func (s *simplifier) eliminate() bool {
	workEnd, workBefore := s.workEndFor(eliminateShare), s.prop.Work

	// The variables of tables, and the clauses of each literal.
	inTable := make([]bool, len(s.f.Domains))
	for _, t := range s.f.Tables {
		for _, v := range t.Scope {
			inTable[v] = true
		}
	}
	clausesOf := map[Literal][]int{}
	for n, c := range s.prop.clauses {
		if !s.prop.removed[n] {
			s.listClause(clausesOf, n, c)
		}
	}

	hasChanged := false
	for y := s.f.Links; y < len(s.f.Domains); y++ {
		if !s.isCandidate(y, inTable) {
			continue
		}
		if s.isOver(workEnd, &workBefore) { // work, context or a contradiction; workBefore is updated
			break
		}
		hasChanged = s.eliminateVariable(y, clausesOf) || hasChanged
	}
	return hasChanged
}

// isCandidate reports whether the auxiliary variable y may be summed out by resolution: the network's variables determine its value, it is
// in no table, and it has two values, of which none is known to hold.
func (s *simplifier) isCandidate(y int, inTable []bool) bool {
	isFunctional := s.f.Functional[y-s.f.Links] // auxiliary variables follow the links
	return isFunctional && !inTable[y] && s.f.Domains[y] == 2 && s.prop.value(s.f.Literal(y, 0)) == 0
}

// listClause adds the number n of clause c to clausesOf of each of its literals about auxiliary variables with two values, in canonical
// form.
func (s *simplifier) listClause(clausesOf map[Literal][]int, n int, c []Literal) {
	for _, l := range c {
		if v := int(s.prop.variableOf[l.Atom()]); v >= s.f.Links && s.f.Domains[v] == 2 {
			clausesOf[s.canonical(l)] = append(clausesOf[s.canonical(l)], n)
		}
	}
}

// eliminateVariable sums out y: it replaces the clauses that have y by their resolvents on y. The resolvent of a clause with y = 0 and a
// clause with y = 1 has all their other literals. It returns false and changes nothing if the resolvents are more than the clauses, or if
// one has more than longestResolvent literals. It also does so if no clause has y: both values are possible then, and the sum is 2. With
// F = Π_c c(y, x) over the clauses c that have y, and x the other variables,
//
//	Σ_y F(y, x) = F(0, x) + F(1, x) = [some y satisfies all c] = Π of all resolvents on y
//
// The second equation needs that for each x at most one value of y has F not 0. Formula.Functional states this: the network's variables,
// which are in x, determine y. For other variables the equation does not hold: resolution proves that there is a value, not that it is the
// only one. The sum needs no weight, since that of y is 1, and no query can ask about y.
func (s *simplifier) eliminateVariable(y int, clausesOf map[Literal][]int) bool {
	remainingClauses := func(l Literal) []int {
		return slices.DeleteFunc(slices.Clone(clausesOf[l]), func(n int) bool { return s.prop.removed[n] })
	}
	zeros, ones := remainingClauses(s.f.Literal(y, 0)), remainingClauses(s.f.Literal(y, 1)) // clauses with y = 0 and with y = 1
	if len(zeros)+len(ones) == 0 {
		return false
	}

	resolvents, areFew := s.allResolvents(zeros, ones, y)
	if !areFew {
		return false
	}
	for _, n := range slices.Concat(zeros, ones) {
		s.prop.removed[n] = true
	}
	for _, r := range resolvents {
		s.listClause(clausesOf, len(s.prop.clauses), r) // the number that addClause gives r
		if s.prop.addClause(r); s.prop.IsContradictory {
			break
		}
	}
	s.eliminated[y] = true
	return true
}

// allResolvents returns the resolvents on y of each of the clauses zeros with each of the clauses ones. It leaves out resolvents that
// always hold. areFew is false if there are more resolvents than clauses, or if one has more than longestResolvent literals; then the list
// is incomplete.
func (s *simplifier) allResolvents(zeros, ones []int, y int) (resolvents [][]Literal, areFew bool) {
	for _, n := range zeros {
		for _, m := range ones {
			r, isTautology := s.resolvent(s.prop.clauses[n], s.prop.clauses[m], y)
			if isTautology {
				continue
			}
			if resolvents = append(resolvents, r); len(r) > longestResolvent || len(resolvents) > len(zeros)+len(ones) {
				return resolvents, false
			}
		}
	}
	return resolvents, true
}

// resolvent returns the resolvent of two clauses on y, which follows from them if they have opposite literals of y: all their literals
// except those of y, in canonical form (one for all literals with the same meaning). isTautology is true if it has a literal and the
// opposite, so that it always holds.
func (s *simplifier) resolvent(c, d []Literal, y int) (r []Literal, isTautology bool) {
	s.prop.Work += int64(len(c) + len(d))
	for _, l := range slices.Concat(c, d) {
		if int(s.prop.variableOf[l.Atom()]) == y {
			continue
		}
		l = s.canonical(l)
		switch {
		case slices.Contains(r, s.canonical(l.Not())):
			return nil, true
		case !slices.Contains(r, l):
			r = append(r, l)
		}
	}
	return r, false
}
