package dimacs

// Writing models that are formulas in conjunctive normal form.

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Write writes a model of variables with two values whose factors are weights of one variable, at most one for each, and clauses: 0 for one
// combination of values and 1 for all others, as a table or as factorgraph.Clause. Variable v is number v + 1. Both weights of a variable
// are written, with the digits that identify them. Any other model is refused with unsupported, by the factor that is no clause.
func Write(w io.Writer, m *factorgraph.Model) error {
	weights := make([]*tensor.Dense, len(m.Domains))
	var clauses [][]int
	for v, d := range m.Domains {
		if d != 2 {
			return fault.New(fault.Unsupported, "cnf: variable %d has %d values, variables of formulas have 2", v, d)
		}
	}
	leading := leadingWeights(m)
	for j, f := range m.Factors {
		// Weights, the first ones of their variable. A table of one variable with a single 0 could also be a clause of one literal: it is
		// taken as weights only among the leading factors.
		values, isClause := falsifyingValues(f.Table)
		t, isDense := f.Table.(*tensor.Dense)
		isFirstOfVariable := isDense && len(f.Scope) == 1 && weights[f.Scope[0]] == nil
		if isFirstOfVariable && (j < leading || !isClause) {
			weights[f.Scope[0]] = t
			continue
		}

		// a clause
		if !isClause {
			return fault.New(fault.Unsupported, "cnf: factor %d over the variables %v is neither a clause nor the weights of one variable",
				j, f.Scope[:min(len(f.Scope), 12)]) // no more than fit a line
		}
		clauses = append(clauses, literalNumbers(f.Scope, values))
	}
	return write(w, weights, clauses)
}

// leadingWeights returns the number of leading factors that are weights: tables of one variable each, in ascending
// sequence, as Read puts them in front. It returns 0 if all of them could be clauses of one literal: then they are
// taken as clauses.
func leadingWeights(m *factorgraph.Model) int {
	count, areAllClauses := 0, true
	for j, f := range m.Factors {
		t, isDense := f.Table.(*tensor.Dense)
		isOutOfOrder := j > 0 && len(f.Scope) == 1 && f.Scope[0] <= m.Factors[j-1].Scope[0]
		if !isDense || len(f.Scope) != 1 || isOutOfOrder {
			break
		}
		_, isClause := falsifyingValues(t)
		areAllClauses = areAllClauses && isClause
		count++
	}
	if areAllClauses {
		return 0
	}
	return count
}

// literalNumbers returns the literals of a clause that is false if the variables of the scope have these values: v + 1 for variable v, and
// −(v + 1) for its negation.
func literalNumbers(scope, values []int) []int {
	literals := make([]int, len(values))
	for k, x := range values {
		literals[k] = scope[k] + 1
		if x == 1 {
			literals[k] = -literals[k]
		}
	}
	return literals
}

// write writes a formula: the weights of each variable, nil if it has none, and the literals of each clause, by the
// numbers of variables from 1 on.
func write(w io.Writer, weights []*tensor.Dense, clauses [][]int) error {
	b := bufio.NewWriter(w)
	kind := "mc"
	if slices.ContainsFunc(weights, func(t *tensor.Dense) bool { return t != nil }) {
		kind = "wmc"
	}
	fmt.Fprintf(b, "c t %s\np cnf %d %d\n", kind, len(weights), len(clauses))
	for v, t := range weights {
		if t != nil {
			fmt.Fprintf(b, "c p weight %d %s 0\nc p weight %d %s 0\n", v+1, formatWeight(t.Data[1]), -v-1, formatWeight(t.Data[0]))
		}
	}
	for _, c := range clauses {
		for _, l := range c {
			b.WriteString(strconv.Itoa(l))
			b.WriteByte(' ')
		}
		b.WriteString("0\n")
	}
	return b.Flush()
}

// formatWeight returns a number with as many digits as identify it.
func formatWeight(x float64) string { return string(decimal.Append(nil, x)) }

// falsifyingValues returns the one combination of values for which a factor is 0, and whether the factor is a clause: 1
// for all others.
func falsifyingValues(t tensor.Tensor) ([]int, bool) {
	switch t := t.(type) {
	case *tensor.Dense:
		// a table with one 0, and 1 elsewhere
		zero := slices.Index(t.Data, 0) // −1 if there is none: the values mean nothing then
		for i, x := range t.Data {
			if x != 1 && i != zero {
				return nil, false
			}
		}
		values := make([]int, len(t.Shape))
		for k, index := len(values)-1, zero; k >= 0; k-- {
			values[k] = index % 2
			index /= 2
		}
		return values, zero >= 0
	case *tensor.CP:
		// the tensor that factorgraph.Clause makes: guess the literals from its second term, and compare
		values := make([]int, len(t.Shape))
		for k, v := range t.Vectors {
			if len(v) != 4 { // two terms, two values
				return nil, false
			}
			if v[3] == 1 { // the second term has a 1 at the value that falsifies
				values[k] = 1
			}
		}
		clause := factorgraph.Clause(arePositive(values)...)
		isEqual := slices.Equal(t.Weights, clause.Weights)
		for k := range t.Vectors {
			isEqual = isEqual && slices.Equal(t.Vectors[k], clause.Vectors[k])
		}
		return values, isEqual
	}
	return nil, false
}

// arePositive reports for each literal of a clause whether it is not negated. values has the value of each variable
// that makes its literal false.
func arePositive(values []int) []bool {
	list := make([]bool, len(values))
	for k, x := range values {
		list[k] = x == 0
	}
	return list
}
