// Package formula holds a network as logic and numbers: variables of any number of values, clauses
// that restrict their values, and tables of positive numbers. Circuits are compiled from it: zeros
// are clauses, which search propagates, and all other entries are numbers.
package formula

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrFormula is wrapped by errors about a formula that is not well formed.
var ErrFormula = errors.New("formula: not well formed")

// Literal is the statement that a variable has a certain value, or that it has not. It is twice the number of the value among all values of
// all variables (its atom, see Formula.Literal), and 1 more if the variable has not the value.
type Literal int32

// Not returns the opposite literal: that the variable has the value, or that it has not.
func (l Literal) Not() Literal { return l ^ 1 }

// Atom returns the number of the value among all values of all variables.
func (l Literal) Atom() int { return int(l >> 1) }

// IsNegative reports whether l states that the variable has not the value.
func (l Literal) IsNegative() bool { return l&1 != 0 }

// Formula is a weighted sum over the assignments that satisfy all clauses:
//
//	Z(w) = Scale · Σ_x Π_v w_v(x_v) · Π_clauses [c holds] · Π_tables t(x)
//
// A formula does not change once it is made.
type Formula struct {
	// Domains are the numbers of values, at least 1 each.
	Domains []int
	// Links counts the first variables, which are links of the network, in the network's order:
	// their weights differ from query to query. The others are auxiliary: their weights are 1.
	Links int
	// Functional reports for each auxiliary variable, in order, whether the links determine its value wherever the product is not 0. If
	// one is not functional, maxima over all variables are not maxima over the links.
	Functional []bool
	// Clauses are disjunctions. No two literals of a clause state the same.
	Clauses [][]Literal
	// Tables have positive entries.
	Tables []Table
	Scale  scaled.Number

	offsets []int32 // by variable: the number of its value 0; one more at the end
}

// Table is a factor t(x) > 0 over the variables of Scope, row-major, the last one fastest. If the clauses exclude a cell, its entry is any
// positive number, which is never read.
type Table struct {
	Scope  []int32
	Values []float64
}

// New returns f as a formula, ready for use, or an error that wraps ErrFormula if its parts do not fit together. It keeps the slices of f.
// Linear time.
func New(f Formula) (*Formula, error) {
	f.offsets = make([]int32, len(f.Domains)+1) // the first atom of each variable
	total := 0                                  // atoms: values of all variables. Each has two literals, which must fit int32
	for v, d := range f.Domains {
		if d < 1 {
			return nil, fmt.Errorf("%w: variable %d has %d values", ErrFormula, v, d)
		}
		if total += d; total > math.MaxInt32/4 {
			return nil, fmt.Errorf("%w: more than %d values in all", ErrFormula, math.MaxInt32/4)
		}
		f.offsets[v+1] = int32(total)
	}
	if f.Links < 0 || f.Links > len(f.Domains) || len(f.Functional) != len(f.Domains)-f.Links {
		return nil, fmt.Errorf("%w: %d links and %d auxiliary variables of %d variables",
			ErrFormula, f.Links, len(f.Functional), len(f.Domains))
	}

	// Literals and tables.
	for i, c := range f.Clauses {
		for _, l := range c {
			if l < 0 || l.Atom() >= total {
				return nil, fmt.Errorf("%w: clause %d has the literal %d, there are %d values", ErrFormula, i, l, total)
			}
		}
	}
	for i, t := range f.Tables {
		if err := f.check(t); err != nil {
			return nil, fmt.Errorf("%w: table %d %w", ErrFormula, i, err)
		}
	}
	return &f, nil
}

// check returns an error if a table is not well formed: the scope has a variable twice or one that does not exist, the number of values is
// wrong, or one of them is not a positive number.
func (f *Formula) check(t Table) error {
	cells := 1 // combinations of values of the scope so far
	for i, v := range t.Scope {
		if v < 0 || int(v) >= len(f.Domains) {
			return fmt.Errorf("is over variable %d, there are %d", v, len(f.Domains))
		}
		for _, u := range t.Scope[:i] {
			if u == v {
				return fmt.Errorf("has variable %d twice", v)
			}
		}
		if cells > len(t.Values)/f.Domains[v] {
			return fmt.Errorf("has %d entries, too few for its scope", len(t.Values))
		}
		cells *= f.Domains[v]
	}
	if cells != len(t.Values) {
		return fmt.Errorf("has %d entries, its scope has %d cells", len(t.Values), cells)
	}
	for i, x := range t.Values {
		if !(x > 0) || math.IsInf(x, 1) {
			return fmt.Errorf("has the entry %v at %d, not a positive number", x, i)
		}
	}
	return nil
}

// Literal returns the literal that variable v has the value a.
func (f *Formula) Literal(v, a int) Literal { return Literal(f.offsets[v]+int32(a)) << 1 }

// Atoms returns the number of atoms: the values of all variables together.
func (f *Formula) Atoms() int { return int(f.offsets[len(f.Domains)]) }

// FirstAtom returns the number of value 0 of variable v among all values of all variables, which are numbered variable by variable.
func (f *Formula) FirstAtom(v int) int { return int(f.offsets[v]) }
