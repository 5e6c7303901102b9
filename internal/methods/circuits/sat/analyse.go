package sat

// Conflict analysis: the lemma of a conflict.
//
// A conflict is a clause that follows from the formula and whose literals are all false. Resolving it with the reasons of its literals on
// the last level, in the reverse order of the trail, leads to a clause with one literal of that level, at the latest the opposite of its
// decision, since decisions have no reasons. Where the decision itself was forced by an earlier lesson no literal of the level may be left,
// and the clause is a conflict of the levels below.

// Analyse resolves the conflict of Propagate at the current level: until one literal of the level is left, or with early unset until that
// is the decision, whose opposite the lemma says. False where none is: then the lemma is a conflict of the levels below, which can be
// analysed after Close.
func (s *Solver) Analyse(early bool) bool {
	s.lemma, s.Met = s.lemma[:0], s.Met[:0]
	here := 0
	for _, l := range s.conflict {
		here += s.mark(l)
	}
	s.Work += int64(len(s.conflict))
	at := len(s.Trail)
	var asserted Literal
	for here > 0 {
		at--
		l := s.Trail[at]
		v := l.Variable()
		if !s.seen[v] || s.level[v] != s.depth() {
			continue
		}
		if s.reason[v] == Decided || early && here == 1 {
			asserted = l.Not()
			break
		}
		here += s.resolve(v) - 1
	}

	s.minimise()
	if here == 0 {
		s.conflict = append(s.conflict[:0], s.lemma...)
		return false
	}
	s.lemma = append(s.lemma, asserted)
	s.arrange()
	return true
}

// mark marks the variable of a literal above the root, adds the literal to the lemma if it is of a lower level, and returns the number of
// such at the current one.
func (s *Solver) mark(l Literal) int {
	v := l.Variable()
	if s.seen[v] || s.level[v] == 0 {
		return 0
	}
	s.seen[v] = true
	s.Met = append(s.Met, l)
	if s.level[v] == s.depth() {
		return 1
	}
	s.lemma = append(s.lemma, l)
	return 0
}

// resolve marks the other literals of the reason of v, and returns the number of them at the
// current level.
func (s *Solver) resolve(v int32) (here int) {
	r := s.reason[v]
	if r&1 != 0 {
		return s.mark(Literal(r >> 1).Not())
	}
	at := r >> 1
	c := s.arena[at+clauseHeader:][:s.arena[at+clauseSize]]
	s.Work += int64(len(c))
	for _, l := range c {
		if Literal(l).Variable() != v {
			here += s.mark(Literal(l))
		}
	}
	if s.arena[at+clauseMark] > 2 {
		s.arena[at+clauseMark] = min(s.arena[at+clauseMark], levels(s, c))
	}
	return here
}

// minimise takes literals out of the lemma that its others imply: all other literals of their reason are marked or of the root. It
// takes all marks away.
func (s *Solver) minimise() {
	kept := 0
	for _, l := range s.lemma {
		if !s.implied(l.Variable()) {
			s.lemma[kept] = l
			kept++
		}
	}
	s.lemma = s.lemma[:kept]
	for _, l := range s.Met {
		s.seen[l.Variable()] = false
	}
}

// implied reports whether the reason of v has only v and marked variables.
func (s *Solver) implied(v int32) bool {
	r := s.reason[v]
	if r == Decided || r == Fact {
		return false
	}
	if r&1 != 0 {
		w := Literal(r >> 1).Variable()
		return s.seen[w] || s.level[w] == 0
	}
	at := r >> 1
	for _, l := range s.arena[at+clauseHeader:][:s.arena[at+clauseSize]] {
		if w := Literal(l).Variable(); w != v && !s.seen[w] && s.level[w] != 0 {
			return false
		}
	}
	return true
}

// arrange brings the asserted literal of the lemma, the last one, to the front, and the one with the highest level of the others behind it.
func (s *Solver) arrange() {
	last := len(s.lemma) - 1
	s.lemma[0], s.lemma[last] = s.lemma[last], s.lemma[0]
	for i := 2; i < len(s.lemma); i++ {
		if s.level[s.lemma[i].Variable()] > s.level[s.lemma[1].Variable()] {
			s.lemma[1], s.lemma[i] = s.lemma[i], s.lemma[1]
		}
	}
}

// levels returns the number of distinct levels among the literals of a clause.
func levels[L ~int32](s *Solver, c []L) int32 {
	s.stamp++
	n := int32(0)
	for _, l := range c {
		if at := s.level[Literal(l).Variable()]; s.stamps[at] != s.stamp {
			s.stamps[at] = s.stamp
			n++
		}
	}
	return n
}

// Learn keeps the lemma, whose first literal becomes true when the current level is taken back, and returns the reason that it is.
func (s *Solver) Learn() int32 {
	if len(s.lemma) == 1 {
		s.facts = append(s.facts, s.lemma[0])
		return Fact
	}
	if len(s.lemma) == 2 {
		if learnedBytes*s.pairs > s.Room/4 {
			return int32(s.lemma[1].Not())<<1 | 1 // the reason alone takes no room
		}
		s.pairs++
		s.Bytes += learnedBytes
		return s.Attach(s.lemma, 0)
	}
	r := s.Attach(s.lemma, levels(s, s.lemma))
	s.learned = append(s.learned, r>>1)
	s.Bytes += s.bytes(r >> 1)
	return r
}
