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
	// ErrNotFinite states that an entry left the range of
	// float64 although tables carry exponents, or was NaN.
	ErrNotFinite = errors.New("sumproduct: entry is not finite")
	// ErrSpan states that the terms of a total span more than float64 holds,
	// so that the computed number is not the total.
	ErrSpan = errors.New("sumproduct: the entries span more than float64 holds")
)

// Expression is Scale · Σ_x Π_t Tables[t][x]: a sum over all indices of a product of dense tables.
type Expression struct {
	Dims   []int         // dimension of every index, ≥ 1
	Tables []Table       // each over some of the indices
	Scale  scaled.Number // 0 if Z is known to be 0
	// Support[i] lists the values of index i, as the network numbers them, that are left in Dims[i]; nil
	// if none was removed. A value is removed if every term with it is 0: because of an observation, a
	// weight of 0, a slice of zeros.
	Support [][]int
	// Variables[v] is the index over the values of variable v: the hidden index of the link that
	// has its weights. Variables that the network forces to be equal may share an index. Empty for a
	// network without variables.
	Variables []int
	// Counters[i] reports whether index i counts along the legs of a symmetric tensor of one
	// term, so that the variables decide its value. nil: no index does.
	Counters []bool
	// Unfit names the entries that do not fit float64 together with the others of their table, as a text. It is empty if all entries
	// fit. Only package wide contracts an expression that is unfit, after BuildWide. See CheckFit.
	Unfit string
}

// Table is one dense tensor of an expression.
type Table struct {
	Scope []int     // its indices, each once
	Data  []float64 // Π Dims[Scope] entries, the last index fastest
	Exp   []int64   // entry k is Data[k]·2^Exp[k]; nil: it is Data[k]. Only BuildWide sets it
	// Rounded reports whether entries may have been rounded when the table was computed from the
	// network's numbers. If not, they are exact to the last bit.
	Rounded bool
}

// Signed reports whether an entry of e, or its scale, is below 0. Then the terms of its value may cancel. Linear time.
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

// CheckFit returns nil if float64 holds the entries of e together. Otherwise, if e is Unfit, it returns ErrSpan (fault.Unsupported).
func (e *Expression) CheckFit() error {
	if e.Unfit == "" {
		return nil
	}
	return fault.New(fault.Unsupported, "%w: %s", ErrSpan, e.Unfit)
}

// Absolute returns e with the absolute value of every entry and of the scale. The value of the result is the sum of the absolute values of
// the terms of e. Tables are not marked as Rounded.
func (e *Expression) Absolute() *Expression {
	absolute := *e
	absolute.Scale = e.Scale.Abs()
	absolute.Tables = make([]Table, len(e.Tables))
	for t, table := range e.Tables {
		data := make([]float64, len(table.Data))
		for k, x := range table.Data {
			data[k] = math.Abs(x)
		}
		absolute.Tables[t] = Table{Scope: table.Scope, Data: data, Exp: table.Exp}
	}

	return &absolute
}

// Hypergraph returns the shape of e: edge t is the scope of table t. It shares memory with e.
func (e *Expression) Hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: e.Dims, Edges: make([][]int, len(e.Tables))}
	for t := range e.Tables {
		h.Edges[t] = e.Tables[t].Scope
	}
	return h
}

// Validate returns an error if e cannot be contracted. The error is ErrSpan if e is unfit (CheckFit). It is ErrExpression
// (fault.BadInput) if a dimension is below 1, if a scope names an index twice or one that does not exist, if the number of entries of a
// table does not match its scope, or if a table has exponents. Time O(indices + Σ scopes). Entries are not looked at, see CheckFinite.
func (e *Expression) Validate() error {
	if err := e.CheckFit(); err != nil {
		return err
	}
	return e.ValidateShape()
}

// ValidateShape returns an error if e contradicts itself. It finds all errors that Validate finds but one: float64 need not hold the
// entries of e together (see CheckFit).
func (e *Expression) ValidateShape() error {
	for i, d := range e.Dims {
		if d < 1 {
			return fault.New(fault.BadInput, "%w: index %d has dimension %d", ErrExpression, i, d)
		}
	}

	lastTable := make([]int, len(e.Dims)) // by index: 1 + the last table so far that has it, 0 for none; validateTable updates it
	for t := range e.Tables {
		if err := e.validateTable(t, lastTable); err != nil {
			return err
		}
	}
	return nil
}

// validateTable checks the scope and the number of entries of table t. lastTable has, by index, 1 + the last table so far that has the
// index, 0 for none. validateTable updates it, and so finds an index that the scope names twice. Tables are checked in sequence.
func (e *Expression) validateTable(t int, lastTable []int) error {
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
		if lastTable[i] == t+1 {
			return fault.New(fault.BadInput, "%w: table %d names index %d twice",
				ErrExpression, t, i)
		}
		lastTable[i] = t + 1
		if size > len(table.Data) { // wrong already, and it may overflow
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

// CheckFinite returns nil if all entries of table t are finite. Otherwise it returns ErrNotFinite. The code is fault.BadInput for NaN. It
// is fault.Unsupported for an infinite entry, which may come from finite ones that were multiplied by the numbers with which evidence
// enters. Time O(entries).
func (e *Expression) CheckFinite(t int) error {
	for k, x := range e.Tables[t].Data {
		switch {
		case x-x == 0: // finite, since ∞ − ∞ and NaN − NaN are NaN
		case math.IsNaN(x):
			return fault.New(fault.BadInput, "%w: table %d, entry %d is %g", ErrNotFinite, t, k, x)
		default:
			return fault.New(fault.Unsupported, "%w: table %d, entry %d is %g",
				ErrNotFinite, t, k, x)
		}
	}
	return nil
}

// ValidateOrder returns nil if order names every index of dimension above 1 once, and other indices at most once. Otherwise it returns
// ErrExpression.
func (e *Expression) ValidateOrder(order []int) error {
	isNamed := make([]bool, len(e.Dims))
	for _, i := range order {
		if i < 0 || i >= len(e.Dims) {
			return fmt.Errorf("%w: the order names index %d, there are %d",
				ErrExpression, i, len(e.Dims))
		}
		if isNamed[i] {
			return fmt.Errorf("%w: the order names index %d twice", ErrExpression, i)
		}
		isNamed[i] = true
	}

	for i, d := range e.Dims {
		if d > 1 && !isNamed[i] {
			return fmt.Errorf("%w: the order leaves out index %d", ErrExpression, i)
		}
	}
	return nil
}
