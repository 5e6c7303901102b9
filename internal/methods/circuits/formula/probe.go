package formula

// Failed values, and consequences of both values of a variable.

import "github.com/basetensor/basetensor/internal/methods/circuits/sat"

// probe assumes the values of variables one by one, and excludes each value that unit propagation refutes. If a variable has two values, it
// also uses what both of them imply (probeBoth). It reports whether it has found anything: a fact, which extends the trail, or an
// equivalence. It ends early when its share of the work is used up.
func (s *simplifier) probe() bool {
	workEnd, workBefore, fixedBefore := s.workEndFor(probeShare), s.prop.Work, len(s.prop.Trail)
	var consequences []sat.Literal                   // buffer of probeBoth
	isConsequence := make([]bool, len(s.prop.Value)) // buffer of probeBoth
	for v, d := range s.f.Domains {
		if s.isOver(workEnd, &workBefore) {
			break
		}
		if d == 2 {
			s.probeBoth(v, isConsequence, &consequences)
			continue
		}
		for a := range d {
			if l := s.f.Literal(v, a); s.prop.value(l) == 0 && !s.prop.IsPossible(s.prop.bit(l)) {
				s.prop.fix(l.Not())
			}
			if s.prop.IsContradictory {
				return true
			}
		}
	}
	return len(s.prop.Trail) > fixedBefore || len(s.equivalent) > 0
}

// probeBoth assumes the two values of variable v one after the other. It excludes a value that unit propagation refutes, and fixes
// literals that both values imply. If value 1 implies a literal and value 0 the opposite of the literal, then v = 1 and the literal are
// equivalent: it records the pair in s.equivalent and adds clauses that state this. It does nothing if v has a value. isConsequence (by
// Boolean literal, all false before and after) and consequences are buffers.
func (s *simplifier) probeBoth(v int, isConsequence []bool, consequences *[]sat.Literal) {
	zero, one := s.f.Literal(v, 0), s.f.Literal(v, 1)
	if s.prop.value(zero) != 0 {
		return
	}

	// What value 0 implies: the literals that its propagation adds to the trail.
	trailBefore := len(s.prop.Trail)
	isZeroPossible := s.prop.Assume(s.prop.bit(zero))
	*consequences = append((*consequences)[:0], s.prop.Trail[trailBefore:]...)
	s.prop.Backtrack(0)
	if !isZeroPossible {
		s.prop.fix(one)
		return
	}

	// What value 1 implies, in comparison.
	for _, b := range *consequences {
		isConsequence[b] = true
	}
	implied, equivalent, isPossible := s.compareConsequences(one, isConsequence)
	for _, b := range *consequences {
		isConsequence[b] = false
	}
	if !isPossible {
		s.prop.fix(zero)
		return
	}

	for _, l := range implied {
		s.prop.fix(l)
	}
	for _, l := range equivalent { // one → l and zero → ¬l, as clauses
		s.equivalent = append(s.equivalent, [2]Literal{one, l})
		s.prop.addClause([]Literal{one.Not(), l})
		s.prop.addClause([]Literal{one, l.Not()})
	}
}

// compareConsequences assumes that a variable of two values has the value 1, and takes the assumption back. isConsequence marks what value
// 0 implies. It returns the literals that value 1 implies, too, and those whose opposites value 0 implies, if they are of variables of two
// values. isPossible is false if unit propagation refutes value 1.
func (s *simplifier) compareConsequences(one Literal, isConsequence []bool) (implied, equivalent []Literal, isPossible bool) {
	defer s.prop.Backtrack(0)
	trailBefore := len(s.prop.Trail)
	if !s.prop.Assume(s.prop.bit(one)) {
		return nil, nil, false
	}
	for _, b := range s.prop.Trail[trailBefore+1:] { // without the assumption itself
		l := s.prop.literalOf[b]
		switch {
		case isConsequence[b]:
			implied = append(implied, l)
		case isConsequence[b.Not()] && s.f.Domains[s.prop.variableOf[l.Atom()]] == 2:
			equivalent = append(equivalent, l)
		}
	}
	return implied, equivalent, true
}
