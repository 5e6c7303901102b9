package sat

// Satisfiability under assumptions: search that learns clauses from conflicts, so that many questions to one formula help each other.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// firstRestart is the number of conflicts until the first restart; half as many more until every later one.
const firstRestart = 64

// Satisfier answers whether clauses can hold together with assumptions.
type Satisfier struct {
	*Solver
	False bool // the clauses contradict each other

	phase   []bool // by variable: the value it had last
	restart int    // conflicts until the first restart

	// The queue of variables, those met in conflicts last at its end: a ring through the number of variables.
	before, after []int32
	since         []int64 // by variable: when it came to the end
	latest        int64
	at            int32 // all variables after it have values
}

// NewSatisfier returns a satisfier without clauses; the groups are New's.
func NewSatisfier(first []int32) *Satisfier {
	n := first[len(first)-1]
	s := &Satisfier{
		Solver: New(first), phase: make([]bool, n), restart: firstRestart,
		before: make([]int32, n+1), after: make([]int32, n+1), since: make([]int64, n+1),
	}
	s.before[n], s.after[n] = n, n
	for v := n - 1; v >= 0; v-- {
		s.before[v], s.after[v] = v, v
		s.prefer(v)
	}
	return s
}

// Add adds a clause while nothing is assumed, without the literals that are false, and returns it as Attach does; Fact where propagation
// needs no clause.
func (s *Satisfier) Add(c ...Literal) int32 {
	s.Backtrack(0)
	c = slices.Clone(c)
	slices.Sort(c)
	c = slices.Compact(c)
	kept := c[:0]
	for i, l := range c {
		if s.Value[l] > 0 || i > 0 && c[i-1] == l.Not() {
			return Fact
		}
		if s.Value[l] == 0 {
			kept = append(kept, l)
		}
	}
	switch len(kept) {
	case 0:
		s.False = true
	case 1:
		s.Assign(kept[0], Fact)
		s.False = !s.Propagate() || s.False
	default:
		return s.Attach(kept, 0)
	}
	return Fact
}

// Backtrack takes all levels above one back.
func (s *Satisfier) Backtrack(level int32) {
	for s.depth() > level {
		from := s.marks[s.depth()-1]
		s.Work += int64(len(s.Trail)) - int64(from)
		for _, l := range s.Trail[from:] {
			v := l.Variable()
			if s.phase[v] = l.Positive(); s.since[v] > s.since[s.at] {
				s.at = v
			}
		}
		s.Close()
	}
}

// Try assumes a literal and propagates it; false on a contradiction.
func (s *Satisfier) Try(l Literal) bool {
	if s.Value[l] != 0 {
		return s.Value[l] > 0
	}
	s.Open()
	s.Assign(l, Decided)
	return s.Propagate()
}

// Possible reports whether propagation of a literal finds no contradiction, where nothing is assumed.
func (s *Satisfier) Possible(l Literal) bool {
	ok := s.Try(l)
	s.Backtrack(0)
	return ok
}

// Solve reports whether there is an assignment under the assumptions: 1 yes, and it is in Value until the next question; −1 no; 0 where
// that is not known after so much work, or the context has ended.
func (s *Satisfier) Solve(work int64, look *pace.Pace, assumptions ...Literal) int {
	if s.Backtrack(0); s.False {
		return -1
	}
	until, conflicts, restart, before := s.Work+work, 0, s.restart, s.Work
	for {
		if !s.Propagate() {
			if s.depth() == 0 {
				s.False = true
				return -1
			}
			s.learn()
			conflicts++
			continue
		}
		done := s.Work - before
		before = s.Work
		if look.Over(done) || s.Work > until {
			return 0
		}
		if conflicts >= restart {
			conflicts, restart = 0, restart+restart/2+1
			s.Backtrack(0)
			s.Forget()
			continue
		}
		l, verdict := s.decide(assumptions)
		if verdict != 0 {
			return verdict
		}
		s.Open()
		s.Assign(l, Decided)
	}
}

// decide returns the next assumption that is open, or the open variable that was met last in a conflict as it was last; or the verdict.
// Source: A. Biere and A. Fröhlich, Evaluating CDCL variable scoring schemes (SAT 2015).
func (s *Satisfier) decide(assumptions []Literal) (Literal, int) {
	for _, l := range assumptions {
		switch s.Value[l] {
		case 0:
			return l, 0
		case -1:
			return 0, -1
		}
	}
	for ; s.at < int32(len(s.phase)); s.at = s.before[s.at] {
		s.Work += 4
		if l := Literal(2 * s.at); s.Value[l] == 0 {
			if s.phase[s.at] {
				return l, 0
			}
			return l.Not(), 0
		}
	}
	return 0, 1
}

// learn goes back to the level at which the lemma of a conflict says something, and assigns that.
func (s *Satisfier) learn() {
	s.Analyse(true)
	slices.SortFunc(s.Met, func(k, l Literal) int { return cmp.Compare(s.since[k.Variable()], s.since[l.Variable()]) })
	for _, l := range s.Met {
		s.prefer(l.Variable())
	}
	to, reason := int32(0), Fact
	if len(s.lemma) > 1 {
		to, reason = s.level[s.lemma[1].Variable()], s.Learn()
	}
	s.Backtrack(to)
	s.Assign(s.lemma[0], reason)
}

// prefer takes a variable to the end of the queue.
func (s *Satisfier) prefer(v int32) {
	if s.at == v {
		s.at = s.before[v]
	}
	s.before[s.after[v]], s.after[s.before[v]] = s.before[v], s.after[v]
	end := int32(len(s.phase))
	last := s.before[end]
	s.before[v], s.after[v] = last, end
	s.after[last], s.before[end] = v, v
	s.latest++
	s.since[v] = s.latest
}
