package formula

// Failed values, and consequences of both values of a variable.

import "github.com/basetensor/basetensor/internal/methods/circuits/sat"

// probe assumes values one by one, and reports whether that has found anything. A value that unit propagation refutes is excluded. If a
// variable has two values, see probeBoth.
func (s *simplifier) probe() bool {
	until, workBefore, fixedBefore := s.budget(probeShare), s.p.Work, len(s.p.Trail)
	var consequences []sat.Literal
	isConsequence := make([]bool, len(s.p.Value))
	for v, d := range s.f.Domains {
		if s.over(until, &workBefore) {
			break
		}
		if d == 2 {
			s.probeBoth(v, isConsequence, &consequences)
			continue
		}
		for a := range d {
			if l := s.f.Literal(v, a); s.p.value(l) == 0 && !s.p.Possible(s.p.bit(l)) {
				s.p.fix(l.Not())
			}
			if s.p.False {
				return true
			}
		}
	}
	return len(s.p.Trail) > fixedBefore || len(s.equivalent) > 0
}

// probeBoth assumes the two values of variable v one after the other. A value that unit propagation refutes is excluded. A literal that
// both values imply holds. If one value implies a literal and the other one its opposite, value and literal are equivalent, and get clauses
// that state it. isConsequence (all false, by literal) and consequences are working space.
func (s *simplifier) probeBoth(v int, isConsequence []bool, consequences *[]sat.Literal) {
	zero, one := s.f.Literal(v, 0), s.f.Literal(v, 1)
	if s.p.value(zero) != 0 {
		return
	}
	trailBefore := len(s.p.Trail)
	isPossible := s.p.Try(s.p.bit(zero))
	*consequences = append((*consequences)[:0], s.p.Trail[trailBefore:]...)
	s.p.Backtrack(0)
	if !isPossible {
		s.p.fix(one)
		return
	}

	for _, b := range *consequences {
		isConsequence[b] = true
	}
	var implied []Literal // by both values
	pairsBefore := len(s.equivalent)
	if isPossible = s.p.Try(s.p.bit(one)); isPossible {
		for _, b := range s.p.Trail[trailBefore+1:] {
			l := s.p.literalOf[b]
			switch {
			case isConsequence[b]:
				implied = append(implied, l)
			case isConsequence[b.Not()] && s.f.Domains[s.p.variableOf[l.Atom()]] == 2:
				s.equivalent = append(s.equivalent, [2]Literal{one, l})
			}
		}
	}
	s.p.Backtrack(0)
	for _, b := range *consequences {
		isConsequence[b] = false
	}
	if !isPossible {
		s.p.fix(zero)
		return
	}
	for _, l := range implied {
		s.p.fix(l)
	}
	for _, p := range s.equivalent[pairsBefore:] { // one → l and zero → ¬l, as clauses
		s.p.addClause([]Literal{p[0].Not(), p[1]})
		s.p.addClause([]Literal{p[0], p[1].Not()})
	}
}
