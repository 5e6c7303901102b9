package sat

// Conflict analysis: the lemma of a conflict.
//
// A conflict is a clause that follows from the formula and whose literals are all false. Resolving it with the reasons of its literals on
// the last level, in the reverse order of the trail, leads to a clause with one literal of that level, at the latest the opposite of its
// decision, since decisions have no reasons. If an earlier lemma has forced the decision, no literal of the level may remain. Then
// the clause is a conflict of the levels below.

// Analyse makes a lemma of the conflict of Propagate. It resolves the conflict until one literal of the current level is left, the asserted
// one. If early is false, it goes on until that literal is the opposite of the level's decision. It returns false if no literal of the
// level is left. Then the lemma is a conflict of the levels below, which can be analysed after Close.
func (s *Solver) Analyse(early bool) (isAsserting bool) {
	s.lemma, s.Met = s.lemma[:0], s.Met[:0]
	open := 0 // literals of the current level in the clause so far
	for _, l := range s.conflict {
		open += s.meet(l)
	}
	s.Work += int64(len(s.conflict))
	position := len(s.Trail)
	var asserted Literal
	for open > 0 {
		position--
		l := s.Trail[position]
		v := l.Variable()
		if !s.seen[v] || s.level[v] != s.depth() {
			continue
		}
		if s.reason[v] == Decided || early && open == 1 {
			asserted = l.Not()
			break
		}
		open += s.resolve(v) - 1
	}

	s.minimise()
	if open == 0 {
		s.conflict = append(s.conflict[:0], s.lemma...)
		return false
	}
	s.lemma = append(s.lemma, asserted)
	s.arrange()
	return true
}

// meet takes a literal into the clause that is being resolved, unless its variable was met before or is a fact (level 0). A literal of a
// lower level becomes one of the lemma. It returns 1 if the literal is of the current level and new, and 0 otherwise.
func (s *Solver) meet(l Literal) int {
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

// resolve meets the other literals of the reason of variable v, and returns how many new ones are of the current level. The mark of a
// learned clause falls to the number of levels of its literals now.
func (s *Solver) resolve(v int32) (open int) {
	r := s.reason[v]
	if r&1 != 0 {
		return s.meet(Literal(r >> 1).Not())
	}
	clause := r >> 1
	c := s.arena[clause+clauseHeader:][:s.arena[clause+clauseSize]]
	s.Work += int64(len(c))
	for _, l := range c {
		if Literal(l).Variable() != v {
			open += s.meet(Literal(l))
		}
	}
	if s.arena[clause+clauseMark] > 2 {
		s.arena[clause+clauseMark] = min(s.arena[clause+clauseMark], countLevels(s, c))
	}
	return open
}

// minimise removes literals from the lemma that its other literals imply: all other literals of their reason were met, or are facts. Then
// it forgets which variables were met.
func (s *Solver) minimise() {
	kept := 0
	for _, l := range s.lemma {
		if !s.isImplied(l.Variable()) {
			s.lemma[kept] = l
			kept++
		}
	}
	s.lemma = s.lemma[:kept]
	for _, l := range s.Met {
		s.seen[l.Variable()] = false
	}
}

// isImplied reports whether v has a reason, all of whose other variables were met or are facts.
func (s *Solver) isImplied(v int32) bool {
	r := s.reason[v]
	if r == Decided || r == Fact {
		return false
	}
	if r&1 != 0 {
		w := Literal(r >> 1).Variable()
		return s.seen[w] || s.level[w] == 0
	}
	clause := r >> 1
	for _, l := range s.arena[clause+clauseHeader:][:s.arena[clause+clauseSize]] {
		if w := Literal(l).Variable(); w != v && !s.seen[w] && s.level[w] != 0 {
			return false
		}
	}
	return true
}

// arrange moves the asserted literal of the lemma, which is the last, to the front, and the literal with the highest level among the others
// to the second place.
func (s *Solver) arrange() {
	last := len(s.lemma) - 1
	s.lemma[0], s.lemma[last] = s.lemma[last], s.lemma[0]
	for i := 2; i < len(s.lemma); i++ {
		if s.level[s.lemma[i].Variable()] > s.level[s.lemma[1].Variable()] {
			s.lemma[1], s.lemma[i] = s.lemma[i], s.lemma[1]
		}
	}
}

// countLevels returns the number of distinct levels among the literals of a clause.
func countLevels[L ~int32](s *Solver, c []L) int32 {
	s.stamp++
	n := int32(0)
	for _, l := range c {
		if level := s.level[Literal(l).Variable()]; s.stamps[level] != s.stamp {
			s.stamps[level] = s.stamp
			n++
		}
	}
	return n
}

// Learn keeps the lemma and returns it as the reason of its first literal, which becomes true when the current level is closed. A lemma of
// one literal becomes a fact. One of two literals is not kept if such lemmas take a quarter of the room; its reason needs no clause.
func (s *Solver) Learn() int32 {
	if len(s.lemma) == 1 {
		s.facts = append(s.facts, s.lemma[0])
		return Fact
	}
	if len(s.lemma) == 2 {
		if learnedBytes*s.pairs > s.Room/4 {
			return int32(s.lemma[1].Not())<<1 | 1 // not kept
		}
		s.pairs++
		s.Bytes += learnedBytes
		return s.Attach(s.lemma, 0)
	}
	r := s.Attach(s.lemma, countLevels(s, s.lemma))
	s.learned = append(s.learned, r>>1)
	s.Bytes += s.bytesOf(r >> 1)
	return r
}
