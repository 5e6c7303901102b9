package sat

// Forgetting learned clauses: those that join literals of many levels, which rarely propagate. Source: G. Audemard
// and L. Simon, Predicting learnt clauses quality in modern SAT solvers (IJCAI 2009).

import (
	"slices"
)

// learnedBytes is the memory of a learned clause and its watches, without 4 bytes for each of its
// literals.
const learnedBytes = 4 * (clauseHeader + 8)

// bytesOf returns the memory of a learned clause, given by its position in the arena.
func (s *Solver) bytesOf(clause int32) int64 {
	return 4*int64(clauseHeader+s.arena[clause+clauseSize]) + learnedBytes
}

// LearnedCount returns the number of learned clauses of three literals and more that are not forgotten.
func (s *Solver) LearnedCount() int { return len(s.learned) }

// Forget drops learned clauses if there are LearnedLimit of them, or if they take more than LearnedBytesLimit bytes. The levels of a
// clause are the different numbers of decisions under which its literals got their values; clauses of many levels rarely propagate. Forget
// drops the half with the most levels; if they take too many bytes, it goes on until they take half of LearnedBytesLimit. Of clauses with
// equally many levels the older ones go first. Reasons of literals on the trail stay. Clauses of at most learnedLevels levels stay if the
// memory allows it. The remaining clauses move together in the arena, the list of all clauses. Time: linear in all clauses, once in
// thousands of conflicts, or in as many bytes.
func (s *Solver) Forget() {
	isFull := s.LearnedBytes > s.LearnedBytesLimit
	if len(s.learned) < s.LearnedLimit && !isFull {
		return
	}
	if len(s.learned) >= s.LearnedLimit {
		s.LearnedLimit += s.LearnedLimit/16 + 1 // a 16th more each time (learnedFirst)
	}

	// The number of a clause's levels is its mark.
	byLevels := slices.Clone(s.learned)
	slices.SortStableFunc(byLevels, func(a, b int32) int { return int(s.arena[b+clauseMark] - s.arena[a+clauseMark]) })
	isReason, dropped := s.reasonClauses(), map[int32]bool{}
	for i, clause := range byLevels {
		isInWorseHalf := i < len(byLevels)/2 && s.arena[clause+clauseMark] > learnedLevels
		isOverMemory := isFull && s.LearnedBytes > s.LearnedBytesLimit/2
		if (isInWorseHalf || isOverMemory) && !isReason[clause] {
			dropped[clause] = true
			s.LearnedBytes -= s.bytesOf(clause)
		}
	}
	s.relocate(s.compact(dropped))
}

// reasonClauses returns the clauses that are reasons of literals on the trail: they gave the literals their values.
func (s *Solver) reasonClauses() map[int32]bool {
	isReason := map[int32]bool{}
	for _, l := range s.Trail {
		if r := s.reason[l.Variable()]; isClauseReason(r) {
			isReason[reasonClause(r)] = true
		}
	}
	return isReason
}

// compact writes the clauses that are not dropped into a new arena, the list of the numbers of all clauses: each has a header with its
// size, then its literals. It returns the new position of each clause by its old one.
func (s *Solver) compact(dropped map[int32]bool) map[int32]int32 {
	moved := make(map[int32]int32, len(s.learned))
	arena := make([]int32, 0, len(s.arena))
	for clause := int32(0); clause < int32(len(s.arena)); {
		end := clause + clauseHeader + s.arena[clause+clauseSize]
		if !dropped[clause] {
			moved[clause] = int32(len(arena))
			arena = append(arena, s.arena[clause:end]...)
		}
		clause = end
	}
	s.arena = arena
	return moved
}

// relocate replaces the positions of clauses in watches, in reasons of literals and in the list of learned clauses by their new positions.
// moved has the new position by the old one. A clause without a new position was dropped: relocate removes it from watches and the list. A
// dropped clause is no reason.
func (s *Solver) relocate(moved map[int32]int32) {
	s.hasMoved = true // from now on Detach cannot rely on positions that callers hold
	for l, list := range s.watches {
		kept := list[:0]
		for _, w := range list {
			if clause, ok := moved[w.clause]; ok {
				kept = append(kept, watch{clause, w.blocker})
			}
		}
		s.watches[l] = kept
	}

	for _, l := range s.Trail {
		if r := s.reason[l.Variable()]; isClauseReason(r) {
			s.reason[l.Variable()] = clauseReason(moved[reasonClause(r)])
		}
	}

	kept := s.learned[:0]
	for _, old := range s.learned {
		if clause, ok := moved[old]; ok {
			kept = append(kept, clause)
		}
	}
	s.learned = kept
}
