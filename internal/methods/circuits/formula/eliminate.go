package formula

// Auxiliary variables that the links determine, by resolution.

import "slices"

// longestResolvent bounds the literals of a clause made by elimination.
const longestResolvent = 12

// eliminate sums out auxiliary variables y of two values that are in no table, by resolution, where that makes no more clauses than there
// were: with F = Π_c c(y, x) over the clauses that have y,
//
//	Σ_y F(y, x) = F(0, x) + F(1, x) = [some y satisfies all c] = Π of all resolvents on y
//
// The second step holds where no x with a product that is not 0 has both values, which is the
// meaning of Functional: the links, which are in x, determine y. It is no step for other variables:
// resolution proves that there is a value, not that it is the only one. The weight of y is 1, and
// nothing can be asked about it.
func (s *simplifier) eliminate() bool {
	until, from := s.budget(eliminateShare), s.p.Work
	inTable := make([]bool, len(s.f.Domains))
	for _, t := range s.f.Tables {
		for _, v := range t.Scope {
			inTable[v] = true
		}
	}
	at := map[Literal][]int{}
	for n, c := range s.p.clauses {
		if !s.p.gone[n] {
			s.list(at, n, c)
		}
	}
	found := false
	for i, functional := range s.f.Functional {
		y := s.f.Links + i
		if !functional || inTable[y] || s.f.Domains[y] != 2 || s.p.value(s.f.Literal(y, 0)) != 0 {
			continue
		}
		if s.over(until, &from) {
			break
		}
		found = s.resolveAway(y, at) || found
	}
	return found
}

// list adds a clause to its literals' lists, if they are of auxiliary variables of two values.
func (s *simplifier) list(at map[Literal][]int, n int, c []Literal) {
	for _, l := range c {
		if v := int(s.p.variable[l.Atom()]); v >= s.f.Links && s.f.Domains[v] == 2 {
			at[s.normal(l)] = append(at[s.normal(l)], n)
		}
	}
}

// resolveAway eliminates y, if that makes no more clauses and no long ones.
func (s *simplifier) resolveAway(y int, at map[Literal][]int) bool {
	left := func(l Literal) []int {
		return slices.DeleteFunc(slices.Clone(at[l]), func(n int) bool { return s.p.gone[n] })
	}
	with, against := left(s.f.Literal(y, 0)), left(s.f.Literal(y, 1))
	if len(with)+len(against) == 0 {
		return false // nothing says which value it has
	}
	var resolvents [][]Literal
	for _, n := range with {
		for _, m := range against {
			r, holds := s.resolvent(s.p.clauses[n], s.p.clauses[m], y)
			if holds {
				continue
			}
			if resolvents = append(resolvents, r); len(r) > longestResolvent || len(resolvents) > len(with)+len(against) {
				return false
			}
		}
	}
	for _, n := range slices.Concat(with, against) {
		s.p.gone[n] = true
	}
	for _, r := range resolvents {
		s.list(at, len(s.p.clauses), r)
		if s.p.add(r); s.p.False {
			break
		}
	}
	s.drop[y] = true
	return true
}

// resolvent returns the resolvent of two clauses on y; true where it always holds.
func (s *simplifier) resolvent(c, d []Literal, y int) (r []Literal, holds bool) {
	s.p.Work += int64(len(c) + len(d))
	for _, l := range slices.Concat(c, d) {
		if int(s.p.variable[l.Atom()]) == y {
			continue
		}
		l = s.normal(l)
		switch {
		case slices.Contains(r, s.normal(l.Not())):
			return nil, true
		case !slices.Contains(r, l):
			r = append(r, l)
		}
	}
	return r, false
}
