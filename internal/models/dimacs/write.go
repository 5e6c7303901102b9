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
	first := weighed(m)
	for j, f := range m.Factors {
		falsified, ok := falsified(f.Table)
		if t, dense := f.Table.(*tensor.Dense); dense && len(f.Scope) == 1 && weights[f.Scope[0]] == nil && (j < first || !ok) {
			weights[f.Scope[0]] = t
			continue
		}
		if !ok {
			return fault.New(fault.Unsupported, "cnf: factor %d over the variables %v is neither a clause nor the weights of one variable",
				j, f.Scope[:min(len(f.Scope), 12)])
		}
		c := make([]int, len(falsified))
		for k, x := range falsified {
			c[k] = f.Scope[k] + 1
			if x == 1 {
				c[k] = -c[k]
			}
		}
		clauses = append(clauses, c)
	}
	return write(w, weights, clauses)
}

// weighed is the number of leading factors that are weights: of one variable each, as Read puts them in front. If all of them could
// be clauses of one literal, they are taken as clauses.
func weighed(m *factorgraph.Model) int {
	any := false
	for j, f := range m.Factors {
		t, dense := f.Table.(*tensor.Dense)
		if !dense || len(f.Scope) != 1 || j > 0 && f.Scope[0] <= m.Factors[j-1].Scope[0] {
			if any {
				return j
			}
			return 0
		}
		_, unit := falsified(t)
		any = any || !unit
	}
	if any {
		return len(m.Factors)
	}
	return 0
}

func write(w io.Writer, weights []*tensor.Dense, clauses [][]int) error {
	b := bufio.NewWriter(w)
	kind := "mc"
	if slices.ContainsFunc(weights, func(t *tensor.Dense) bool { return t != nil }) {
		kind = "wmc"
	}
	fmt.Fprintf(b, "c t %s\np cnf %d %d\n", kind, len(weights), len(clauses))
	for v, t := range weights {
		if t != nil {
			fmt.Fprintf(b, "c p weight %d %s 0\nc p weight %d %s 0\n", v+1, digits(t.Data[1]), -v-1, digits(t.Data[0]))
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

func digits(x float64) string { return string(decimal.Append(nil, x)) }

// falsified returns the one combination of values for which a factor is 0, and whether it is 1 for all others.
func falsified(t tensor.Tensor) ([]int, bool) {
	switch t := t.(type) {
	case *tensor.Dense:
		zero := slices.Index(t.Data, 0)
		for i, x := range t.Data {
			if x != 1 && i != zero {
				return nil, false
			}
		}
		values := make([]int, len(t.Shape))
		for k, at := len(values)-1, zero; k >= 0; k-- {
			values[k] = at % 2
			at /= 2
		}
		return values, zero >= 0
	case *tensor.CP:
		values := make([]int, len(t.Shape))
		for k, v := range t.Vectors {
			if len(v) != 4 {
				return nil, false
			}
			if values[k] = 0; v[3] == 1 {
				values[k] = 1
			}
		}
		want := factorgraph.Clause(positive(values)...)
		same := slices.Equal(t.Weights, want.Weights)
		for k := range t.Vectors {
			same = same && slices.Equal(t.Vectors[k], want.Vectors[k])
		}
		return values, same
	}
	return nil, false
}

// positive says of every literal of a clause whether it is, from the values that falsify it.
func positive(values []int) []bool {
	list := make([]bool, len(values))
	for k, x := range values {
		list[k] = x == 0
	}
	return list
}
