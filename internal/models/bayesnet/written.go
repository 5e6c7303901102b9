package bayesnet

// The common part of all writers: a model as a Bayesian network, with a name for every node and state.

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// mostWritten bounds the table that a CP or symmetric factor is written out as.
const mostWritten = 1 << 20

// networkWriter is a Bayesian network on its way into a file.
type networkWriter struct {
	*bufio.Writer
	format string // in errors
	m      *factorgraph.Model
	names  []string        // per variable
	states [][]string      // per variable, the names of its values
	tables []*tensor.Dense // per factor
	order  []int           // the factors, the tables of ancestors before those of their descendants
	err    error           // for the first name that the format cannot hold
}

// newNetworkWriter prepares a model for writing. It is an error if m is no Bayesian network: if a variable is not the
// last one of exactly one factor's scope, if a variable is its own ancestor, or if m does not call itself a Bayesian
// network and a row does not sum to 1. Factors that are not tables are written as tables, of at most 2^20 entries.
// Variables without a name are called x_ and their position, values by their positions.
func newNetworkWriter(format string, w io.Writer, m *factorgraph.Model) (*networkWriter, error) {
	writer := &networkWriter{Writer: bufio.NewWriterSize(w, 1<<16), format: format, m: m}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", format, err)
	}
	if err := writer.checkGraph(); err != nil {
		return nil, err
	}
	if err := writer.chooseNames(); err != nil {
		return nil, err
	}
	writer.tables = make([]*tensor.Dense, len(m.Factors))
	for j := range m.Factors {
		t, err := writer.denseTable(j)
		if err != nil {
			return nil, err
		}
		writer.tables[j] = t
		if r := unnormalisedRow(t); r >= 0 && !m.Bayes {
			return nil, writer.notBayesian("factor %d: row %d does not sum to 1", j, r)
		}
	}
	return writer, nil
}

// notBayesian returns the error that the model is no Bayesian network, with the reason.
func (w *networkWriter) notBayesian(format string, args ...any) error {
	return fault.New(fault.Unsupported, "%s: %w: the format holds Bayesian networks only: "+format,
		append([]any{w.format, uai.ErrModel}, args...)...)
}

// checkGraph checks that every variable has one table and that the graph has no cycle. It sets order.
func (w *networkWriter) checkGraph() error {
	// every variable has one table
	const none = -1
	tableOf := slices.Repeat([]int{none}, len(w.m.Domains)) // per variable, the factor that is its table
	for j, f := range w.m.Factors {
		if len(f.Scope) == 0 {
			return w.notBayesian("factor %d has no variables", j)
		}
		child := f.Scope[len(f.Scope)-1]
		if tableOf[child] != none {
			return w.notBayesian("variable %d is the last one of factors %d and %d, and has one table", child, tableOf[child], j)
		}
		tableOf[child] = j
	}
	for v, j := range tableOf {
		if j == none {
			return w.notBayesian("variable %d is the last one of no factor, and has no table", v)
		}
	}

	// no variable is its own ancestor
	var cycle []int
	if w.order, cycle = orderAncestorsFirst(w.m); cycle != nil {
		return w.notBayesian("variable %d is its own ancestor", cycle[0])
	}
	return nil
}

// chooseNames sets the names of all variables and values. Those without a name are called by their positions.
func (w *networkWriter) chooseNames() error {
	w.names, w.states = make([]string, len(w.m.Domains)), make([][]string, len(w.m.Domains))
	isTaken := map[string]bool{}
	for v, d := range w.m.Domains {
		// the name of the variable
		if w.m.Names != nil {
			w.names[v] = w.m.Names[v]
		}
		if w.names[v] == "" {
			w.names[v] = "x_" + strconv.Itoa(v)
		}
		if isTaken[w.names[v]] {
			return fault.New(fault.BadInput, "%s: %w: two variables have the name %s", w.format, uai.ErrModel, quote(w.names[v]))
		}
		isTaken[w.names[v]] = true

		// the names of its values
		values := map[string]bool{}
		for x := range d {
			state := strconv.Itoa(x)
			if w.m.States != nil && len(w.m.States[v]) > 0 && w.m.States[v][x] != "" {
				state = w.m.States[v][x]
			}
			if values[state] {
				return fault.New(fault.BadInput, "%s: %w: variable %s has two values with the name %s",
					w.format, uai.ErrModel, quote(w.names[v]), quote(state))
			}
			values[state] = true
			w.states[v] = append(w.states[v], state)
		}
	}
	return nil
}

// displayName returns the display name of variable v, its name if it has none.
func (w *networkWriter) displayName(v int) string {
	if v < len(w.m.Aliases) && w.m.Aliases[v] != "" {
		return w.m.Aliases[v]
	}
	return w.names[v]
}

// denseTable returns factor j as a table of probabilities. A negative entry is an error.
func (w *networkWriter) denseTable(j int) (*tensor.Dense, error) {
	t, ok := w.m.Factors[j].Table.(*tensor.Dense)
	if !ok {
		var err error
		if t, err = tensor.ToDense(w.m.Factors[j].Table, mostWritten); err != nil {
			return nil, fault.New(fault.Unsupported, "%s: node %s: the format holds tables only: %w",
				w.format, quote(w.names[w.child(j)]), err)
		}
	}
	for i, v := range t.Data {
		if v < 0 {
			return nil, w.notBayesian("factor %d: entry %d is %v", j, i, v)
		}
	}
	return t, nil
}

// unnormalisedRow returns the first row that does not sum to 1, up to the rounding of numbers in files; −1 if all do.
func unnormalisedRow(t *tensor.Dense) int {
	d := t.Shape[len(t.Shape)-1]
	for r := range len(t.Data) / d {
		sum := 0.0
		for _, v := range t.Data[r*d : (r+1)*d] {
			sum += v
		}
		if math.Abs(sum-1) > max(1e-5, 1e-6*float64(d)) { // 1e-6 for each number of a long row
			return r
		}
	}
	return -1
}

// child returns the node whose table factor j is: the last variable of its scope.
func (w *networkWriter) child(j int) int { return childOf(w.m, j) }

// parents returns the parents of the node whose table factor j is: the other variables of its scope.
func (w *networkWriter) parents(j int) []int {
	return w.m.Factors[j].Scope[:len(w.m.Factors[j].Scope)-1]
}

// failName notes the error that the format cannot hold a name.
func (w *networkWriter) failName(name, why string) {
	if w.err == nil {
		w.err = fault.New(fault.Unsupported, "%s: the name %s cannot be written: %s", w.format, quote(name), why)
	}
}

// writeNumber writes a number with as many digits as identify it.
func (w *networkWriter) writeNumber(v float64) {
	_, _ = w.Write(decimal.Append(w.AvailableBuffer(), v))
}

// writeNumbers writes a list of numbers with a separator.
func (w *networkWriter) writeNumbers(list []float64, separator string) {
	for i, v := range list {
		if i > 0 {
			_, _ = w.WriteString(separator)
		}
		w.writeNumber(v)
	}
}

// finish writes what is left in the buffer, or returns the error of a name.
func (w *networkWriter) finish() error {
	if w.err != nil {
		return w.err
	}
	return w.Flush()
}

// writeScope writes `keyword ( child | parent, parent )` of factor j, with the separator between parents.
func (w *networkWriter) writeScope(keyword string, j int, names []string, separator string) {
	fmt.Fprintf(w, "%s ( %s", keyword, names[w.child(j)])
	var parents []string
	for _, p := range w.parents(j) {
		parents = append(parents, names[p])
	}
	if parents != nil {
		w.WriteString(" | " + strings.Join(parents, separator))
	}
	w.WriteString(" )")
}

// writeDistributions writes the rows of all tables as BIF and DSC have them. Before a row stand the states of the parents, as stateText
// writes them, in a parenthesis that the text closing ends. A node without parents has a single row, and the text noParents before it.
func (w *networkWriter) writeDistributions(names []string, noParents, closing string, stateText func(v, x int) string) {
	for j := range w.tables {
		w.writeScope("probability", j, names, ", ")
		w.WriteString(" {\n")
		w.forEachRow(j, func(row []float64, values []int) {
			w.WriteString("  ")
			states := make([]string, len(values))
			for k, x := range values {
				states[k] = stateText(w.parents(j)[k], x)
			}
			if len(states) == 0 {
				w.WriteString(noParents)
			} else {
				w.WriteString("(" + strings.Join(states, ", ") + closing)
			}
			w.writeNumbers(row, ", ")
			w.WriteString(";\n")
		})
		w.WriteString("}\n")
	}
}

// forEachRow calls do for every row of table j, with the row's probabilities and the states of the parents. do must not
// keep values: the next row changes it.
func (w *networkWriter) forEachRow(j int, do func(row []float64, values []int)) {
	t, parents := w.tables[j], w.parents(j)
	d := t.Shape[len(t.Shape)-1]
	values := make([]int, len(parents))
	for row := range slices.Chunk(t.Data, d) {
		do(row, values)

		// the next values of the parents, the last parent fastest
		for k := len(values) - 1; k >= 0; k-- {
			if values[k]++; values[k] < t.Shape[k] {
				break
			}
			values[k] = 0
		}
	}
}
