package formula

// The clauses of a formula in Boolean variables: one for a variable of two values, one for every value of a variable with more.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
)

// propagator knows which literals follow from those that were assumed.
type propagator struct {
	*sat.Satisfier
	variable []int32       // by atom
	bits     []sat.Literal // by atom: that it is taken
	literals []Literal     // by Boolean literal: what it says; of two values that one is taken
	clauses  [][]Literal
	gone     []bool  // by clause: it is not one of the formula any more; propagation may still use it, as a consequence of the others
	handles  []int32 // by clause: of Add
}

// newPropagator returns a propagator of the clauses of f.
func newPropagator(f *Formula) *propagator {
	p := &propagator{}
	first := make([]int32, 1, len(f.Domains)+1) // by variable: the first of its Boolean ones
	for v, d := range f.Domains {
		next := first[v]
		for a := range d {
			p.variable = append(p.variable, int32(v))
			b := sat.Literal(2 * (next + int32(a)))
			if d == 2 {
				b = sat.Literal(2*next + 1 - int32(a))
				p.literals = append(p.literals, f.Literal(v, 1-a))
			} else {
				p.literals = append(p.literals, f.Literal(v, a), f.Literal(v, a).Not())
			}
			p.bits = append(p.bits, b)
		}
		if d == 2 {
			d = 1
		}
		first = append(first, next+int32(d))
	}
	p.Satisfier = sat.NewSatisfier(first)
	for v, d := range f.Domains {
		if d == 1 {
			p.fix(f.Literal(v, 0))
		}
	}
	for _, c := range f.Clauses {
		p.add(c)
	}
	return p
}

// bit is a literal in Boolean variables.
func (p *propagator) bit(l Literal) sat.Literal { return p.bits[l.Atom()] ^ sat.Literal(l&1) }

// all is a clause in Boolean variables.
func (p *propagator) all(c []Literal) []sat.Literal {
	out := make([]sat.Literal, len(c))
	for i, l := range c {
		out[i] = p.bit(l)
	}
	return out
}

// value is 1 where l holds, −1 where it does not, 0 where that is open.
func (p *propagator) value(l Literal) int8 { return p.Value[p.bit(l)] }

// add adds a clause where nothing is assumed, and propagates it. It keeps c.
func (p *propagator) add(c []Literal) {
	p.clauses = append(p.clauses, c)
	p.gone = append(p.gone, len(c) < 2)
	p.handles = append(p.handles, p.Add(p.all(c)...))
}

// fix makes a literal hold for good.
func (p *propagator) fix(l Literal) { p.Add(p.bit(l)) }

// replace puts a shorter clause in the place of one, where nothing is assumed.
func (p *propagator) replace(n int, c []Literal) {
	p.gone[n] = true
	p.add(c)
}

// without asks a question while a clause is left out, which comes back unless the answer is yes.
func (p *propagator) without(n int, ask func() bool) bool {
	left := slices.DeleteFunc(p.all(p.clauses[n]), func(l sat.Literal) bool { return p.Value[l] != 0 })
	watched := p.handles[n] != sat.Fact && !slices.ContainsFunc(p.clauses[n], func(l Literal) bool { return p.value(l) > 0 })
	slices.Sort(left)
	left = slices.Compact(left)
	if watched {
		p.Detach(left, p.handles[n])
	}
	yes := ask()
	p.Backtrack(0)
	if watched && !yes {
		p.Reattach(left, p.handles[n])
	}
	return yes
}
