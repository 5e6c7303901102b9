// Package sat finds the consequences of decisions about clauses, and learns clauses from conflicts. A Solver is at the service of a search
// that decides for itself; a Satisfier answers whether the clauses can hold together with assumptions.
//
// Work is counted and never timed; the same calls give the same bits everywhere.
//
// Sources: N. Eén and N. Sörensson, An extensible SAT-solver (SAT 2003); A. Biere et al., Handbook of Satisfiability (2009),
// chapter 4.
package sat

import (
	"math"
	"slices"
)

// Literal is a Boolean variable or its negation: twice the number of the variable, and one more if it is negated.
type Literal int32

// positive returns the literal that variable v is true.
func positive(v int32) Literal { return Literal(2 * v) }

// Not returns the opposite literal.
func (l Literal) Not() Literal { return l ^ 1 }

// Variable returns the number of the variable.
func (l Literal) Variable() int32 { return int32(l) >> 1 }

// IsPositive reports whether l is not negated.
func (l Literal) IsPositive() bool { return l&1 == 0 }

// A reason states why a literal of the trail is true: Decided, Fact, clauseReason of a clause that has become unit, or literalReason of a
// literal that implies it by a binary clause or as another value of its group.
const (
	Decided int32 = -1 // no reason
	Fact    int32 = -2 // it follows from the formula alone; its level is 0
)

// clauseReason returns the reason that stands for the clause at a position of the arena.
func clauseReason(clause int32) int32 { return clause << 1 }

// literalReason returns the reason that stands for a literal.
func literalReason(l Literal) int32 { return int32(l)<<1 | 1 }

// isLiteralReason reports whether a reason other than Decided and Fact stands for a literal. If not, it stands for a clause.
func isLiteralReason(reason int32) bool { return reason&1 != 0 }

// isClauseReason reports whether a reason stands for a clause. Decided and Fact do not.
func isClauseReason(reason int32) bool { return reason >= 0 && reason&1 == 0 }

// reasonClause returns the position in the arena of the clause that a reason stands for.
func reasonClause(reason int32) int32 { return reason >> 1 }

// reasonLiteral returns the literal that a reason stands for: the other literal of a clause of two.
func reasonLiteral(reason int32) Literal { return Literal(reason >> 1) }

// Layout of a clause in the arena.
const (
	clauseSize   = 0 // number of literals
	clauseMark   = 1 // 0 for a clause of the formula; otherwise the number of levels when it was learned or last used
	clauseHeader = 2
)

// watch is a clause that watches a literal.
type watch struct {
	clause  int32   // position in the arena
	blocker Literal // another literal of the clause: if it is true, the clause need not be looked at
}

// Solver holds the assignment and its consequences: clauses watched by two literals each, implications of binary clauses, and
// groups of variables of which exactly one is true.
type Solver struct {
	Value             []int8 // by literal: 1 true, −1 false, 0 open
	Trail             []Literal
	Implies           [][]Literal // by literal: its consequences when true, without those by its group
	TrueMember        []int32     // by group of several variables: the position of the true one in it, or −1
	MetLiterals       []Literal   // literals of the conflict that was analysed last, and of the reasons that it was resolved with
	Work              int64       // literals and watches looked at
	LearnedLimit      int         // number of learned clauses at which some are forgotten
	LearnedBytesLimit int64       // bytes that learned clauses may take
	LearnedBytes      int64       // bytes that learned clauses take

	first    []int32   // by group: its first variable; one more at the end
	group    []int32   // by variable: its group
	hasGroup []bool    // by variable: its group has others
	level    []int32   // by variable: the level on which it got its value
	reason   []int32   // by variable: why it has its value
	head     int       // the trail is propagated up to here
	marks    []int32   // by level above 0: where its literals begin on the trail
	watches  [][]watch // by literal: the long clauses that watch it
	arena    []int32   // all clauses of three or more literals, one after the other
	conflict []Literal // literals that are all false though the formula demands that one is true
	lemma    []Literal // the clause that Analyse made of the last conflict
	facts    []Literal // literals that follow from the formula alone, found below the root
	seen     []bool    // by variable: it was met in the present analysis
	stamps   []int32   // by level: the stamp of the last count that met it
	stamp    int32
	pairs    int64   // learned clauses of two literals
	hasMoved bool    // clauses were forgotten, and others have moved
	learned  []int32 // places of the others in the arena
}

// learnedFirst is the number of learned clauses at which some are forgotten for the first time; a
// 16th more every time. learnedLevels is the maximum number of levels of clauses that stay, while
// there is room for them.
const (
	learnedFirst  = 8192
	learnedLevels = 2
)

// New returns a solver without clauses. Group g has the variables first[g] ≤ v < first[g+1]. Exactly one variable of a group of several
// is true. A group of one variable is not restricted.
func New(first []int32) *Solver {
	groups := len(first) - 1
	n := first[groups]
	s := &Solver{
		first: first, group: make([]int32, n), hasGroup: make([]bool, n), TrueMember: make([]int32, groups),
		Value: make([]int8, 2*n), level: make([]int32, n), reason: make([]int32, n), // a variable has two literals
		Implies: make([][]Literal, 2*n), watches: make([][]watch, 2*n), seen: make([]bool, n), stamps: make([]int32, n+1),
		LearnedLimit: learnedFirst, LearnedBytesLimit: math.MaxInt64,
	}

	// Exactly one variable of a group is true: a clause demands one, and propagateBinary excludes two.
	for g := range s.TrueMember {
		s.TrueMember[g] = -1
		var atLeastOne []Literal
		for v := first[g]; v < first[g+1]; v++ {
			s.group[v], s.hasGroup[v] = int32(g), first[g+1]-first[g] > 1
			atLeastOne = append(atLeastOne, positive(v))
		}
		if len(atLeastOne) > 1 {
			s.Attach(atLeastOne, 0) // 0: a clause of the formula, not a learned one
		}
	}
	return s
}

// Attach adds a clause of two or more literals to propagation. It returns the reason of the clause's first literal, for the case that the
// clause implies it. If some literals are false, the second one must have the highest level (the number of decisions under which a literal
// got its value) of all but the first. mark is 0 for a clause of the formula, and otherwise the number of levels of its literals. A clause
// of two literals is kept as implications; a longer one has its length, mark and literals in s.arena.
func (s *Solver) Attach(c []Literal, mark int32) int32 {
	if len(c) == 2 {
		reason := literalReason(c[1].Not())
		s.Reattach(c, reason)
		return reason
	}
	reason := clauseReason(int32(len(s.arena)))
	s.arena = append(s.arena, int32(len(c)), mark)
	for _, l := range c {
		s.arena = append(s.arena, int32(l))
	}
	s.Reattach(c, reason)
	return reason
}

// Reattach adds clause c to propagation again after Detach: a binary clause as two implications, a longer one to the watches of its first
// two literals, the lists of clauses to look at when these become false. reason is the result of Attach for the clause.
func (s *Solver) Reattach(c []Literal, reason int32) {
	if isLiteralReason(reason) { // a binary clause
		s.Implies[c[0].Not()] = append(s.Implies[c[0].Not()], c[1])
		s.Implies[c[1].Not()] = append(s.Implies[c[1].Not()], c[0])
		return
	}
	clause := reasonClause(reason)
	literals := s.literalsAt(clause)
	a, b := Literal(literals[0]), Literal(literals[1])
	s.watches[a] = append(s.watches[a], watch{clause, b})
	s.watches[b] = append(s.watches[b], watch{clause, a})
}

// Detach removes a clause from propagation. c has its literals, and reason is the result of Attach for it: a literal for a clause of two
// literals, which is kept as two implications, otherwise the clause's position in the arena. The clause must not be the reason of a literal
// of the trail. It panics if clauses were forgotten (Forget), since the remaining ones have moved in the arena then.
func (s *Solver) Detach(c []Literal, reason int32) {
	if s.hasMoved {
		panic("sat: a clause is to be detached after others were forgotten")
	}
	if isLiteralReason(reason) { // a binary clause
		for i, l := range c {
			list := &s.Implies[l.Not()]
			k := slices.Index(*list, c[1-i])
			*list = slices.Delete(*list, k, k+1)
			s.Work += int64(k)
		}
		return
	}
	clause := reasonClause(reason)
	for _, l := range s.literalsAt(clause)[:2] { // the literals that watch it
		list := &s.watches[l]
		k := slices.IndexFunc(*list, func(w watch) bool { return w.clause == clause })
		*list = slices.Delete(*list, k, k+1)
		s.Work += int64(k)
	}
}

// literalsAt returns the literals of the clause at a position of the arena. They can be changed.
func (s *Solver) literalsAt(clause int32) []int32 {
	return s.arena[clause+clauseHeader:][:s.arena[clause+clauseSize]]
}

// depth returns the current level: the number of levels that are open.
func (s *Solver) depth() int32 { return int32(len(s.marks)) }

// OpenLevel starts a new level. CloseLevel takes back all that is assigned from here on.
func (s *Solver) OpenLevel() { s.marks = append(s.marks, int32(len(s.Trail))) }

// Assign makes an open literal true on the current level, the number of decisions so far, or on level 0 if the reason is Fact. It puts it
// on the trail, the list of true literals. A group has variables of which exactly one is true: if the literal makes one true, s.TrueMember
// has its place in the group.
func (s *Solver) Assign(l Literal, reason int32) {
	s.Value[l] = 1
	s.Value[l.Not()] = -1
	v := l.Variable()
	s.reason[v] = reason
	s.level[v] = s.depth()
	if reason == Fact {
		s.level[v] = 0
	}
	if l.IsPositive() && s.hasGroup[v] {
		g := s.group[v]
		s.TrueMember[g] = v - s.first[g]
	}
	s.Trail = append(s.Trail, l)
}

// CloseLevel takes the last level back: the literals that were assigned on it are open again.
func (s *Solver) CloseLevel() {
	start := s.marks[s.depth()-1] // of the level on the trail
	for _, l := range s.Trail[start:] {
		s.Value[l] = 0
		s.Value[l.Not()] = 0
		if v := l.Variable(); l.IsPositive() && s.hasGroup[v] {
			s.TrueMember[s.group[v]] = -1 // of the group, exactly one of whose variables is to be true, none is now
		}
	}
	s.Trail = s.Trail[:start]
	s.head = int(start)
	s.marks = s.marks[:s.depth()-1]
}

// Propagate assigns the consequences of the literals on the trail (unit propagation). It returns false on a conflict: s.conflict has a
// clause that has become false.
func (s *Solver) Propagate() bool {
	// Facts that were learned below the root were taken back with their level.
	for _, l := range s.facts {
		if s.Value[l] < 0 {
			s.conflict = append(s.conflict[:0], l)
			return false
		}
		if s.Value[l] == 0 {
			s.Assign(l, Fact)
		}
	}
	for s.head < len(s.Trail) {
		l := s.Trail[s.head]
		s.head++
		if !s.propagateBinary(l) || !s.propagateLong(l) {
			return false
		}
	}
	return true
}

// propagateBinary assigns the consequences of a true literal by binary clauses and by its group, the variables of which exactly one is
// true. It returns false on a conflict.
func (s *Solver) propagateBinary(l Literal) bool {
	s.Work += int64(len(s.Implies[l]))
	for _, m := range s.Implies[l] {
		if !s.imply(l, m) {
			return false
		}
	}

	// If l states a value of a group, the variables of its other values are false.
	v := l.Variable()
	if !s.hasGroup[v] || !l.IsPositive() {
		return true
	}
	g := s.group[v]
	for w := s.first[g]; w < s.first[g+1]; w++ {
		if w != v && !s.imply(l, positive(w).Not()) {
			return false
		}
	}
	return true
}

// imply assigns literal m, which follows from the true literal l, unless m is true already. If m is false, it returns false and sets
// s.conflict to the clause "not l, or m".
func (s *Solver) imply(l, m Literal) bool {
	switch s.Value[m] {
	case 0:
		s.Assign(m, literalReason(l))
	case -1:
		s.conflict = append(s.conflict[:0], l.Not(), m)
		return false
	}
	return true
}

// propagateLong visits the clauses of three or more literals that watch the opposite of the true literal l, which is false now. Each clause
// watches its first two literals. If another literal of the clause is not false, the clause watches that one instead (rewatch). If not, the
// clause's other watch must be true: it is so already, it is assigned, or it is false. The last is a conflict: propagateLong returns false.
//
// A watch has a blocker, some literal of the clause: if that is true, the clause needs no look.
func (s *Solver) propagateLong(l Literal) bool {
	falsified := l.Not()
	list := s.watches[falsified]
	s.Work += int64(len(list))
	kept := 0 // list[:kept] are the clauses that go on watching the literal
	for i := 0; i < len(list); i++ {
		w := list[i]
		if s.Value[w.blocker] > 0 { // the clause is true
			list[kept] = w
			kept++
			continue
		}

		// Move the false literal to the second place, and replace it by one that is not false.
		c := s.literalsAt(w.clause)
		if Literal(c[0]) == falsified {
			c[0], c[1] = c[1], c[0]
		}
		first := Literal(c[0])
		if s.Value[first] <= 0 && s.rewatch(c, w.clause) {
			continue
		}

		// The clause goes on watching this literal: first is true, or all other literals are false.
		list[kept] = watch{w.clause, first}
		kept++
		switch s.Value[first] {
		case 0:
			s.Assign(first, clauseReason(w.clause))
		case -1:
			s.setConflict(c)
			kept += copy(list[kept:], list[i+1:]) // the clauses not visited yet
			s.watches[falsified] = list[:kept]
			return false
		}
	}
	s.watches[falsified] = list[:kept]
	return true
}

// rewatch replaces the second literal of a clause, which the clause watches and which is false, by one from the third on that is not false.
// c has the literals, and clause is their position in the arena. It returns false if all literals from the third on are false.
func (s *Solver) rewatch(c []int32, clause int32) bool {
	for k := 2; k < len(c); k++ {
		if l := Literal(c[k]); s.Value[l] >= 0 {
			c[1], c[k] = c[k], c[1]
			s.watches[l] = append(s.watches[l], watch{clause, Literal(c[0])}) // if c[0] is true, the clause need not be looked at
			s.Work++
			return true
		}
	}
	return false
}

// setConflict makes c, a clause whose literals are all false, the conflict.
func (s *Solver) setConflict(c []int32) {
	s.conflict = s.conflict[:0]
	for _, l := range c {
		s.conflict = append(s.conflict, Literal(l))
	}
}
