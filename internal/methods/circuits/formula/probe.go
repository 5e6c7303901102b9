package formula

// Failed values, and consequences of both values of a variable.

import "github.com/basetensor/basetensor/internal/methods/circuits/sat"

// probe assumes values one by one. One that unit propagation refutes is excluded; a consequence of
// both values of a two-valued variable holds; and where one value of x implies a literal and the
// other its opposite the two are equivalent, which is noted.
func (s *simplifier) probe() bool {
	until, from, fixed := s.budget(probeShare), s.p.Work, len(s.p.Trail)
	var seen []sat.Literal
	mark := make([]bool, len(s.p.Value))
	for v, d := range s.f.Domains {
		if s.over(until, &from) {
			break
		}
		if d == 2 {
			s.probeBoth(v, mark, &seen)
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
	return len(s.p.Trail) > fixed || len(s.pair) > 0
}

// probeBoth probes the two values of a variable.
func (s *simplifier) probeBoth(v int, mark []bool, seen *[]sat.Literal) {
	l, m := s.f.Literal(v, 0), s.f.Literal(v, 1)
	if s.p.value(l) != 0 {
		return
	}
	at := len(s.p.Trail)
	possible := s.p.Try(s.p.bit(l))
	*seen = append((*seen)[:0], s.p.Trail[at:]...)
	s.p.Backtrack(0)
	if !possible {
		s.p.fix(m)
		return
	}

	for _, k := range *seen {
		mark[k] = true
	}
	var hold []Literal
	pairs := len(s.pair)
	if possible = s.p.Try(s.p.bit(m)); possible {
		for _, b := range s.p.Trail[at+1:] {
			k := s.p.literals[b]
			switch {
			case mark[b]:
				hold = append(hold, k)
			case mark[b.Not()] && s.f.Domains[s.p.variable[k.Atom()]] == 2:
				s.pair = append(s.pair, [2]Literal{m, k})
			}
		}
	}
	s.p.Backtrack(0)
	for _, k := range *seen {
		mark[k] = false
	}
	if !possible {
		s.p.fix(l)
		return
	}
	for _, k := range hold {
		s.p.fix(k)
	}
	for _, p := range s.pair[pairs:] { // m → k and l → ¬k, as clauses
		s.p.add([]Literal{p[0].Not(), p[1]})
		s.p.add([]Literal{p[0], p[1].Not()})
	}
}
