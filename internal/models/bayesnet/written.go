package bayesnet

// The common part of all writers: a model as a Bayesian network, with a name for every node and state.

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// mostWritten bounds the table that a CP or symmetric factor is written out as.
const mostWritten = 1 << 20

// written is a Bayesian network on its way into a file.
type written struct {
	*bufio.Writer
	format string
	m      *factorgraph.Model
	names  []string
	states [][]string
	tables []*tensor.Dense // per factor
	order  []int           // factors, ancestors first
	err    error           // the first one of names that the format cannot hold
}

// newWritten checks that m is a Bayesian network: every variable is the last one of exactly one factor's scope, no variable is its
// own ancestor, and where m does not call itself a Bayesian network rows sum to 1. Factors that are not tables are written as
// tables, of at most 2^20 entries. Variables without a name are called x_ and their position, values by their positions.
func newWritten(format string, w io.Writer, m *factorgraph.Model) (*written, error) {
	out := &written{Writer: bufio.NewWriterSize(w, 1<<16), format: format, m: m}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", format, err)
	}
	if err := out.network(); err != nil {
		return nil, err
	}
	if err := out.call(); err != nil {
		return nil, err
	}
	out.tables = make([]*tensor.Dense, len(m.Factors))
	for j := range m.Factors {
		t, err := out.table(j)
		if err != nil {
			return nil, err
		}
		out.tables[j] = t
		if r := notOne(t); r >= 0 && !m.Bayes {
			return nil, out.not("factor %d: row %d does not sum to 1", j, r)
		}
	}
	return out, nil
}

// not is the error for models that are no Bayesian networks.
func (w *written) not(format string, args ...any) error {
	return fault.New(fault.Unsupported, "%s: %w: the format holds Bayesian networks only: "+format,
		append([]any{w.format, uai.ErrModel}, args...)...)
}

// network checks the graph.
func (w *written) network() error {
	of := make([]int, len(w.m.Domains)) // 1 + the factor that is the table of a variable
	for j, f := range w.m.Factors {
		if len(f.Scope) == 0 {
			return w.not("factor %d has no variables", j)
		}
		child := f.Scope[len(f.Scope)-1]
		if of[child] > 0 {
			return w.not("variable %d is the last one of factors %d and %d, and has one table", child, of[child]-1, j)
		}
		of[child] = j + 1
	}
	for v, j := range of {
		if j == 0 {
			return w.not("variable %d is the last one of no factor, and has no table", v)
		}
	}
	var cycle []int
	if w.order, cycle = ancestorsFirst(w.m); cycle != nil {
		return w.not("variable %d is its own ancestor", cycle[0])
	}
	return nil
}

// call gives names to nodes and states without one.
func (w *written) call() error {
	w.names, w.states = make([]string, len(w.m.Domains)), make([][]string, len(w.m.Domains))
	seen := map[string]bool{}
	for v, d := range w.m.Domains {
		if w.m.Names != nil {
			w.names[v] = w.m.Names[v]
		}
		if w.names[v] == "" {
			w.names[v] = "x_" + strconv.Itoa(v)
		}
		if seen[w.names[v]] {
			return fault.New(fault.BadInput, "%s: %w: two variables have the name %s", w.format, uai.ErrModel, quoted(w.names[v]))
		}
		seen[w.names[v]] = true
		values := map[string]bool{}
		for x := range d {
			state := strconv.Itoa(x)
			if w.m.States != nil && len(w.m.States[v]) > 0 && w.m.States[v][x] != "" {
				state = w.m.States[v][x]
			}
			if values[state] {
				return fault.New(fault.BadInput, "%s: %w: variable %s has two values with the name %s",
					w.format, uai.ErrModel, quoted(w.names[v]), quoted(state))
			}
			values[state] = true
			w.states[v] = append(w.states[v], state)
		}
	}
	return nil
}

// display is the display name of a variable, its name if it has none.
func (w *written) display(v int) string {
	if v < len(w.m.Aliases) && w.m.Aliases[v] != "" {
		return w.m.Aliases[v]
	}
	return w.names[v]
}

// table returns factor j as a table of probabilities.
func (w *written) table(j int) (*tensor.Dense, error) {
	t, ok := w.m.Factors[j].Table.(*tensor.Dense)
	if !ok {
		var err error
		if t, err = tensor.ToDense(w.m.Factors[j].Table, mostWritten); err != nil {
			return nil, fault.New(fault.Unsupported, "%s: node %s: the format holds tables only: %w",
				w.format, quoted(w.names[w.child(j)]), err)
		}
	}
	for i, v := range t.Data {
		if v < 0 {
			return nil, w.not("factor %d: entry %d is %v", j, i, v)
		}
	}
	return t, nil
}

// notOne returns the first row that does not sum to 1, to the digits that files have; −1 if all do.
func notOne(t *tensor.Dense) int {
	d := t.Shape[len(t.Shape)-1]
	for r := range len(t.Data) / d {
		sum := 0.0
		for _, v := range t.Data[r*d : (r+1)*d] {
			sum += v
		}
		if math.Abs(sum-1) > max(1e-5, 1e-6*float64(d)) {
			return r
		}
	}
	return -1
}

// child is the node whose table factor j is, parents are its parents.
func (w *written) child(j int) int     { return child(w.m, j) }
func (w *written) parents(j int) []int { return w.m.Factors[j].Scope[:len(w.m.Factors[j].Scope)-1] }

// cannot notes a name that the format has no way to write.
func (w *written) cannot(name, why string) {
	if w.err == nil {
		w.err = fault.New(fault.Unsupported, "%s: the name %s cannot be written: %s", w.format, quoted(name), why)
	}
}

// number writes a number with the digits that identify it.
func (w *written) number(v float64) {
	_, _ = w.Write(decimal.Append(w.AvailableBuffer(), v))
}

// numbers writes a list.
func (w *written) numbers(list []float64, between string) {
	for i, v := range list {
		if i > 0 {
			_, _ = w.WriteString(between)
		}
		w.number(v)
	}
}

// close ends the file.
func (w *written) close() error {
	if w.err != nil {
		return w.err
	}
	return w.Flush()
}

// scope writes `keyword ( child | parent, parent )` with these names.
func (w *written) scope(what string, j int, names []string, between string) {
	fmt.Fprintf(w, "%s ( %s", what, names[w.child(j)])
	for k, p := range w.parents(j) {
		w.WriteString([]string{" | ", between}[min(k, 1)])
		w.WriteString(names[p])
	}
	w.WriteString(" )")
}

// distributions writes the rows of all tables as BIF and DSC have them: root before the row of a node without parents, else the states of
// the parents in a parenthesis that end closes.
func (w *written) distributions(names []string, root, end string, state func(v, x int) string) {
	for j := range w.tables {
		w.scope("probability", j, names, ", ")
		w.WriteString(" {\n")
		w.each(j, func(row []float64, values []int) {
			w.WriteString("  ")
			for k, x := range values {
				w.WriteString([]string{"(", ", "}[min(k, 1)])
				w.WriteString(state(w.parents(j)[k], x))
			}
			w.WriteString([]string{root, end}[min(len(values), 1)])
			w.numbers(row, ", ")
			w.WriteString(";\n")
		})
		w.WriteString("}\n")
	}
}

// each calls do for every row of table j: its number, and the values of the parents, which it must not keep.
func (w *written) each(j int, do func(row []float64, values []int)) {
	t, parents := w.tables[j], w.parents(j)
	d := t.Shape[len(t.Shape)-1]
	values := make([]int, len(parents))
	for from := 0; from < len(t.Data); from += d {
		do(t.Data[from:from+d], values)
		for k := len(values) - 1; k >= 0; k-- {
			if values[k]++; values[k] < t.Shape[k] {
				break
			}
			values[k] = 0
		}
	}
}
