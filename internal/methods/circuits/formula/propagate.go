package formula

// The clauses of a formula in Boolean variables: one for a variable of two values, one for every value of a variable with more.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

// propagator holds the clauses of a formula for unit propagation and search, and translates its literals to Boolean ones and back.
type propagator struct {
	*sat.Satisfier
	variableOf []int32       // by atom
	bitOf      []sat.Literal // by atom: the Boolean literal that it is taken
	literalOf  []Literal     // by Boolean literal: the same statement; for a variable of two values, that one of them is taken
	clauses    [][]Literal
	// removed reports for each clause whether it is no longer one of the formula. Propagation may still use it, as a consequence of the
	// others.
	removed []bool
	handles []int32 // by clause: the result of Satisfier.Add
}

// newPropagator returns a propagator of the clauses of f. A variable of two values is one Boolean variable, true for value 1. Another
// variable has a Boolean variable for each value. By atom (variable and value), variableOf has the variable and bitOf the Boolean literal
// which states that the variable has the value. By Boolean literal, literalOf has the literal of f; 2·b is the positive literal of Boolean
// variable b.
func newPropagator(f *Formula) *propagator {
	p := &propagator{}

	// Boolean variables.
	first := make([]int32, 1, len(f.Domains)+1) // by variable: its first Boolean variable
	for v, d := range f.Domains {
		next := first[v]
		for a := range d {
			p.variableOf = append(p.variableOf, int32(v))
			b := sat.Literal(2 * (next + int32(a))) // the positive literal of the value's own variable
			if d == 2 {
				b = sat.Literal(2*next + 1 - int32(a))               // positive for value 1, negative for value 0
				p.literalOf = append(p.literalOf, f.Literal(v, 1-a)) // value 1 for the positive literal, then value 0
			} else {
				p.literalOf = append(p.literalOf, f.Literal(v, a), f.Literal(v, a).Not())
			}
			p.bitOf = append(p.bitOf, b)
		}
		if d == 2 { // one Boolean variable
			d = 1
		}
		first = append(first, next+int32(d))
	}

	// Clauses.
	p.Satisfier = sat.NewSatisfier(first)
	for v, d := range f.Domains {
		if d == 1 {
			p.fix(f.Literal(v, 0))
		}
	}
	for _, c := range f.Clauses {
		p.addClause(c)
	}
	return p
}

// bit returns the Boolean literal that states the same as l.
func (p *propagator) bit(l Literal) sat.Literal { return p.bitOf[l.Atom()] ^ sat.Literal(l&1) }

// toBits returns, for each literal of a clause, the Boolean literal that states the same.
func (p *propagator) toBits(c []Literal) []sat.Literal {
	bits := make([]sat.Literal, len(c))
	for i, l := range c {
		bits[i] = p.bit(l)
	}
	return bits
}

// value returns 1 if l holds, −1 if its opposite holds, and 0 if neither is known.
func (p *propagator) value(l Literal) int8 { return p.Value[p.bit(l)] }

// addClause adds a clause and propagates it. There must be no assumptions. It keeps c. A clause of a single literal becomes a fact, and
// counts as removed.
func (p *propagator) addClause(c []Literal) {
	p.clauses = append(p.clauses, c)
	p.removed = append(p.removed, len(c) < 2)
	p.handles = append(p.handles, p.Add(p.toBits(c)...))
}

// fix makes a literal a fact: it holds from now on.
func (p *propagator) fix(l Literal) { p.Add(p.bit(l)) }

// replace removes clause n, and adds clause c, which gets the next number. There must be no assumptions.
func (p *propagator) replace(n int, c []Literal) {
	p.removed[n] = true
	p.addClause(c)
}

// askWithout calls ask while clause n takes no part in propagation, and returns its answer. It takes back the assumptions that ask makes.
// If the answer is true, the clause stays out of propagation: the caller removes it. p.handles[n] is what Add returned for the clause; it
// is sat.Fact if Add attached no clause.
func (p *propagator) askWithout(n int, ask func() bool) bool {
	// Add has attached the clause's open literals, each once, in ascending order. Detach and Reattach need this form. A clause with a true
	// literal needs no detaching.
	open := slices.DeleteFunc(p.toBits(p.clauses[n]), func(l sat.Literal) bool { return p.Value[l] != 0 })
	isAttached := p.handles[n] != sat.Fact && !slices.ContainsFunc(p.clauses[n], func(l Literal) bool { return p.value(l) > 0 })
	slices.Sort(open)
	open = slices.Compact(open)
	if isAttached {
		p.Detach(open, p.handles[n])
	}
	answer := ask()
	p.Backtrack(0)
	if isAttached && !answer {
		p.Reattach(open, p.handles[n])
	}
	return answer
}
