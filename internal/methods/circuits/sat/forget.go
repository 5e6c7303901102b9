package sat

// Forgetting: of the learned clauses those go that join literals of many levels, which rarely propagate. Source: G. Audemard
// and L. Simon, Predicting learnt clauses quality in modern SAT solvers (IJCAI 2009).

import (
	"slices"
)

// learnedBytes is the memory of a learned clause and its watches, beside 4 bytes for each of its
// literals.
const learnedBytes = 4 * (clauseHeader + 8)

// bytes is the memory of the learned clause at a place of the arena.
func (s *Solver) bytes(at int32) int64 {
	return 4*int64(clauseHeader+s.arena[at+clauseSize]) + learnedBytes
}

// Kept returns the number of learned clauses of three literals and more.
func (s *Solver) Kept() int { return len(s.learned) }

// Forget drops about half of the learned clauses once there are too many: the ones of most
// levels, the older first, except reasons; and more of them where they take more than their share
// of the memory. It moves all clauses together. Time: linear in all clauses, once in thousands of
// conflicts, or in as many bytes.
func (s *Solver) Forget() {
	full := s.Bytes > s.Room
	if len(s.learned) < s.Keep && !full {
		return
	}
	if len(s.learned) >= s.Keep {
		s.Keep += s.Keep/16 + 1
	}
	reasons := map[int32]bool{}
	for _, l := range s.Trail {
		if r := s.reason[l.Variable()]; r >= 0 && r&1 == 0 {
			reasons[r>>1] = true
		}
	}
	byLevels := slices.Clone(s.learned)
	slices.SortStableFunc(byLevels, func(a, b int32) int { return int(s.arena[b+clauseMark] - s.arena[a+clauseMark]) })
	gone := map[int32]bool{}
	for i, at := range byLevels {
		many := i < len(byLevels)/2 && s.arena[at+clauseMark] > learnedLevels
		if (many || full && s.Bytes > s.Room/2) && !reasons[at] {
			gone[at] = true
			s.Bytes -= s.bytes(at)
		}
	}
	s.move(s.compact(gone))
}

// compact writes the clauses that are not gone into a new arena, and returns where each went.
func (s *Solver) compact(gone map[int32]bool) map[int32]int32 {
	moved := make(map[int32]int32, len(s.learned))
	arena := make([]int32, 0, len(s.arena))
	for at := int32(0); at < int32(len(s.arena)); {
		end := at + clauseHeader + s.arena[at+clauseSize]
		if !gone[at] {
			moved[at] = int32(len(arena))
			arena = append(arena, s.arena[at:end]...)
		}
		at = end
	}
	s.arena = arena
	return moved
}

// move follows clauses to their new places.
func (s *Solver) move(moved map[int32]int32) {
	s.moved = true
	for l, list := range s.watches {
		kept := list[:0]
		for _, w := range list {
			if at, ok := moved[w.clause]; ok {
				kept = append(kept, watch{at, w.blocker})
			}
		}
		s.watches[l] = kept
	}
	for _, l := range s.Trail {
		if r := s.reason[l.Variable()]; r >= 0 && r&1 == 0 {
			s.reason[l.Variable()] = moved[r>>1] << 1
		}
	}
	kept := s.learned[:0]
	for _, at := range s.learned {
		if to, ok := moved[at]; ok {
			kept = append(kept, to)
		}
	}
	s.learned = kept
}
