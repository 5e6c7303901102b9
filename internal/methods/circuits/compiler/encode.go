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

// positive returns the literal that Boolean variable v is true.
func positive(v int32) lit { return lit(2 * v) }

// negative returns the literal that Boolean variable v is false.
func negative(v int32) lit { return lit(2*v + 1) }

// problem is a formula in Boolean variables.
type problem struct {
	f               *formula.Formula
	atomVariable    []int32 // by atom of the formula: its variable
	firstBoolean    []int32 // by variable of the formula: its first Boolean variable (it has none if it has one value); one more at the end
	formulaVariable []int32 // by Boolean variable: the variable of the formula
	isOneOfMany     []bool  // by Boolean variable: it stands for one value of a variable of more than two
	clauses         [][]lit // without the exactly-one constraints
	tables          []softTable
	unary           []scaled.Number // by literal: the product of the tables of its variable alone
	weights         []scaled.Number // by literal: that times the weight of the query
	constant        scaled.Number   // of tables without variables
	factor          scaled.Number   // that times the weights of variables with one value
}

// softTable is a table over variables with two values or more.
type softTable struct {
	scope  []int32 // variables of the formula
	dims   []int32
	values []float64
}

// booleans returns the number of Boolean variables.
func (p *problem) booleans() int { return len(p.formulaVariable) }

// booleanCount returns the number of Boolean variables that encode variable v of the formula.
func (p *problem) booleanCount(v int32) int32 { return p.firstBoolean[v+1] - p.firstBoolean[v] }

// encode returns f in Boolean variables: one for a variable of two values, one for each value of a variable of more. weights are by atom;
// nil stands for weights of 1. If excludesZeros is set, a value of weight 0 is excluded by a clause.
func encode(f *formula.Formula, weights []scaled.Number, excludesZeros bool) (*problem, error) {
	if weights != nil && len(weights) != f.Atoms() {
		return nil, fault.New(fault.BadInput, "compiler: %d weights for %d values", len(weights), f.Atoms())
	}

	p := &problem{f: f, constant: scaled.One}
	p.addBooleans()
	p.unary = slices.Repeat([]scaled.Number{scaled.One}, 2*p.booleans())
	for _, t := range f.Tables {
		p.addTable(t) // a table of one variable goes to p.unary, one of none to p.constant
	}

	// The weights of literals are those of p.unary times the weights of values.
	p.weights = slices.Clone(p.unary)
	p.factor = p.constant
	for v, d := range f.Domains {
		for a := range d {
			w := scaled.One
			if weights != nil {
				w = weights[f.FirstAtom(v)+a]
			}
			if err := p.multiplyWeight(int32(v), a, w, excludesZeros); err != nil {
				return nil, err
			}
		}
	}

	for _, c := range f.Clauses {
		p.addClause(c)
	}
	return p, nil
}

// addBooleans makes the Boolean variables: none for a variable of the formula of one value, one for two values, and one for each of more
// values.
func (p *problem) addBooleans() {
	p.firstBoolean = make([]int32, len(p.f.Domains)+1)
	for v, d := range p.f.Domains {
		booleans := d
		if d <= 2 {
			booleans = d - 1
		}
		for range booleans {
			p.formulaVariable = append(p.formulaVariable, int32(v))
			p.isOneOfMany = append(p.isOneOfMany, d > 2)
		}
		p.firstBoolean[v+1] = int32(len(p.formulaVariable))
		for range d {
			p.atomVariable = append(p.atomVariable, int32(v))
		}
	}
}

// literalOf returns the literal that states that variable v of the formula, which has two values or more, has value a.
func (p *problem) literalOf(v int32, a int) lit {
	if p.f.Domains[v] == 2 {
		if a == 1 {
			return positive(p.firstBoolean[v])
		}
		return negative(p.firstBoolean[v])
	}
	return positive(p.firstBoolean[v] + int32(a))
}

// isTrueAt reports whether a literal about variable v of the formula, which has two values or more, is true if v has value a.
func (p *problem) isTrueAt(l lit, v, a int32) bool {
	valueLiteral := p.literalOf(v, int(a))
	if valueLiteral.Variable() == l.Variable() {
		return valueLiteral == l
	}
	return !l.IsPositive() // l is about another value, which v has not
}

// multiplyWeight multiplies the weight of value a of variable v by w. If w is 0 and excludesZeros is set, a clause excludes the value
// instead.
func (p *problem) multiplyWeight(v int32, a int, w scaled.Number, excludesZeros bool) error {
	if !w.IsFinite() || w.Mant < 0 {
		return fault.New(fault.BadInput, "compiler: variable %d has the weight %v at %d", v, w, a)
	}
	if p.f.Domains[v] == 1 { // all assignments have the value
		p.factor = p.factor.Mul(w)
		return nil
	}
	l := p.literalOf(v, a)
	if w.Mant == 0 && excludesZeros {
		p.clauses = append(p.clauses, []lit{l.Not()})
		w = scaled.One // any number: it is never read
	}
	p.weights[l] = p.weights[l].Mul(w)
	return nil
}

// addClause adds a clause of the formula in Boolean literals, unless it always holds. Its literals are sorted.
func (p *problem) addClause(c []formula.Literal) {
	clause := make([]lit, 0, len(c))
	for _, l := range c {
		v, a := p.valueOfAtom(l.Atom())
		if p.f.Domains[v] == 1 {
			if l.IsNegative() {
				continue // the literal is false
			}
			return // it is true
		}
		b := p.literalOf(v, a)
		if l.IsNegative() {
			b = b.Not()
		}
		clause = append(clause, b)
	}
	if clause, isTautology := sortClause(clause); !isTautology {
		p.clauses = append(p.clauses, clause)
	}
}

// sortClause returns a clause with its literals sorted, each once. isTautology is true if it always holds, since it has a literal and its
// opposite; then sorted is nil.
func sortClause(c []lit) (sorted []lit, isTautology bool) {
	slices.Sort(c)
	c = slices.Compact(c)
	for i := 1; i < len(c); i++ {
		if c[i] == c[i-1].Not() {
			return nil, true
		}
	}
	return c, false
}

// valueOfAtom returns the variable and the value that an atom of the formula stands for.
func (p *problem) valueOfAtom(atom int) (variable int32, value int) {
	v := p.atomVariable[atom]
	return v, atom - p.f.FirstAtom(int(v))
}

// addTable adds a table of the formula. Its variables of one value are left out. A table of a single variable becomes unary weights, and
// one of no variables a factor of the constant.
func (p *problem) addTable(t formula.Table) {
	s := softTable{values: t.Values}
	for _, v := range t.Scope {
		if d := p.f.Domains[v]; d > 1 {
			s.scope = append(s.scope, v)
			s.dims = append(s.dims, int32(d))
		}
	}
	switch len(s.scope) {
	case 0: // variables of one value do not change the index of an entry
		p.constant = p.constant.Mul(scaled.FromFloat(t.Values[0]))
	case 1:
		for a, x := range t.Values {
			l := p.literalOf(s.scope[0], a)
			p.unary[l] = p.unary[l].Mul(scaled.FromFloat(x))
		}
	default:
		p.tables = append(p.tables, s)
	}
}
