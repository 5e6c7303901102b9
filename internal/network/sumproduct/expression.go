// Package sumproduct is the input of every engine: a sum over indices of a product of dense
// tables, with one check of it, one way to keep its entries in the range of float64, one way to
// address them and one to share work out.
package sumproduct

// The expression: tables over indices.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

var (
	// ErrOverBudget is wrapped by the errors of contractions and expressions
	// that need more memory than allowed; their code is fault.OverBudget.
	ErrOverBudget = errors.New("sumproduct: over the memory budget")
	// ErrExpression is wrapped by the errors of expressions and orders that contradict themselves.
	ErrExpression = errors.New("sumproduct: invalid expression")
	// ErrNotFinite says that an entry left the range of
	// float64 although tables carry exponents, or was NaN.
	ErrNotFinite = errors.New("sumproduct: entry is not finite")
	// ErrSpan says that the terms of a total span more than float64 holds,
	// and the computed number is not the total.
	ErrSpan = errors.New("sumproduct: the entries span more than float64 holds")
)

// Expression is Scale · Σ_x Π_t Tables[t][x]: a sum over all indices of a product of dense tables.
type Expression struct {
	Dims   []int         // dimension of every index, ≥ 1
	Tables []Table       // each over some of the indices
	Scale  scaled.Number // 0 when the network is known to be 0
	// Support[i] lists the values of index i, as the network numbers them, that Dims[i] counts; nil
	// where none was removed. A value is removed when every term with it is 0: an observation, a
	// weight of 0, a slice of zeros.
	Support [][]int
	// Variables[v] is the index over the values of variable v: the hidden index of the link that
	// has its weights. Variables that the network forces to be equal may share one. Empty for a
	// network without variables.
	Variables []int
	// Counters says of every index whether it counts along the legs of a symmetric tensor of one
	// term: the variables decide its value. nil where no index does.
	Counters []bool
	// Unfit says which entries do not fit float64 beside the others of their table,
	// where that is so: only package wide contracts such an expression, after BuildWide. See Fits.
	Unfit string
}

// Table is one dense tensor of an expression.
type Table struct {
	Scope []int     // its indices, each once
	Data  []float64 // Π Dims[Scope] entries, the last index fastest
	Exp   []int64   // entry k is Data[k]·2^Exp[k]; nil: Data[k]. Of BuildWide only
	// Rounded says that an entry may have been rounded where the table was made of the
	// network's numbers. Entries of other tables are exact to the last bit.
	Rounded bool
}

// Signed reports whether an entry of e is below 0: terms of its value may cancel. Linear time.
func (e *Expression) Signed() bool {
	for t := range e.Tables {
		for _, x := range e.Tables[t].Data {
			if x < 0 {
				return true
			}
		}
	}
	return e.Scale.Sign() < 0
}

// Fits returns ErrSpan (fault.Unsupported) for an expression that is Unfit.
func (e *Expression) Fits() error {
	if e.Unfit == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "%w: %s", ErrSpan, e.Unfit)
}

// Abs returns e with the absolute value of every entry:
// its value is the sum of the terms of e's without their signs.
func (e *Expression) Abs() *Expression {
	out := *e
	out.Scale = e.Scale.Abs()
	out.Tables = make([]Table, len(e.Tables))
	for t, table := range e.Tables {
		data := make([]float64, len(table.Data))
		for k, x := range table.Data {
			data[k] = math.Abs(x)
		}
		out.Tables[t] = Table{Scope: table.Scope, Data: data, Exp: table.Exp}
	}

	return &out
}

// Hypergraph returns the shape of e: edge t is the scope of table t. It shares memory with e.
func (e *Expression) Hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: e.Dims, Edges: make([][]int, len(e.Tables))}
	for t := range e.Tables {
		h.Edges[t] = e.Tables[t].Scope
	}
	return h
}

// Validate returns why e cannot be contracted, if so: ErrSpan (see Fits), or ErrExpression
// (fault.BadInput) for dimensions below 1, scopes that name an index twice or one that is none, a
// number of entries that is not the scope's, and tables with exponents of their own. After it
// nothing is out of range. Time O(indices + Σ scopes): entries are not looked at, see Finite.
func (e *Expression) Validate() error {
	if err := e.Fits(); err != nil {
		return err
	}
	return e.ValidateShape()
}

// ValidateShape is Validate without the question whether entries fit float64.
func (e *Expression) ValidateShape() error {
	for i, d := range e.Dims {
		if d < 1 {
			return fault.New(fault.BadInput, "%w: index %d has dimension %d", ErrExpression, i, d)
		}
	}

	last := make([]int, len(e.Dims)) // one more than the last table with the index
	for t := range e.Tables {
		if err := e.validateTable(t, last); err != nil {
			return err
		}
	}
	return nil
}

// validateTable checks table t; last holds, by index, one more than the last table that has it.
func (e *Expression) validateTable(t int, last []int) error {
	table := &e.Tables[t]
	if table.Exp != nil {
		return fault.New(fault.BadInput, "%w: table %d has exponents of its own", ErrExpression, t)
	}

	size := 1
	for _, i := range table.Scope {
		if i < 0 || i >= len(e.Dims) {
			return fault.New(fault.BadInput, "%w: table %d names index %d, there are %d",
				ErrExpression, t, i, len(e.Dims))
		}
		if last[i] == t+1 {
			return fault.New(fault.BadInput, "%w: table %d names index %d twice",
				ErrExpression, t, i)
		}
		last[i] = t + 1
		if size > len(table.Data) { // before it overflows
			break
		}
		size *= e.Dims[i]
	}

	if size != len(table.Data) {
		return fault.New(fault.BadInput,
			"%w: table %d has %d entries, its scope %v needs another number", ErrExpression, t,
			len(table.Data), table.Scope)
	}
	return nil
}

// Finite returns ErrNotFinite for a table with an entry that is infinite (fault.Unsupported:
// masks make such of entries that are not) or NaN (fault.BadInput). Time O(entries).
func (e *Expression) Finite(t int) error {
	for k, x := range e.Tables[t].Data {
		switch {
		case x-x == 0:
		case math.IsNaN(x):
			return fault.New(fault.BadInput, "%w: table %d, entry %d is %g", ErrNotFinite, t, k, x)
		default:
			return fault.New(fault.Unsupported, "%w: table %d, entry %d is %g",
				ErrNotFinite, t, k, x)
		}
	}
	return nil
}

// ValidateOrder checks that order names every index of dimension above 1 once.
func (e *Expression) ValidateOrder(order []int) error {
	seen := make([]bool, len(e.Dims))
	for _, i := range order {
		if i < 0 || i >= len(e.Dims) {
			return fmt.Errorf("%w: the order names index %d, there are %d",
				ErrExpression, i, len(e.Dims))
		}
		if seen[i] {
			return fmt.Errorf("%w: the order names index %d twice", ErrExpression, i)
		}
		seen[i] = true
	}

	for i, d := range e.Dims {
		if d > 1 && !seen[i] {
			return fmt.Errorf("%w: the order leaves out index %d", ErrExpression, i)
		}
	}
	return nil
}
