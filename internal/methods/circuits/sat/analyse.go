package sat

// Conflict analysis: the lemma of a conflict.
//
// A conflict is a clause that follows from the formula and whose literals are all false. Resolving it with the reasons of its literals on
// the last level, in the reverse order of the trail, leads to a clause with one literal of that level, at the latest the opposite of its
// decision, since decisions have no reasons. If an earlier lemma has forced the decision, no literal of the level may remain. Then
// the clause is a conflict of the levels below.

// Analyse makes s.lemma, the clause to learn from s.conflict: a clause whose literals are all false, as Propagate has found. It replaces
// literals of the current level by the other literals of the clauses that have made them false, their reasons (resolution). In the end one
// literal of the level is left: the asserted one, the lemma's first literal. If stopsEarly is set, it stops as soon as one is left; else it
// goes on until that is the opposite of the level's decision. s.MetLiterals are the literals that it has met.
//
// It returns false if no literal of the level is left. Then the lemma is a conflict of the levels below; it becomes s.conflict, to be
// analysed after CloseLevel.
func (s *Solver) Analyse(stopsEarly bool) (isAsserting bool) {
	// The clause is s.lemma, which has literals of lower levels, and onLevel literals of the current level.
	s.lemma, s.MetLiterals = s.lemma[:0], s.MetLiterals[:0]
	onLevel := 0
	for _, l := range s.conflict {
		onLevel += s.addToClause(l)
	}
	s.Work += int64(len(s.conflict))

	// Resolve with reasons, in the reverse order of the trail.
	position := len(s.Trail)
	var asserted Literal
	for onLevel > 0 {
		position--
		l := s.Trail[position]
		v := l.Variable()
		if !s.seen[v] || s.level[v] != s.depth() { // the clause does not have it
			continue
		}
		if s.reason[v] == Decided || stopsEarly && onLevel == 1 {
			asserted = l.Not()
			break
		}
		onLevel += s.resolve(v) - 1 // replaces the literal by those of its reason
	}

	s.minimise()
	if onLevel == 0 {
		s.conflict = append(s.conflict[:0], s.lemma...)
		return false
	}
	s.lemma = append(s.lemma, asserted)
	s.arrange()
	return true
}

// addToClause adds a literal to the clause that is being resolved, unless its variable was met before or is a fact. The level of a literal
// is the number of decisions under which it got its value, 0 for facts; the current level is the number of all decisions. A literal of a
// lower level goes to s.lemma. addToClause returns 1 if the literal is new and of the current level, and 0 otherwise.
func (s *Solver) addToClause(l Literal) int {
	v := l.Variable()
	if s.seen[v] || s.level[v] == 0 {
		return 0
	}
	s.seen[v] = true
	s.MetLiterals = append(s.MetLiterals, l)
	if s.level[v] == s.depth() {
		return 1
	}
	s.lemma = append(s.lemma, l)
	return 0
}

// resolve replaces the literal of variable v in the clause that is being resolved by the other literals of v's reason, the clause that gave
// v its value (addToClause). It returns how many of them are new and got their values since the last decision (current level). The mark of
// a learned clause is the number of levels of its literals: it falls if the literals of the reason have fewer levels now. Marks of clauses
// of the formula are 0.
func (s *Solver) resolve(v int32) (onLevel int) {
	r := s.reason[v]
	if isLiteralReason(r) {
		return s.addToClause(reasonLiteral(r).Not())
	}
	clause := reasonClause(r)
	c := s.literalsAt(clause)
	s.Work += int64(len(c))
	for _, l := range c {
		if Literal(l).Variable() != v {
			onLevel += s.addToClause(Literal(l))
		}
	}
	if s.arena[clause+clauseMark] > 2 { // neither a clause of the formula nor one whose mark is low already
		s.arena[clause+clauseMark] = min(s.arena[clause+clauseMark], countLevels(s, c))
	}
	return onLevel
}

// minimise removes literals from the lemma, the clause to learn, that follow from its other literals (isImplied). The reason of a literal
// is the clause that gave it its value. A literal is removed if all other literals of its reason are facts, or were met by the analysis.
// Then minimise clears s.seen, the marks of the variables that were met.
func (s *Solver) minimise() {
	kept := 0
	for _, l := range s.lemma {
		if !s.isImplied(l.Variable()) {
			s.lemma[kept] = l
			kept++
		}
	}
	s.lemma = s.lemma[:kept]
	for _, l := range s.MetLiterals {
		s.seen[l.Variable()] = false
	}
}

// isImplied reports whether the literal of variable v follows from others of the lemma: v has a reason, the clause that gave it its value,
// and all other variables of the reason were met in the analysis (seen) or are facts (level 0).
func (s *Solver) isImplied(v int32) bool {
	r := s.reason[v]
	if r == Decided || r == Fact {
		return false
	}
	if isLiteralReason(r) {
		w := reasonLiteral(r).Variable()
		return s.seen[w] || s.level[w] == 0
	}
	clause := reasonClause(r)
	for _, l := range s.literalsAt(clause) {
		if w := Literal(l).Variable(); w != v && !s.seen[w] && s.level[w] != 0 {
			return false
		}
	}
	return true
}

// arrange orders the lemma, the clause to learn, as Attach demands. The last literal, which is the asserted one, comes first. Of all other
// literals, that of the highest level, which got its value under the most decisions, comes second.
func (s *Solver) arrange() {
	last := len(s.lemma) - 1
	s.lemma[0], s.lemma[last] = s.lemma[last], s.lemma[0]
	for i := 2; i < len(s.lemma); i++ {
		if s.level[s.lemma[i].Variable()] > s.level[s.lemma[1].Variable()] {
			s.lemma[1], s.lemma[i] = s.lemma[i], s.lemma[1]
		}
	}
}

// countLevels returns the number of different levels among the literals of a clause. The level of a literal is the number of decisions
// under which it got its value. s.stamp is a new number for each count: s.stamps[level] is s.stamp if the present count has met the level.
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

// Learn adds the lemma, the clause that Analyse has made, to the clauses. Once the current level is closed, the lemma implies its first
// literal; Learn returns the reason for that assignment. A lemma of one literal becomes a fact. Lemmas of two literals take at most a
// quarter of the memory for learned clauses: further ones are not added. Their reason is the other literal, which needs no clause.
func (s *Solver) Learn() int32 {
	if len(s.lemma) == 1 {
		s.facts = append(s.facts, s.lemma[0])
		return Fact
	}
	if len(s.lemma) == 2 {
		if learnedBytes*s.pairs > s.LearnedBytesLimit/4 {
			return literalReason(s.lemma[1].Not()) // not added
		}
		s.pairs++
		s.LearnedBytes += learnedBytes
		return s.Attach(s.lemma, 0) // lemmas of two literals are never forgotten, as clauses of the formula
	}
	r := s.Attach(s.lemma, countLevels(s, s.lemma))
	s.learned = append(s.learned, reasonClause(r))
	s.LearnedBytes += s.bytesOf(reasonClause(r))
	return r
}
