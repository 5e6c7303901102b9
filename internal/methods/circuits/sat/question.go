package sat

// Satisfiability under assumptions: search that learns clauses from conflicts, so that many questions to one formula help each other.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// firstRestart is the number of conflicts until the first restart. Each later one takes half as many more.
const firstRestart = 64

// Satisfier answers whether clauses can hold together with assumptions.
type Satisfier struct {
	*Solver
	IsContradictory bool // the clauses contradict each other

	phase   []bool // by variable: the value it had last
	restart int    // conflicts until the first restart

	// The queue of variables, in the order in which conflicts met them last: a doubly linked ring, in which entry n, the number of
	// variables, is before the first and after the last one.
	before, after []int32
	stampOf       []int64 // by variable: the clock when it came to the end of the queue
	clock         int64
	cursor        int32 // a place in the queue: all variables after it have values
}

// NewSatisfier returns a satisfier without clauses. Group g has the variables first[g] ≤ v < first[g+1]. Exactly one variable of a group
// of several is true. Decisions take variables from a queue, a doubly linked ring (before, after).
func NewSatisfier(first []int32) *Satisfier {
	n := first[len(first)-1]
	s := &Satisfier{
		Solver: New(first), phase: make([]bool, n), restart: firstRestart,
		before: make([]int32, n+1), after: make([]int32, n+1), stampOf: make([]int64, n+1),
	}

	// The queue of variables: first the ring has only the entry n, then each variable goes to its end.
	s.before[n], s.after[n] = n, n
	for v := n - 1; v >= 0; v-- { // variable 0 at the end, where decisions begin
		s.before[v], s.after[v] = v, v
		s.moveToEnd(v)
	}
	return s
}

// Add takes all assumptions back and adds a clause, without its literals that are false. It returns the reason that Attach returns for
// it, or Fact if propagation needs no clause: a literal is true, or the clause is a tautology, a single literal or empty. An empty clause
// makes the formula IsContradictory.
func (s *Satisfier) Add(c ...Literal) int32 {
	s.Backtrack(0)
	c = slices.Clone(c)
	slices.Sort(c)
	c = slices.Compact(c)

	// Leave out false literals.
	kept := c[:0]
	for i, l := range c {
		isTautology := i > 0 && c[i-1] == l.Not()
		if s.Value[l] > 0 || isTautology {
			return Fact
		}
		if s.Value[l] == 0 {
			kept = append(kept, l)
		}
	}

	switch len(kept) {
	case 0:
		s.IsContradictory = true
	case 1:
		s.Assign(kept[0], Fact)
		s.IsContradictory = !s.Propagate() || s.IsContradictory
	default:
		return s.Attach(kept, 0) // 0: a clause of the formula, not learned
	}
	return Fact
}

// Backtrack closes all levels above the given one: it takes back their decisions and what follows from them. Each variable that loses its
// value remembers it in s.phase.
//
// Decisions take variables from the end of the queue, beginning at s.cursor: all variables after the cursor have values. The stamps in
// s.stampOf rise along the queue. So a variable after the cursor that loses its value becomes the cursor.
func (s *Satisfier) Backtrack(level int32) {
	for s.depth() > level {
		start := s.marks[s.depth()-1] // of the level on the trail
		s.Work += int64(len(s.Trail)) - int64(start)
		for _, l := range s.Trail[start:] {
			v := l.Variable()
			s.phase[v] = l.IsPositive()
			if isBehindCursor := s.stampOf[v] > s.stampOf[s.cursor]; isBehindCursor {
				s.cursor = v
			}
		}
		s.CloseLevel()
	}
}

// Assume assumes a literal on a new level and propagates it. It returns false if that leads to a contradiction. If the literal has a value
// already, it only returns whether that is true.
func (s *Satisfier) Assume(l Literal) bool {
	if s.Value[l] != 0 {
		return s.Value[l] > 0
	}
	s.OpenLevel()
	s.Assign(l, Decided)
	return s.Propagate()
}

// IsPossible reports whether the propagation of a literal finds no contradiction. There are no assumptions before and after it.
func (s *Satisfier) IsPossible(l Literal) bool {
	ok := s.Assume(l)
	s.Backtrack(0)
	return ok
}

// Solve searches for an assignment that makes all clauses and the assumptions true. It returns 1 if there is one, which is in Value until
// the next call; −1 if there is none; and 0 if that is not known after the given work, or the context of look has ended.
func (s *Satisfier) Solve(work int64, look *pace.Pace, assumptions ...Literal) (verdict int) {
	if s.Backtrack(0); s.IsContradictory {
		return -1
	}
	workEnd, workBefore := s.Work+work, s.Work
	conflicts, restart := 0, s.restart // conflicts since the last restart, and the number of them at which to restart
	for {
		if !s.Propagate() {
			if s.depth() == 0 { // without a decision: the clauses contradict each other
				s.IsContradictory = true
				return -1
			}
			s.resolveConflict()
			conflicts++
			continue
		}

		workSince := s.Work - workBefore
		workBefore = s.Work
		if look.Over(workSince) || s.Work > workEnd {
			return 0
		}

		if conflicts >= restart { // begin anew, with what was learned; the next time after half as many conflicts more
			conflicts, restart = 0, restart+restart/2+1
			s.Backtrack(0)
			s.Forget()
			continue
		}

		l, verdict := s.decide(assumptions)
		if verdict != 0 {
			return verdict
		}
		s.OpenLevel()
		s.Assign(l, Decided)
	}
}

// decide returns the literal to decide on, with the verdict 0: the first assumption that is open. If all assumptions are true, it is the
// literal of the last open variable of a queue, with the value that the variable had last (s.phase). Variables move to the end of the queue
// when a conflict has met them. The verdict is −1 if an assumption is false, and 1 if all variables have values.
// Source: A. Biere and A. Fröhlich, Evaluating CDCL variable scoring schemes (SAT 2015).
func (s *Satisfier) decide(assumptions []Literal) (l Literal, verdict int) {
	for _, l := range assumptions {
		switch s.Value[l] {
		case 0:
			return l, 0
		case -1:
			return 0, -1
		}
	}
	// Walk through the queue from the cursor to its front. Entry len(s.phase) is before the first variable: no variable is open.
	for ; s.cursor < int32(len(s.phase)); s.cursor = s.before[s.cursor] {
		s.Work += 4 // a step of the walk counts as 4 literals
		if l := positive(s.cursor); s.Value[l] == 0 {
			if s.phase[s.cursor] {
				return l, 0
			}
			return l.Not(), 0
		}
	}
	return 0, 1
}

// resolveConflict learns the lemma of a conflict (a clause that follows from it), goes back to the lowest level at which the lemma implies
// its first literal, and assigns that literal. A level has a decision and its consequences. The lowest one is that of the lemma's second
// literal, or 0 if there is none. The variables that the analysis has met move to the end of the queue of decisions and keep their order,
// which is that of their stamps.
func (s *Satisfier) resolveConflict() {
	const stopsEarly = true
	s.Analyse(stopsEarly) // writes s.lemma and s.MetLiterals
	slices.SortFunc(s.MetLiterals, func(k, l Literal) int { return cmp.Compare(s.stampOf[k.Variable()], s.stampOf[l.Variable()]) })
	for _, l := range s.MetLiterals {
		s.moveToEnd(l.Variable())
	}
	level, reason := int32(0), Fact
	if len(s.lemma) > 1 {
		level, reason = s.level[s.lemma[1].Variable()], s.Learn()
	}
	s.Backtrack(level)
	s.Assign(s.lemma[0], reason)
}

// moveToEnd moves a variable to the end of the queue of decisions and gives it the next stamp. The queue is a doubly linked ring:
// s.before and s.after. Entry len(s.phase) of the ring, the number of variables, is between its last and its first variable. All
// variables after s.cursor have values; the caller sees to it that this holds for v at the end (Backtrack moves the cursor back).
func (s *Satisfier) moveToEnd(v int32) {
	// Unlink v.
	if s.cursor == v {
		s.cursor = s.before[v]
	}
	s.before[s.after[v]], s.after[s.before[v]] = s.before[v], s.after[v]

	// Link it in before the end.
	end := int32(len(s.phase))
	last := s.before[end]
	s.before[v], s.after[v] = last, end
	s.after[last], s.before[end] = v, v
	s.clock++
	s.stampOf[v] = s.clock
}
