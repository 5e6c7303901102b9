package formula

// Superfluous literals, and superfluous clauses, by unit propagation.

import (
	"cmp"
	"slices"
)

// longestFirst returns the numbers of the clauses that are not removed, longer clauses first.
func (s *simplifier) longestFirst() []int {
	var list []int
	for n := range s.prop.clauses {
		if !s.prop.removed[n] {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(m, n int) int { return cmp.Compare(len(s.prop.clauses[n]), len(s.prop.clauses[m])) })
	return list
}

// vivify shortens clauses to the literals that are needed (neededLiterals), the longest clauses first, within its share of the work. It
// reports whether it has shortened one.
// Source: C. Piette, Y. Hamadi and L. Saïs, Vivifying propositional clausal formulae (2008).
func (s *simplifier) vivify() bool {
	workEnd, workBefore := s.workEndFor(vivifyShare), s.prop.Work
	hasFound := false
	for _, n := range s.longestFirst() {
		if s.isOver(workEnd, &workBefore) {
			break
		}
		if s.prop.removed[n] || len(s.prop.clauses[n]) < 3 { // shorter ones would be facts, which probing finds
			continue
		}
		if shorter := s.neededLiterals(n); len(shorter) < len(s.prop.clauses[n]) {
			s.prop.replace(n, shorter)
			hasFound = true
		}
	}
	return hasFound
}

// neededLiterals returns literals of clause n that, as a clause, can replace clause n. With clause n left out, it assumes that its
// literals do not hold, one after the other, and propagates each assumption.
//
//   - If that leads to a contradiction, the literals so far are a clause that follows from the other clauses.
//   - If propagation shows that a literal holds, the literals so far, with this one, are a clause that follows from the other clauses.
//   - If propagation shows that a literal does not hold, it is not needed.
func (s *simplifier) neededLiterals(n int) (needed []Literal) {
	s.prop.askWithout(n, func() bool {
		for _, l := range s.prop.clauses[n] {
			value := s.prop.value(l)
			isRefuted, isImplied := value < 0, value > 0
			if !isRefuted {
				needed = append(needed, l)
			}
			if isImplied || !s.prop.Assume(s.prop.bit(l.Not())) {
				break
			}
		}
		return false // the clause takes part in propagation again
	})
	return needed
}

// removeImplied removes clauses that follow from all other clauses by unit propagation, longer ones first, within its share of the work.
// The formula has the same assignments without them.
func (s *simplifier) removeImplied() {
	workEnd, workBefore := s.workEndFor(impliedShare), s.prop.Work
	for _, n := range s.longestFirst() {
		if s.isOver(workEnd, &workBefore) {
			break
		}
		if !s.prop.removed[n] && s.isImplied(n) {
			s.prop.removed[n] = true
		}
	}
}

// isImplied reports whether clause n follows from the other clauses: propagation refutes that none of its literals holds. If so, the clause
// takes no further part in propagation.
func (s *simplifier) isImplied(n int) bool {
	return s.prop.askWithout(n, func() bool {
		return slices.ContainsFunc(s.prop.clauses[n], func(l Literal) bool { return !s.prop.Assume(s.prop.bit(l.Not())) })
	})
}
