package formula

// Superfluous literals, and superfluous clauses, by unit propagation.

import (
	"cmp"
	"slices"
)

// longestFirst returns the numbers of the clauses that are not removed, longer clauses first.
func (s *simplifier) longestFirst() []int {
	var list []int
	for n := range s.p.clauses {
		if !s.p.removed[n] {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(m, n int) int { return cmp.Compare(len(s.p.clauses[n]), len(s.p.clauses[m])) })
	return list
}

// vivify shortens clauses to the literals that are needed (neededLiterals), and reports whether it has shortened one.
// Source: C. Piette, Y. Hamadi and L. Saïs, Vivifying propositional clausal formulae (2008).
func (s *simplifier) vivify() bool {
	until, workBefore := s.budget(vivifyShare), s.p.Work
	hasFound := false
	for _, n := range s.longestFirst() {
		if s.over(until, &workBefore) {
			break
		}
		if s.p.removed[n] || len(s.p.clauses[n]) < 3 {
			continue
		}
		if shorter := s.neededLiterals(n); len(shorter) < len(s.p.clauses[n]) {
			s.p.replace(n, shorter)
			hasFound = true
		}
	}
	return hasFound
}

// neededLiterals returns the literals of clause n that are needed. While the clause is left out, its literals are assumed not to hold, one
// after the other, and propagated.
//
//   - If that is a contradiction, the literals so far are a clause that follows from the other clauses.
//   - If the other clauses imply a literal, the literals so far, with this one, are such a clause.
//   - If they refute a literal, it is not needed.
func (s *simplifier) neededLiterals(n int) (needed []Literal) {
	s.p.askWithout(n, func() bool {
		for _, l := range s.p.clauses[n] {
			value := s.p.value(l)
			if value >= 0 {
				needed = append(needed, l)
			}
			if value > 0 || !s.p.Try(s.p.bit(l.Not())) {
				break
			}
		}
		return false
	})
	return needed
}

// removeImplied removes clauses that follow from the others by unit propagation, longer ones first. They exclude no assignment.
func (s *simplifier) removeImplied() {
	until, workBefore := s.budget(impliedShare), s.p.Work
	for _, n := range s.longestFirst() {
		if s.over(until, &workBefore) {
			break
		}
		if !s.p.removed[n] && s.isImplied(n) {
			s.p.removed[n] = true
		}
	}
}

// isImplied reports whether clause n follows from the other clauses: propagation refutes that none of its literals holds. If it does, the
// clause no longer takes part in propagation.
func (s *simplifier) isImplied(n int) bool {
	return s.p.askWithout(n, func() bool {
		return slices.ContainsFunc(s.p.clauses[n], func(l Literal) bool { return !s.p.Try(s.p.bit(l.Not())) })
	})
}
