package compiler

// Forgetting: of the learned clauses those go that join literals of many levels, which rarely propagate. Source: G. Audemard
// and L. Simon, Predicting learnt clauses quality in modern SAT solvers (IJCAI 2009).

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
)

// learnedBytes is the memory of a learned clause and its watches, beside 4 bytes for each of its
// literals.
const learnedBytes = 4 * (clauseHeader + 8)

// learnedSize is the memory of all learned clauses, in bytes.
func (s *solver) learnedSize() int64 {
	return 4*int64(len(s.arena)-s.given) + learnedBytes*int64(len(s.learned)) + learnedBytes*s.pairs
}

// forgetClauses drops about half of the learned clauses once there are too many: the ones of most
// levels, the older first, except reasons; and more of them where they take more than their share
// of the memory. It moves all clauses together. Time: linear in all clauses, once in thousands of
// conflicts, or in as many bytes.
func (s *solver) forgetClauses() {
	size := s.learnedSize()
	full := size > s.room
	if len(s.learned) < s.keep && !full {
		return
	}
	if len(s.learned) >= s.keep {
		s.keep += s.keep/16 + 1
	}
	reasons := map[int32]bool{}
	for _, l := range s.trail {
		if r := s.reason[l.variable()]; r >= 0 && r&1 == 0 {
			reasons[r>>1] = true
		}
	}
	byLevels := slices.Clone(s.learned)
	slices.SortStableFunc(byLevels, func(a, b int32) int { return int(s.arena[b+clauseMark] - s.arena[a+clauseMark]) })
	gone := map[int32]bool{}
	for i, at := range byLevels {
		many := i < len(byLevels)/2 && s.arena[at+clauseMark] > policy.LearnedLevels
		if (many || full && size > s.room/2) && !reasons[at] {
			gone[at] = true
			size -= 4*int64(clauseHeader+s.arena[at+clauseSize]) + learnedBytes
		}
	}
	s.move(s.compact(gone))
}

// compact writes the clauses that are not gone into a new arena, and returns where each went.
func (s *solver) compact(gone map[int32]bool) map[int32]int32 {
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
func (s *solver) move(moved map[int32]int32) {
	for l, list := range s.watches {
		kept := list[:0]
		for _, w := range list {
			if at, ok := moved[w.clause]; ok {
				kept = append(kept, watch{at, w.blocker})
			}
		}
		s.watches[l] = kept
	}
	for _, l := range s.trail {
		if r := s.reason[l.variable()]; r >= 0 && r&1 == 0 {
			s.reason[l.variable()] = moved[r>>1] << 1
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
