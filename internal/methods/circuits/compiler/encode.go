package compiler

// The Boolean form of a formula: one Boolean variable for a variable of two values, one per value for a variable of more.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/methods/circuits/sat"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

type lit = sat.Literal

// problem is a formula in Boolean variables.
type problem struct {
	f         *formula.Formula
	atomOwner []int32 // by atom of the formula: its variable
	first     []int32 // by variable of the formula: its first Boolean variable, of none if it has one value; one more at the end
	owner     []int32 // by Boolean variable: the variable of the formula
	many      []bool  // by Boolean variable: it is one value of more than two
	clauses   [][]lit // without the exactly-one constraints
	tables    []softTable
	unary     []scaled.Number // by literal: the product of the tables of its variable alone
	weights   []scaled.Number // by literal: that times the weight of the query
	constant  scaled.Number   // of tables without variables
	factor    scaled.Number   // that times the weights of variables with one value
}

// softTable is a table over variables with two values or more.
type softTable struct {
	scope  []int32 // variables of the formula
	dims   []int32
	values []float64
}

func (p *problem) booleans() int { return len(p.owner) }

// count returns the number of Boolean variables that encode variable v of the formula.
func (p *problem) count(v int32) int32 { return p.first[v+1] - p.first[v] }

// encode brings f into Boolean form. A weight of 0 forbids its value, unless other weights are to follow.
func encode(f *formula.Formula, weights []scaled.Number, forbid bool) (*problem, error) {
	if weights != nil && len(weights) != f.Atoms() {
		return nil, fault.New(fault.BadInput, "compiler: %d weights for %d values", len(weights), f.Atoms())
	}
	p := &problem{f: f, first: make([]int32, len(f.Domains)+1), constant: scaled.One}
	for v, d := range f.Domains {
		booleans := d
		if d <= 2 {
			booleans = d - 1
		}
		for range booleans {
			p.owner = append(p.owner, int32(v))
			p.many = append(p.many, d > 2)
		}
		p.first[v+1] = int32(len(p.owner))
		for range d {
			p.atomOwner = append(p.atomOwner, int32(v))
		}
	}

	p.unary = make([]scaled.Number, 2*p.booleans())
	for i := range p.unary {
		p.unary[i] = scaled.One
	}
	for _, t := range f.Tables {
		p.addTable(t)
	}
	p.weights = slices.Clone(p.unary)
	p.factor = p.constant
	for v, d := range f.Domains {
		for a := range d {
			w := scaled.One
			if weights != nil {
				w = weights[f.Offset(v)+a]
			}
			if err := p.weigh(int32(v), a, w, forbid); err != nil {
				return nil, err
			}
		}
	}

	for _, c := range f.Clauses {
		p.addClause(c)
	}
	return p, nil
}

// is returns the literal that says that variable v, of two values or more, is a.
func (p *problem) is(v int32, a int) lit {
	if p.f.Domains[v] == 2 {
		return lit(2*p.first[v] + int32(1-a))
	}
	return lit(2 * (p.first[v] + int32(a)))
}

// holds reports whether a literal is true when variable v, of two values or more, is a.
func (p *problem) holds(l lit, v, a int32) bool {
	is := p.is(v, int(a))
	if is.Variable() == l.Variable() {
		return is == l
	}
	return !l.Positive() // another value of many is taken, so this one is not
}

// weigh multiplies the weight of v = a by w.
func (p *problem) weigh(v int32, a int, w scaled.Number, forbid bool) error {
	if !w.IsFinite() || w.Mant < 0 {
		return fault.New(fault.BadInput, "compiler: variable %d has the weight %v at %d", v, w, a)
	}
	if p.f.Domains[v] == 1 {
		p.factor = p.factor.Mul(w)
		return nil
	}
	l := p.is(v, a)
	if w.Mant == 0 && forbid {
		p.clauses = append(p.clauses, []lit{l.Not()})
		w = scaled.One // any number: the literal is false wherever it is asked for
	}
	p.weights[l] = p.weights[l].Mul(w)
	return nil
}

// addClause adds a clause of the formula, sorted, unless it always holds.
func (p *problem) addClause(c []formula.Literal) {
	out := make([]lit, 0, len(c))
	for _, l := range c {
		v, a := p.variableOf(l.Atom())
		if p.f.Domains[v] == 1 {
			if l.Negative() {
				continue
			}
			return
		}
		is := p.is(v, a)
		if l.Negative() {
			is = is.Not()
		}
		out = append(out, is)
	}
	if out, ok := tidy(out); ok {
		p.clauses = append(p.clauses, out)
	}
}

// tidy sorts a clause and takes repetitions out. It is not ok if the clause always holds: it has a literal and its opposite.
func tidy(c []lit) (sorted []lit, ok bool) {
	slices.Sort(c)
	c = slices.Compact(c)
	for i := 1; i < len(c); i++ {
		if c[i] == c[i-1].Not() {
			return nil, false
		}
	}
	return c, true
}

// variableOf returns the variable and the value of an atom.
func (p *problem) variableOf(atom int) (int32, int) {
	v := p.atomOwner[atom]
	return v, atom - p.f.Offset(int(v))
}

// addTable adds a table without variables of one value; one over a single variable becomes weights.
func (p *problem) addTable(t formula.Table) {
	s := softTable{values: t.Values}
	for _, v := range t.Scope {
		if d := p.f.Domains[v]; d > 1 {
			s.scope = append(s.scope, v)
			s.dims = append(s.dims, int32(d))
		}
	}
	switch len(s.scope) {
	case 0:
		p.constant = p.constant.Mul(scaled.FromFloat(t.Values[0]))
	case 1:
		for a, x := range t.Values {
			l := p.is(s.scope[0], a)
			p.unary[l] = p.unary[l].Mul(scaled.FromFloat(x))
		}
	default:
		p.tables = append(p.tables, s)
	}
}
