package formula

// Satisfiability under assumptions: search that learns clauses from conflicts, so that many questions to one formula help each other.
//
// Sources: N. Eén and N. Sörensson, An extensible SAT-solver (SAT 2003); A. Biere et al., Handbook of Satisfiability (2009),
// chapter 4.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// bit is a literal of a Boolean variable: twice its number, and one more where it is negated.
type bit int32

func (b bit) not() bit    { return b ^ 1 }
func (b bit) number() int { return int(b >> 1) }

// noClause is no reason, and no conflict.
const noClause int32 = -1

const (
	satDecay   = 0.95
	satRestart = 64  // conflicts until the first restart; half as many more until every later one
	satKeep    = 512 // learned clauses of many levels before half of them go; a half more every time
	satLevels  = 3   // learned clauses of at most as many levels stay
)

// satClause is a clause; the first two literals are watched.
type satClause struct {
	bits    []bit
	levels  int32
	learned bool
}

type satWatch struct {
	clause  int32
	blocker bit
}

// satisfier answers whether clauses can hold together with assumptions.
type satisfier struct {
	clauses []satClause
	watches [][]satWatch // by literal: clauses that watch it
	value   []int8       // by literal
	level   []int32
	reason  []int32
	phase   []bool // by variable: the value it had last
	trail   []bit
	next    int
	starts  []int // by level above 0: where it begins on the trail

	activity []float64
	bump     float64
	queue    []int32 // heap of variables by activity
	place    []int32 // by variable: in the queue, −1 where it is not

	seen    []bool
	lemma   []bit
	stamp   []int32
	stamped int32

	many  int // learned clauses of many levels
	keep  int
	first int  // conflicts until the first restart
	false bool // the clauses contradict each other
	work  int64
}

func newSatisfier(vars int) *satisfier {
	s := &satisfier{
		watches: make([][]satWatch, 2*vars), value: make([]int8, 2*vars), level: make([]int32, vars), reason: make([]int32, vars),
		phase: make([]bool, vars), activity: make([]float64, vars), bump: 1, place: make([]int32, vars), seen: make([]bool, vars),
		stamp: make([]int32, vars+1), keep: satKeep, first: satRestart,
	}
	for v := range vars {
		s.place[v] = -1
		s.enqueue(int32(v))
	}
	return s
}

// add adds a clause while nothing is assumed.
func (s *satisfier) add(c ...bit) {
	s.backtrack(0)
	c = slices.Clone(c)
	slices.Sort(c)
	c = slices.Compact(c)
	kept := c[:0]
	for i, b := range c {
		if s.value[b] > 0 || i > 0 && c[i-1] == b.not() {
			return
		}
		if s.value[b] == 0 {
			kept = append(kept, b)
		}
	}
	switch len(kept) {
	case 0:
		s.false = true
	case 1:
		s.set(kept[0], noClause)
		s.false = s.false || s.propagate() != noClause
	default:
		s.attach(satClause{bits: kept})
	}
}

func (s *satisfier) attach(c satClause) int32 {
	at := int32(len(s.clauses))
	s.clauses = append(s.clauses, c)
	s.watches[c.bits[0]] = append(s.watches[c.bits[0]], satWatch{at, c.bits[1]})
	s.watches[c.bits[1]] = append(s.watches[c.bits[1]], satWatch{at, c.bits[0]})
	return at
}

func (s *satisfier) set(b bit, reason int32) {
	s.value[b], s.value[b.not()] = 1, -1
	s.level[b.number()], s.reason[b.number()] = int32(len(s.starts)), reason
	s.trail = append(s.trail, b)
}

// backtrack takes all levels above one back.
func (s *satisfier) backtrack(level int) {
	if len(s.starts) <= level {
		return
	}
	from := s.starts[level]
	for _, b := range s.trail[from:] {
		s.value[b], s.value[b.not()] = 0, 0
		s.phase[b.number()] = b&1 == 0
		s.enqueue(int32(b.number()))
	}
	s.trail, s.starts, s.next = s.trail[:from], s.starts[:level], from
}

// propagate sets the consequences, and returns a clause that has become false, or
// noClause.
func (s *satisfier) propagate() int32 {
	for s.next < len(s.trail) {
		falsified := s.trail[s.next].not()
		s.next++
		list := s.watches[falsified]
		s.work += int64(len(list)) + 1
		kept := 0
		for i, w := range list {
			if s.value[w.blocker] > 0 {
				list[kept] = w
				kept++
				continue
			}
			c := s.clauses[w.clause].bits
			if c[0] == falsified {
				c[0], c[1] = c[1], c[0]
			}
			if s.value[c[0]] <= 0 && s.rewatch(c, w.clause) {
				continue
			}
			list[kept] = satWatch{w.clause, c[0]}
			kept++
			switch s.value[c[0]] {
			case 0:
				s.set(c[0], w.clause)
			case -1:
				kept += copy(list[kept:], list[i+1:])
				s.watches[falsified] = list[:kept]
				return w.clause
			}
		}
		s.watches[falsified] = list[:kept]
	}
	return noClause
}

func (s *satisfier) rewatch(c []bit, at int32) bool {
	for k := 2; k < len(c); k++ {
		if s.value[c[k]] >= 0 {
			c[1], c[k] = c[k], c[1]
			s.watches[c[1]] = append(s.watches[c[1]], satWatch{at, c[0]})
			s.work++
			return true
		}
	}
	return false
}

// solve reports whether there is an assignment under the assumptions: 1 yes, and it is in value until the next question; −1 no; 0 where
// that is not known after so much work, or the context has ended.
func (s *satisfier) solve(work int64, look *pace.Pace, assumptions ...bit) int {
	if s.backtrack(0); s.false {
		return -1
	}
	until, conflicts, restart, before := s.work+work, 0, s.first, s.work
	for {
		if conflict := s.propagate(); conflict != noClause {
			if len(s.starts) == 0 {
				s.false = true
				return -1
			}
			s.learn(conflict)
			conflicts++
			continue
		}
		done := s.work - before
		before = s.work
		if look.Over(done) || s.work > until {
			return 0
		}
		if conflicts >= restart {
			conflicts, restart = 0, restart+restart/2+1
			s.backtrack(0)
			s.forget()
			continue
		}
		b, verdict := s.decide(assumptions)
		if verdict != 0 {
			return verdict
		}
		s.starts = append(s.starts, len(s.trail))
		s.set(b, noClause)
	}
}

// decide returns the next assumption that is open, or the variable with the highest activity as it was last; or the verdict.
func (s *satisfier) decide(assumptions []bit) (bit, int) {
	for _, b := range assumptions {
		switch s.value[b] {
		case 0:
			return b, 0
		case -1:
			return 0, -1
		}
	}
	for len(s.queue) > 0 {
		v := s.dequeue()
		s.work += 4
		if s.value[2*v] == 0 {
			if s.phase[v] {
				return bit(2 * v), 0
			}
			return bit(2*v + 1), 0
		}
	}
	return 0, 1
}

// learn resolves a clause that is false with reasons until one literal of the last level is left, goes back, and sets that literal.
func (s *satisfier) learn(conflict int32) {
	s.lemma = append(s.lemma[:0], 0)
	open, at := 0, len(s.trail)
	var b bit
	for c := conflict; ; {
		for _, l := range s.clauses[c].bits {
			v := l.number()
			if s.seen[v] || s.level[v] == 0 || s.value[l] > 0 {
				continue
			}
			s.seen[v] = true
			s.rise(int32(v))
			if int(s.level[v]) == len(s.starts) {
				open++
			} else {
				s.lemma = append(s.lemma, l)
			}
		}
		s.work += int64(len(s.clauses[c].bits))
		for at--; !s.seen[s.trail[at].number()]; at-- {
		}
		b = s.trail[at]
		s.seen[b.number()] = false
		if open--; open == 0 {
			break
		}
		c = s.reason[b.number()]
	}
	s.lemma[0] = b.not()
	s.bump /= satDecay

	to := 0
	for i := 1; i < len(s.lemma); i++ {
		s.seen[s.lemma[i].number()] = false
		if s.level[s.lemma[i].number()] > s.level[s.lemma[1].number()] {
			s.lemma[1], s.lemma[i] = s.lemma[i], s.lemma[1]
		}
	}
	if len(s.lemma) > 1 {
		to = int(s.level[s.lemma[1].number()])
	}
	c := satClause{bits: slices.Clone(s.lemma), levels: s.levels(s.lemma), learned: true}
	s.backtrack(to)
	if len(c.bits) == 1 {
		s.set(c.bits[0], noClause)
		return
	}
	if c.levels > satLevels {
		s.many++
	}
	s.set(c.bits[0], s.attach(c))
}

// levels returns the number of distinct levels of literals.
func (s *satisfier) levels(c []bit) int32 {
	s.stamped++
	n := int32(0)
	for _, b := range c {
		if at := s.level[b.number()]; s.stamp[at] != s.stamped {
			s.stamp[at] = s.stamped
			n++
		}
	}
	return n
}

// forget drops the older half of the learned clauses of many levels once there are too many; nothing is assumed.
func (s *satisfier) forget() {
	if s.many < s.keep {
		return
	}
	drop := s.many / 2
	s.keep += s.keep/2 + 1
	old := s.clauses
	s.clauses = s.clauses[:0]
	for l := range s.watches {
		s.watches[l] = s.watches[l][:0]
	}
	for _, c := range old {
		if c.learned && c.levels > satLevels && drop > 0 {
			drop--
			s.many--
			continue
		}
		s.attach(c)
		s.work += 2
	}
	for v := range s.reason {
		s.reason[v] = noClause // reasons at the root are not asked for
	}
}

// rise makes a variable more active.
func (s *satisfier) rise(v int32) {
	if s.activity[v] += s.bump; s.activity[v] > 1e100 {
		for u := range s.activity {
			s.activity[u] *= 1e-100
		}
		s.bump *= 1e-100
	}
	if s.place[v] >= 0 {
		s.up(s.place[v])
	}
}

func (s *satisfier) before(a, b int32) bool {
	return s.activity[a] > s.activity[b] || s.activity[a] == s.activity[b] && a < b
}

func (s *satisfier) put(at, v int32) { s.queue[at], s.place[v] = v, at }

func (s *satisfier) up(at int32) {
	v := s.queue[at]
	for at > 0 && s.before(v, s.queue[(at-1)/2]) {
		s.put(at, s.queue[(at-1)/2])
		at = (at - 1) / 2
	}
	s.put(at, v)
}

func (s *satisfier) enqueue(v int32) {
	if s.place[v] < 0 {
		s.queue = append(s.queue, v)
		s.place[v] = int32(len(s.queue) - 1)
		s.up(s.place[v])
	}
}

func (s *satisfier) dequeue() int32 {
	first, last := s.queue[0], s.queue[len(s.queue)-1]
	s.queue = s.queue[:len(s.queue)-1]
	s.place[first] = -1
	if first == last {
		return first
	}
	at, n := int32(0), int32(len(s.queue))
	for {
		child := 2*at + 1
		if child+1 < n && s.before(s.queue[child+1], s.queue[child]) {
			child++
		}
		if child >= n || !s.before(s.queue[child], last) {
			break
		}
		s.put(at, s.queue[child])
		at = child
	}
	s.put(at, last)
	return first
}
