package compiler

// The assignment and its consequences: clauses watched by two literals each, implications of binary
// clauses, and the exactly-one constraints of variables with many values.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
)

// Why a literal is true: reasons of the trail. A clause is its place in the arena shifted by one, a binary clause or an at-most-one
// constraint the other literal's opposite, shifted, with the last bit set.
const (
	decided int32 = -1 // no reason
	fact    int32 = -2 // it follows from the formula alone; its level is 0
)

// Layout of a clause in the arena.
const (
	clauseSize   = 0 // number of literals
	clauseMark   = 1 // 0: of the formula; else the number of levels when it was learned or last used
	clauseHeader = 2
)

// watch is a clause that watches a literal, and another literal of it that spares the look where it is true.
type watch struct {
	clause  int32
	blocker lit
}

// solver holds the assignment, and propagates.
type solver struct {
	p *problem

	value   []int8 // by literal: 1 true, −1 false, 0 open
	level   []int32
	reason  []int32
	trail   []lit
	head    int     // the trail is propagated up to here
	depth   int32   // number of open decisions
	marks   []int32 // by level above 0: where its literals begin on the trail
	implies [][]lit // by literal: its consequences when true
	watches [][]watch
	arena   []int32
	chosen  []int32 // by variable of the formula with many values: the value it has, or −1

	keep      int     // the present limit of learned clauses
	room      int64   // bytes that they may take
	given     int     // length of the arena without them
	pairs     int64   // learned clauses of two literals
	learned   []int32 // places of learned clauses in the arena
	facts     []lit   // literals that follow from the formula alone, found below the root
	activity  []float64
	conflict  []lit // literals that are all false where the formula demands a true one
	seen      []bool
	lemma     []lit
	dropped   []lit // literals that minimise took out of the lemma
	scratch   []int32
	levelSeen []int32 // by level: the stamp of the last count that met it
	stamp     int32

	work int64
	ctx  context.Context
}

func newSolver(ctx context.Context, p *problem) *solver {
	n := p.booleans()
	s := &solver{
		p: p, ctx: ctx, keep: policy.LearnedFirst, room: math.MaxInt64,
		value: make([]int8, 2*n), level: make([]int32, n), reason: make([]int32, n),
		implies: make([][]lit, 2*n), watches: make([][]watch, 2*n), activity: make([]float64, 2*n),
		seen: make([]bool, n), levelSeen: make([]int32, n+1), chosen: make([]int32, len(p.f.Domains)),
	}
	for v := range s.chosen {
		s.chosen[v] = -1
		if k := p.count(int32(v)); k > 1 {
			some := make([]lit, k)
			for a := range some {
				some[a] = lit(2 * (p.first[v] + int32(a)))
			}
			s.attach(some, 0)
		}
	}
	return s
}

// attach adds a clause of two literals or more to propagation and returns it as the reason of its
// first literal. Where some of its literals are false, the second one has the highest level of all
// but the first.
func (s *solver) attach(c []lit, mark int32) int32 {
	if len(c) == 2 {
		s.implies[c[0].not()] = append(s.implies[c[0].not()], c[1])
		s.implies[c[1].not()] = append(s.implies[c[1].not()], c[0])
		return int32(c[1].not())<<1 | 1
	}
	at := int32(len(s.arena))
	s.arena = append(s.arena, int32(len(c)), mark)
	for _, l := range c {
		s.arena = append(s.arena, int32(l))
	}
	s.watches[c[0]] = append(s.watches[c[0]], watch{at, c[1]})
	s.watches[c[1]] = append(s.watches[c[1]], watch{at, c[0]})
	return at << 1
}

// open starts a level.
func (s *solver) open() {
	s.depth++
	s.marks = append(s.marks, int32(len(s.trail)))
}

// assign makes an open literal true.
func (s *solver) assign(l lit, reason int32) {
	s.value[l] = 1
	s.value[l.not()] = -1
	v := l.variable()
	s.reason[v] = reason
	s.level[v] = s.depth
	if reason == fact {
		s.level[v] = 0
	}
	if l.positive() && s.p.many[v] {
		owner := s.p.owner[v]
		s.chosen[owner] = v - s.p.first[owner]
	}
	s.trail = append(s.trail, l)
}

// close takes the last level back.
func (s *solver) close() {
	from := s.marks[len(s.marks)-1]
	for _, l := range s.trail[from:] {
		s.value[l] = 0
		s.value[l.not()] = 0
		if v := l.variable(); l.positive() && s.p.many[v] {
			s.chosen[s.p.owner[v]] = -1
		}
	}
	s.trail = s.trail[:from]
	s.head = int(from)
	s.marks = s.marks[:len(s.marks)-1]
	s.depth--
}

// propagate assigns the consequences, and reports whether no clause has become false; s.conflict is
// such a clause.
func (s *solver) propagate() bool {
	for _, l := range s.facts {
		if s.value[l] < 0 {
			s.conflict = append(s.conflict[:0], l)
			return false
		}
		if s.value[l] == 0 {
			s.assign(l, fact)
		}
	}
	for s.head < len(s.trail) {
		l := s.trail[s.head]
		s.head++
		if !s.propagateBinary(l) || !s.propagateLong(l) {
			return false
		}
	}
	return true
}

// propagateBinary assigns the consequences of a true literal by binary clauses and exactly-one
// constraints.
func (s *solver) propagateBinary(l lit) bool {
	because := int32(l)<<1 | 1
	s.work += int64(len(s.implies[l]))
	for _, m := range s.implies[l] {
		if !s.imply(l, m, because) {
			return false
		}
	}
	v := l.variable()
	if !s.p.many[v] || !l.positive() {
		return true
	}
	owner := s.p.owner[v]
	first := s.p.first[owner]
	for w := first; w < first+s.p.count(owner); w++ {
		if w != v && !s.imply(l, lit(2*w+1), because) {
			return false
		}
	}
	return true
}

// imply assigns m, which follows from l.
func (s *solver) imply(l, m lit, because int32) bool {
	switch s.value[m] {
	case 0:
		s.assign(m, because)
	case -1:
		s.conflict = append(s.conflict[:0], l.not(), m)
		return false
	}
	return true
}

// propagateLong visits the clauses that watch the opposite of a true literal.
func (s *solver) propagateLong(l lit) bool {
	falsified := l.not()
	list := s.watches[falsified]
	s.work += int64(len(list))
	kept := 0
	for i := 0; i < len(list); i++ {
		w := list[i]
		if s.value[w.blocker] > 0 {
			list[kept] = w
			kept++
			continue
		}

		c := s.arena[w.clause+clauseHeader:][:s.arena[w.clause+clauseSize]]
		if lit(c[0]) == falsified {
			c[0], c[1] = c[1], c[0]
		}
		first := lit(c[0])
		if s.value[first] <= 0 && s.rewatch(c, w.clause) {
			continue
		}

		// The clause stays where it is: it holds, or it says first.
		list[kept] = watch{w.clause, first}
		kept++
		switch s.value[first] {
		case 0:
			s.assign(first, w.clause<<1)
		case -1:
			s.explain(c)
			kept += copy(list[kept:], list[i+1:])
			s.watches[falsified] = list[:kept]
			return false
		}
	}
	s.watches[falsified] = list[:kept]
	return true
}

// rewatch finds another literal that is not false for the second place of a clause.
func (s *solver) rewatch(c []int32, at int32) bool {
	for k := 2; k < len(c); k++ {
		if l := lit(c[k]); s.value[l] >= 0 {
			c[1], c[k] = c[k], c[1]
			s.watches[l] = append(s.watches[l], watch{at, lit(c[0])})
			s.work++
			return true
		}
	}
	return false
}

// explain takes a clause whose literals are all false as the conflict.
func (s *solver) explain(c []int32) {
	s.conflict = s.conflict[:0]
	for _, l := range c {
		s.conflict = append(s.conflict, lit(l))
	}
}
