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
	workEnd         int64                   // the work at which it ends
	questionLimit   int64                   // the largest work of one question
	hasFound        bool                    // something was strengthened
	unanswered      int                     // questions that were not answered within their work
	binary          map[[2]sat.Literal]bool // the clauses of two literals, by pair
}

// strengthen removes values that no assignment has and literals that no assignment needs, and adds equivalences of literals. It finds
// them by searching for assignments that show the opposite. It reports whether it has found any. If the formula has no assignment, it
// returns true, and the propagator has recorded the contradiction.
func (s *simplifier) strengthen() bool {
	if s.prop.IsContradictory || len(s.prop.clauses) == 0 {
		return false
	}
	g := &strengthener{simplifier: s, assignments: make([]uint64, len(s.prop.Value)/2), binary: map[[2]sat.Literal]bool{}}
	for n, c := range s.prop.clauses {
		if !s.prop.removed[n] {
			g.noteBinary(c)
		}
	}

	// One assignment, for which a large part of the work may be taken.
	g.workEnd = s.workEndFor(strengthenShare)
	g.questionLimit = (g.workEnd - s.prop.Work) / firstShare
	if g.ask() < 0 { // the formula has no assignment
		return true
	}

	if g.questionLimit = questionWork; g.assignmentCount > 0 { // ask has found one in its work, and kept it
		g.fixBackbone()
		g.shortenClauses()
		g.mergeLiterals()
	}
	return g.hasFound
}

// noteBinary records a clause in g.binary if it has two literals.
func (g *strengthener) noteBinary(c []Literal) {
	if len(c) == 2 {
		g.binary[pair(g.prop.bit(c[0]), g.prop.bit(c[1]))] = true
	}
}

// pair returns two literals as a key that does not depend on their order.
func pair(a, b sat.Literal) [2]sat.Literal { return [2]sat.Literal{min(a, b), max(a, b)} }

// isOver reports whether to end: the work is done, the formula is contradictory, the context has ended, or too many questions had no
// answer.
func (g *strengthener) isOver() bool {
	return g.prop.Work >= g.workEnd || g.prop.IsContradictory || g.pace.Over(1) || g.unanswered > mostAssignments
}

// ask returns 1 if there is an assignment under the assumptions, −1 if there is none, and 0 if that was not found out within the work of a
// question (questionLimit). It keeps the latest mostAssignments assignments: for each of them, bit k of g.assignments[v] is the value of
// Boolean variable v, where a new assignment takes the bit of the oldest one.
func (g *strengthener) ask(assumptions ...sat.Literal) (verdict int) {
	work := min(g.questionLimit, max(g.workEnd-g.prop.Work, 1)) // of this question: what is left of all work, if that is less
	verdict = g.prop.Solve(work, g.pace, assumptions...)
	switch verdict {
	case 0:
		g.unanswered++
	case 1:
		bit := uint64(1) << (g.assignmentCount % mostAssignments)
		for v := range g.assignments {
			g.assignments[v] &^= bit
			if isTrue := g.prop.Value[2*v] > 0; isTrue { // literal 2v is the variable v itself, 2v+1 its negation
				g.assignments[v] |= bit
			}
		}
		g.assignmentCount++
	}
	g.prop.Backtrack(0)
	return verdict
}

// assignmentMask returns the bits of g.assignments that are in use: one for each assignment that is kept.
func (g *strengthener) assignmentMask() uint64 {
	return ^uint64(0) >> (mostAssignments - min(g.assignmentCount, mostAssignments))
}

// isImpossible reports whether no assignment has all of the given literals. It is false if one of the kept assignments has them, if a
// search finds an assignment that has them, or if the search's work was not enough. Bit k of g.assignments[v] is the value of Boolean
// variable v in kept assignment k.
func (g *strengthener) isImpossible(literals []sat.Literal) bool {
	witnesses := g.assignmentMask() // the kept assignments that have the literals so far
	for _, b := range literals {
		if values := g.assignments[b.Variable()]; b.IsPositive() {
			witnesses &= values
		} else {
			witnesses &^= values
		}
	}
	g.prop.Work += int64(len(literals))
	return witnesses == 0 && g.ask(literals...) < 0
}

// fixBackbone fixes the literals that all assignments have (the backbone of the formula).
func (g *strengthener) fixBackbone() {
	for a := range g.prop.bitOf {
		for _, l := range [2]Literal{Literal(2 * a), Literal(2*a + 1)} {
			if g.isOver() {
				return
			}
			if g.prop.value(l) == 0 && g.isImpossible([]sat.Literal{g.prop.bit(l)}) {
				g.hasFound = true
				g.prop.fix(l.Not())
			}
		}
	}
}

// shortenClauses removes a literal from a clause if no assignment needs it to satisfy the clause: no assignment of the formula has all
// other literals of the clause false. Longer clauses come first.
func (g *strengthener) shortenClauses() {
	for _, n := range g.longestFirst() {
		if g.isOver() {
			return
		}
		if clause := g.shorten(g.prop.clauses[n]); len(clause) < len(g.prop.clauses[n]) {
			g.hasFound = true
			g.noteBinary(clause)
			g.prop.replace(n, clause)
		}
	}
}

// shorten returns the literals of a clause that are needed: it takes out one after another without which the clause still follows from the
// formula. It ends early when the work is over, or at a literal that is known to be true.
func (g *strengthener) shorten(c []Literal) []Literal {
	clause := slices.Clone(c)
	for i := 0; i < len(clause) && len(clause) > 1; {
		if g.isOver() || g.prop.value(clause[i]) > 0 {
			break
		}
		othersFalse := make([]sat.Literal, 0, len(clause)-1) // all literals but the i-th are false
		for k, l := range clause {
			if k != i {
				othersFalse = append(othersFalse, g.prop.bit(l).Not())
			}
		}
		if !g.isImpossible(othersFalse) {
			i++ // the literal stays
			continue
		}
		clause = append(clause[:i], clause[i+1:]...) // the next literal has position i now
	}
	return clause
}

// mergeLiterals tests each pair of literals that share a clause for equivalence (testEquivalence). Each pair of Boolean variables is tested
// once.
func (g *strengthener) mergeLiterals() {
	seen := map[[2]sat.Literal]bool{}          // by the positive literals of two variables
	for n := 0; n < len(g.prop.clauses); n++ { // testEquivalence adds clauses, which have only pairs that were seen
		if g.prop.removed[n] {
			continue
		}
		c := slices.Clone(g.prop.clauses[n])
		for i, k := range c {
			for _, l := range c[:i] {
				if g.isOver() {
					return
				}
				a, b := g.prop.bit(k), g.prop.bit(l)
				g.prop.Work++
				variables := pair(a&^1, b&^1) // &^1: the positive literal
				if a.Variable() != b.Variable() && !seen[variables] {
					seen[variables] = true
					g.testEquivalence(k, l)
				}
			}
		}
	}
}

// testEquivalence finds out whether literal k is equivalent to literal l or to the opposite of l, and adds clauses of two literals that
// state it. The kept assignments tell which is possible: k and l are equal in all of them, or different in all of them. If neither is so,
// the literals are not equivalent either way. Otherwise two questions decide: no assignment may have k and not l, or l and not k.
func (g *strengthener) testEquivalence(k, l Literal) {
	if g.prop.value(k) != 0 || g.prop.value(l) != 0 {
		return
	}
	a, b := g.prop.bit(k), g.prop.bit(l)

	// The assignments in which the literals differ. −uint64((a^b)&1) has all bits set if exactly one of the Boolean literals is negative.
	differ := g.assignments[a.Variable()] ^ g.assignments[b.Variable()] ^ -uint64((a^b)&1)
	switch differ & g.assignmentMask() {
	case 0: // equal in all of them
	case g.assignmentMask(): // different in all of them
		l, b = l.Not(), b.Not()
	default:
		return
	}

	// Literals of one variable are not looked at.
	if g.prop.variableOf[k.Atom()] == g.prop.variableOf[l.Atom()] ||
		!g.isImpossible([]sat.Literal{a, b.Not()}) || !g.isImpossible([]sat.Literal{a.Not(), b}) {
		return
	}
	for _, c := range [][]Literal{{k.Not(), l}, {k, l.Not()}} {
		if !g.binary[pair(g.prop.bit(c[0]), g.prop.bit(c[1]))] {
			g.hasFound = true
			g.noteBinary(c)
			g.prop.addClause(c)
		}
	}
}
