package compiler

// Conflict analysis: the lemma of a conflict.
//
// A conflict is a clause that follows from the formula and whose literals are all false. Resolving it with the reasons
// of its literals on the last level, in the reverse order of the trail, leads to a clause with one literal of that level: the
// opposite of its decision, since decisions have no reasons. Where the decision itself was forced by an earlier lesson no literal of
// the level is left, and the clause is a conflict of the levels below.

// analyse resolves s.conflict at the current level. It reports whether a literal of the level is left: then s.lemma is
// a clause that says this literal (first), the second one has the highest level of the others. Otherwise s.conflict is
// a conflict of the levels below.
func (s *solver) analyse() bool {
	s.lemma = s.lemma[:0]
	here := s.collect(s.conflict)
	at := len(s.trail)
	asserted := noLit
	for here > 0 {
		at--
		l := s.trail[at]
		v := l.variable()
		if !s.seen[v] || s.level[v] != s.depth {
			continue
		}
		if s.reason[v] == decided {
			asserted = l.not()
			s.seen[v] = false
			break
		}
		s.seen[v] = false
		here += s.resolve(v) - 1
	}

	s.minimise()
	if asserted == noLit {
		s.conflict = append(s.conflict[:0], s.lemma...)
		return false
	}
	s.lemma = append(s.lemma, asserted)
	s.arrange()
	return true
}

// collect marks the variables of false literals above the root, adds the ones of lower levels to
// the lemma, and returns the number at the current level.
func (s *solver) collect(c []lit) (here int) {
	s.work += int64(len(c))
	for _, l := range c {
		here += s.mark(l)
	}
	return here
}

// mark is collect for one literal.
func (s *solver) mark(l lit) int {
	v := l.variable()
	if s.seen[v] || s.level[v] == 0 {
		return 0
	}
	s.seen[v] = true
	s.activity[l]++
	if s.level[v] == s.depth {
		return 1
	}
	s.lemma = append(s.lemma, l)
	return 0
}

// resolve marks the other literals of the reason of v, and returns the number of them at the
// current level.
func (s *solver) resolve(v int32) (here int) {
	r := s.reason[v]
	if r&1 != 0 {
		return s.mark(lit(r >> 1).not())
	}
	at := r >> 1
	c := s.arena[at+clauseHeader:][:s.arena[at+clauseSize]]
	s.work += int64(len(c))
	for _, l := range c {
		if lit(l).variable() != v {
			here += s.mark(lit(l))
		}
	}
	if s.arena[at+clauseMark] > 2 {
		s.arena[at+clauseMark] = min(s.arena[at+clauseMark], s.levels(c))
	}
	return here
}

// minimise takes literals out of the lemma that its others imply: all other literals of their reason are marked or of the root. It
// takes all marks away.
func (s *solver) minimise() {
	s.dropped = append(s.dropped[:0], s.lemma...)
	kept := 0
	for _, l := range s.lemma {
		if !s.implied(l.variable()) {
			s.lemma[kept] = l
			kept++
		}
	}
	s.lemma = s.lemma[:kept]
	for _, l := range s.dropped {
		s.seen[l.variable()] = false
	}
}

// implied reports whether the reason of v has only v and marked variables.
func (s *solver) implied(v int32) bool {
	r := s.reason[v]
	if r == decided || r == fact {
		return false
	}
	if r&1 != 0 {
		w := lit(r >> 1).variable()
		return s.seen[w] || s.level[w] == 0
	}
	at := r >> 1
	for _, l := range s.arena[at+clauseHeader:][:s.arena[at+clauseSize]] {
		if w := lit(l).variable(); w != v && !s.seen[w] && s.level[w] != 0 {
			return false
		}
	}
	return true
}

// arrange brings the asserted literal of the lemma, the last one, to the front, and the one with the highest level of the others behind it.
func (s *solver) arrange() {
	last := len(s.lemma) - 1
	s.lemma[0], s.lemma[last] = s.lemma[last], s.lemma[0]
	for i := 2; i < len(s.lemma); i++ {
		if s.level[s.lemma[i].variable()] > s.level[s.lemma[1].variable()] {
			s.lemma[1], s.lemma[i] = s.lemma[i], s.lemma[1]
		}
	}
}

// levels returns the number of distinct levels among the literals of a clause.
func (s *solver) levels(c []int32) int32 {
	s.stamp++
	n := int32(0)
	for _, l := range c {
		if at := s.level[lit(l).variable()]; s.levelSeen[at] != s.stamp {
			s.levelSeen[at] = s.stamp
			n++
		}
	}
	return n
}

// learn keeps the lemma, whose first literal becomes true when the current level is taken back, and returns the reason that it is.
func (s *solver) learn() int32 {
	if len(s.lemma) == 1 {
		s.facts = append(s.facts, s.lemma[0])
		return fact
	}
	if len(s.lemma) == 2 {
		if learnedBytes*s.pairs > s.room/4 {
			return int32(s.lemma[1].not())<<1 | 1 // the reason alone takes no room
		}
		s.pairs++
		return s.attach(s.lemma, 0)
	}
	s.scratch = s.scratch[:0]
	for _, l := range s.lemma {
		s.scratch = append(s.scratch, int32(l))
	}
	r := s.attach(s.lemma, s.levels(s.scratch))
	s.learned = append(s.learned, r>>1)
	return r
}
