package formula

// Consequences of the formula as a whole: literals that every assignment has, superfluous literals
// of clauses, and equivalent values. Each is found by a question: is there an assignment that shows the opposite?
//
// Source: T. Korhonen and M. Järvisalo, SharpSAT-TD in Model Counting Competitions 2021–2023, arXiv:2308.15819, section 3.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

const (
	firstShare      = 4       // of the work, for the question whether there is an assignment: without one no other is asked
	questionWork    = 1 << 15 // steps that one further question may take
	mostAssignments = 64      // assignments that are kept
)

// strengthener asks about one formula whether it has certain assignments. It keeps the last mostAssignments assignments that were found,
// since most questions are answered by them.
type strengthener struct {
	*simplifier
	assignments     []uint64                // by Boolean variable: bit k is its value in assignment k of those that are kept
	assignmentCount int                     // assignments found so far, also those that are no longer kept
	until           int64                   // the work at which it ends
	questionLimit   int64                   // the largest work of one question
	hasFound        bool                    // something was strengthened
	unanswered      int                     // questions that were not answered within their work
	binary          map[[2]sat.Literal]bool // the clauses of two literals, by pair
}

// strengthen removes values and literals that no assignment needs, and adds equivalences. It reports whether it has found any. If there is
// no assignment, the propagator has noticed a contradiction.
func (s *simplifier) strengthen() bool {
	if s.p.False || len(s.p.clauses) == 0 {
		return false
	}
	g := &strengthener{simplifier: s, assignments: make([]uint64, len(s.p.Value)/2), binary: map[[2]sat.Literal]bool{}}
	for n, c := range s.p.clauses {
		if !s.p.removed[n] {
			g.noteBinary(c)
		}
	}
	g.until = s.budget(strengthenShare)
	g.questionLimit = (g.until - s.p.Work) / firstShare
	if g.ask() < 0 {
		return true
	}
	if g.questionLimit = questionWork; g.assignmentCount > 0 {
		g.fixBackbone()
		g.shortenClauses()
		g.mergeLiterals()
	}
	return g.hasFound
}

// noteBinary adds a clause to the set of clauses of two literals, if it is one.
func (g *strengthener) noteBinary(c []Literal) {
	if len(c) == 2 {
		g.binary[pair(g.p.bit(c[0]), g.p.bit(c[1]))] = true
	}
}

// pair returns two literals as a key that does not depend on their order.
func pair(a, b sat.Literal) [2]sat.Literal { return [2]sat.Literal{min(a, b), max(a, b)} }

// over reports whether to end: the work is done, the formula is contradictory, the context has ended, or too many questions had no answer.
func (g *strengthener) over() bool {
	return g.p.Work >= g.until || g.p.False || g.pace.Over(1) || g.unanswered > mostAssignments
}

// ask returns 1 if there is an assignment under the assumptions, −1 if there is none, and 0 if that was not found out. An assignment is
// kept, in the place of the oldest one.
func (g *strengthener) ask(assumptions ...sat.Literal) (verdict int) {
	verdict = g.p.Solve(min(g.questionLimit, max(g.until-g.p.Work, 1)), g.pace, assumptions...)
	switch verdict {
	case 0:
		g.unanswered++
	case 1:
		bit := uint64(1) << (g.assignmentCount % mostAssignments)
		for v := range g.assignments {
			if g.assignments[v] &^= bit; g.p.Value[2*v] > 0 {
				g.assignments[v] |= bit
			}
		}
		g.assignmentCount++
	}
	g.p.Backtrack(0)
	return verdict
}

// assignmentMask returns the bits of the assignments that are kept.
func (g *strengthener) assignmentMask() uint64 {
	return ^uint64(0) >> (mostAssignments - min(g.assignmentCount, mostAssignments))
}

// isImpossible reports whether no assignment has all of some literals. It is false if that was not found out. It asks only if none of the
// kept assignments has them.
func (g *strengthener) isImpossible(literals []sat.Literal) bool {
	witnesses := g.assignmentMask() // the kept assignments that have the literals so far
	for _, b := range literals {
		if values := g.assignments[b.Variable()]; b.Positive() {
			witnesses &= values
		} else {
			witnesses &^= values
		}
	}
	g.p.Work += int64(len(literals))
	return witnesses == 0 && g.ask(literals...) < 0
}

// fixBackbone fixes the literals that all assignments have.
func (g *strengthener) fixBackbone() {
	for a := range g.p.bitOf {
		for _, l := range [2]Literal{Literal(2 * a), Literal(2*a + 1)} {
			if g.over() {
				return
			}
			if g.p.value(l) == 0 && g.isImpossible([]sat.Literal{g.p.bit(l)}) {
				g.hasFound = true
				g.p.fix(l.Not())
			}
		}
	}
}

// shortenClauses removes literals from clauses that no assignment needs to satisfy the clause: no assignment has all other literals false.
func (g *strengthener) shortenClauses() {
	for _, n := range g.longestFirst() {
		if g.over() {
			return
		}
		clause := slices.Clone(g.p.clauses[n])
		lengthBefore := len(clause)
		for i := 0; i < len(clause) && len(clause) > 1; {
			if g.over() || g.p.value(clause[i]) > 0 {
				break
			}
			othersFalse := make([]sat.Literal, 0, len(clause)-1)
			for k, l := range clause {
				if k != i {
					othersFalse = append(othersFalse, g.p.bit(l).Not())
				}
			}
			if !g.isImpossible(othersFalse) {
				i++
				continue
			}
			clause = append(clause[:i], clause[i+1:]...)
		}
		if len(clause) < lengthBefore {
			g.hasFound = true
			g.noteBinary(clause)
			g.p.replace(n, clause)
		}
	}
}

// mergeLiterals tests each pair of literals that share a clause for equivalence. Each pair of Boolean variables is tested once.
func (g *strengthener) mergeLiterals() {
	seen := map[[2]sat.Literal]bool{}
	for n := 0; n < len(g.p.clauses); n++ { // the clauses that it adds have only pairs that were seen
		if g.p.removed[n] {
			continue
		}
		c := slices.Clone(g.p.clauses[n])
		for i, k := range c {
			for _, l := range c[:i] {
				if g.over() {
					return
				}
				a, b := g.p.bit(k), g.p.bit(l)
				g.p.Work++
				if variables := pair(a&^1, b&^1); a.Variable() != b.Variable() && !seen[variables] {
					seen[variables] = true
					g.testEquivalence(k, l)
				}
			}
		}
	}
}

// testEquivalence finds out whether two open literals are equivalent, or each is the opposite of the other, and adds clauses of two
// literals that state it. The kept assignments decide which of the two is asked for: the literals are equal in all of them, or in none.
// Otherwise nothing is asked.
func (g *strengthener) testEquivalence(k, l Literal) {
	if g.p.value(k) != 0 || g.p.value(l) != 0 {
		return
	}
	a, b := g.p.bit(k), g.p.bit(l)
	// −uint64((a^b)&1) has all bits set if one of the Boolean literals is negative and the other one is not.
	switch differ := g.assignments[a.Variable()] ^ g.assignments[b.Variable()] ^ -uint64((a^b)&1); differ & g.assignmentMask() {
	case 0: // equal in all of them
	case g.assignmentMask(): // different in all of them
		l, b = l.Not(), b.Not()
	default:
		return
	}
	if g.p.variableOf[k.Atom()] == g.p.variableOf[l.Atom()] ||
		!g.isImpossible([]sat.Literal{a, b.Not()}) || !g.isImpossible([]sat.Literal{a.Not(), b}) {
		return
	}
	for _, c := range [][]Literal{{k.Not(), l}, {k, l.Not()}} {
		if !g.binary[pair(g.p.bit(c[0]), g.p.bit(c[1]))] {
			g.hasFound = true
			g.noteBinary(c)
			g.p.addClause(c)
		}
	}
}
