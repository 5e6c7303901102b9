package formula

// Superfluous literals, and superfluous clauses, by unit propagation.

import (
	"cmp"
	"slices"
)

// longest lists the clauses that are left, longer ones first.
func (s *simplifier) longest() []int {
	var list []int
	for n := range s.p.clauses {
		if !s.p.gone[n] {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(m, n int) int { return cmp.Compare(len(s.p.clauses[n]), len(s.p.clauses[m])) })
	return list
}

// vivify shortens clauses: with a clause left out, its literals are assumed not to hold, one after the other. Where the other clauses
// contradict that those so far are a clause, where they imply a literal those so far with it are, and one that they refute is not needed.
// Source: C. Piette, Y. Hamadi and L. Saïs, Vivifying propositional clausal formulae (2008).
func (s *simplifier) vivify() bool {
	until, from := s.budget(vivifyShare), s.p.Work
	found := false
	for _, n := range s.longest() {
		if s.over(until, &from) {
			break
		}
		if s.p.gone[n] || len(s.p.clauses[n]) < 3 {
			continue
		}
		if shorter := s.vivified(n); len(shorter) < len(s.p.clauses[n]) {
			s.p.replace(n, shorter)
			found = true
		}
	}
	return found
}

// vivified returns the literals of a clause that are needed.
func (s *simplifier) vivified(n int) (kept []Literal) {
	s.p.without(n, func() bool {
		for _, l := range s.p.clauses[n] {
			value := s.p.value(l)
			if value >= 0 {
				kept = append(kept, l)
			}
			if value > 0 || !s.p.Try(s.p.bit(l.Not())) {
				break
			}
		}
		return false
	})
	return kept
}

// implied leaves out clauses from which the others follow by unit propagation, longer ones first: they exclude no assignment.
func (s *simplifier) implied() {
	until, from := s.budget(impliedShare), s.p.Work
	for _, n := range s.longest() {
		if s.over(until, &from) {
			break
		}
		if !s.p.gone[n] && s.follows(n) {
			s.p.gone[n] = true
		}
	}
}

// follows reports whether the other clauses refute that no literal of a clause holds.
func (s *simplifier) follows(n int) bool {
	return s.p.without(n, func() bool {
		return slices.ContainsFunc(s.p.clauses[n], func(l Literal) bool { return !s.p.Try(s.p.bit(l.Not())) })
	})
}
