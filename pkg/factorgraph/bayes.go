// Models that say they are Bayesian networks.

package factorgraph

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// A row of a conditional probability table may miss 1 by rowSlack, or by rowSlackEach for every entry where
// that is more: files written with six digits do.
const (
	rowSlack     = 1e-5
	rowSlackEach = 1e-6
)

// WrongRow returns "" or, of a model that is called a Bayesian network, which of its tables are no conditional probability tables. The rows
// of such a table sum to 1, to the digits that files have. Which variable a table is of follows from the scopes (see nodes); if it does
// not, a table may be of any variable of its scope. The text names the first row that rounding does not explain, counts the other rows of
// its table, and says whether all rows would sum to 1 with the numbers the other way round. Factors in other forms than tables are not
// looked at. m is normalised already (see Normalised). Linear time.
func (m *Model) WrongRow() string {
	text, _, _ := m.wrongRow()
	return text
}

// unnormalised is WrongRow, with what is done with the row and the number of other tables that are like its own. ln Z of such a model is
// not ln P(evidence), so people want to know; nothing is computed in another way.
func (m *Model) unnormalised() string {
	text, tables, hasParents := m.wrongRow()
	if text == "" {
		return ""
	}
	text += ": it is kept as it is, "
	if hasParents {
		text += "so that answers weigh these values of the parents by that sum, "
	}
	text += "and ln Z is not the ln P of the evidence"
	switch tables {
	case 1:
		return text
	case 2:
		return text + ". 1 more table is like it"
	}
	return fmt.Sprintf("%s. %d more tables are like it", text, tables-1)
}

// wrongRow returns a row of the first table that is no conditional probability table with its sum, the number of such tables, and whether
// the row is one of several.
func (m *Model) wrongRow() (text string, tables int, hasParents bool) {
	if !m.Bayes {
		return "", 0, false
	}
	nodes := m.nodes()
	for j := range m.Factors {
		t, ok := m.Factors[j].Table.(*tensor.Dense)
		if !ok || isTableOf(t, nodes, j) {
			continue
		}
		if tables++; tables == 1 {
			text, hasParents = m.describeRows(j, t, nodeMode(t, nodes, j)), len(t.Shape) > 1
		}
	}
	return text, tables, hasParents
}

// nodes returns the position in each factor's scope of the variable whose table the factor is, and nil if the scopes do not tell. It is
// the last one if no two scopes end with the same variable. Else the scopes tell it in every network in which each variable has one
// table and none is its own ancestor: one variable of some scope has no table yet while all others there have theirs, and so on to the
// last factor, in one way only. Time linear in the scopes.
func (m *Model) nodes() []int {
	if len(m.Factors) != len(m.Domains) {
		return nil
	}
	if nodes := m.lastNodes(); nodes != nil {
		return nodes
	}
	factors := make([][]int, len(m.Domains)) // that have the variable in their scope
	missing := make([]int, len(m.Factors))   // variables of the scope without a table so far
	var ready []int                          // factors with one such variable
	for j, f := range m.Factors {
		for _, v := range f.Scope {
			factors[v] = append(factors[v], j)
		}
		if missing[j] = len(f.Scope); missing[j] == 1 {
			ready = append(ready, j)
		}
	}
	nodes := make([]int, len(m.Factors))
	hasTable := make([]bool, len(m.Domains))
	for k := 0; k < len(ready); k++ {
		scope := m.Factors[ready[k]].Scope
		mode := slices.IndexFunc(scope, func(v int) bool { return !hasTable[v] })
		if mode < 0 {
			return nil // two tables of one variable
		}
		nodes[ready[k]], hasTable[scope[mode]] = mode, true
		for _, j := range factors[scope[mode]] {
			if missing[j]--; missing[j] == 1 {
				ready = append(ready, j)
			}
		}
	}
	if len(ready) != len(m.Factors) {
		return nil
	}
	return nodes
}

// lastNodes is the last position of each scope, and nil if two scopes end with the same variable or one is empty.
func (m *Model) lastNodes() []int {
	nodes, hasTable := make([]int, len(m.Factors)), make([]bool, len(m.Domains))
	for j, f := range m.Factors {
		last := len(f.Scope) - 1
		if last < 0 || hasTable[f.Scope[last]] {
			return nil
		}
		nodes[j], hasTable[f.Scope[last]] = last, true
	}
	return nodes
}

// isTableOf reports whether the rows of factor j's table sum to 1: over its node, or over any one variable where nodes are unknown.
func isTableOf(t *tensor.Dense, nodes []int, j int) bool {
	if nodes == nil || len(t.Shape) == 0 {
		return conditional(t)
	}
	return sumsToOne(t, nodes[j])
}

// nodeMode is the mode of factor j's node: the last one where nodes are unknown.
func nodeMode(t *tensor.Dense, nodes []int, j int) int {
	if nodes == nil {
		return len(t.Shape) - 1
	}
	return nodes[j]
}

// strideOf is the number of entries between two values of a mode.
func strideOf(t *tensor.Dense, mode int) int { return decimal.Entries(t.Shape[mode+1:]) }

// describeRows names the first row of factor j over a mode that rounding does not explain, and counts the other rows that do not sum to 1.
// There is one that does not.
func (m *Model) describeRows(j int, t *tensor.Dense, mode int) string {
	table := rowsOf(t, mode)
	named, wrong := -1, 0
	isNamedRounded := false
	for row := range table.count() {
		sum := table.sum(row)
		if isOne(sum, table.length) {
			continue
		}
		wrong++
		if isRounded := table.isRounded(row, sum); named < 0 || isNamedRounded && !isRounded {
			named, isNamedRounded = row, isRounded
		}
	}
	if wrong == 0 {
		return ""
	}
	text := fmt.Sprintf("%s sums to %.6g", m.describeRow(j, t.Shape, mode, named), table.sum(named))
	if !isNamedRounded {
		text += ", which rounding does not explain"
	}
	if wrong > 1 {
		text += fmt.Sprintf(" (and %d more of its %d rows not to 1)", wrong-1, table.count())
	}
	if isTurned(t, mode) {
		text += "; with its numbers the other way round all rows would sum to 1"
	}
	return text
}

// rows are the entries of a table that sum to 1 together if it is one of conditional probabilities: those of one mode at the same values of
// all others, the last of the others fastest. A constant is a row of one.
type rows struct {
	data   []float64
	length int
	stride int // from one entry of a row to the next
}

// rowsOf returns the rows of a table over a mode, which is -1 for a constant.
func rowsOf(t *tensor.Dense, mode int) rows {
	if mode < 0 {
		return rows{t.Data, 1, 1}
	}
	return rows{t.Data, t.Shape[mode], strideOf(t, mode)}
}

func (r rows) count() int { return len(r.data) / r.length }

// first is the place of a row's first entry.
func (r rows) first(row int) int { return row/r.stride*r.stride*r.length + row%r.stride }

func (r rows) sum(row int) float64 {
	sum, first := 0.0, r.first(row)
	for x := range r.length {
		sum += r.data[first+x*r.stride]
	}
	return sum
}

// isRounded reports whether a row misses 1 by no more than its digits explain, if it has this sum.
func (r rows) isRounded(row int, sum float64) bool {
	entries, first := make([]float64, r.length), r.first(row)
	for x := range entries {
		entries[x] = r.data[first+x*r.stride]
	}
	return math.Abs(sum-1) <= digitSlack(entries)
}

// isTurned reports whether a table whose rows do not sum to 1 is one whose numbers were written the other way round: the node slowest
// where it is to be fastest, or the reverse, or as a table of another variable of the scope.
func isTurned(t *tensor.Dense, mode int) bool {
	if mode < 0 || t.Shape[mode] == len(t.Data) {
		return false
	}
	d := t.Shape[mode]
	if conditional(t) {
		return true
	}
	if mode != len(t.Shape)-1 {
		return false
	}
	rows := len(t.Data) / d
	turned := make([]float64, 0, len(t.Data))
	for x := range d {
		for row := range rows {
			turned = append(turned, t.Data[row*d+x])
		}
	}
	slowest := &tensor.Dense{Shape: []int{d, rows}, Data: t.Data}
	fastest := &tensor.Dense{Shape: []int{rows, d}, Data: turned}
	return sumsToOne(slowest, 0) || sumsToOne(fastest, 1)
}

// describeFactor is a factor in a sentence: by the variable whose table it is, at a mode, if that has a name, and by its line.
func (m *Model) describeFactor(j, mode int) string { return m.table(j, mode) + m.line(j) }

// table is a factor in a sentence, without its line.
func (m *Model) table(j, mode int) string {
	if mode >= 0 {
		if v := m.Factors[j].Scope[mode]; v < len(m.Names) && m.Names[v] != "" {
			return fmt.Sprintf("the table of %q", nearest.Short(m.Names[v]))
		}
	}
	return fmt.Sprintf("factor %d", j)
}

// DescribeRow names a row of a factor's table over a mode in a sentence: by the variable whose table it is and the values of the others,
// with its line or, if that is not known, the table's. Rows are counted with the last of the other variables fastest.
func (m *Model) DescribeRow(factor, mode, row int) string {
	return m.describeRow(factor, m.Factors[factor].Table.Dims(), mode, row)
}

// describeRow is DescribeRow where the shape of the table is known.
func (m *Model) describeRow(j int, shape []int, mode, row int) string {
	values, line := m.parents(j, shape, mode, row), m.rowLine(j, shape, mode, row)
	switch {
	case line == "" && values == "":
		return m.describeFactor(j, mode)
	case line == "":
		return m.describeFactor(j, mode) + ": the row of " + values
	case values == "":
		return m.table(j, mode) + line
	}
	return m.table(j, mode) + ": the row of " + values + line
}

// rowLine is the line of a row in parentheses, if it is known.
func (m *Model) rowLine(j int, shape []int, mode, row int) string {
	if mode != len(shape)-1 || j >= len(m.RowLines) || row >= len(m.RowLines[j]) || m.RowLines[j][row] <= 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", m.RowLines[j][row])
}

// SetRowLines notes on which lines of the file the rows of a factor begin, if one of them does not sum to 1: warnings name it. Time linear
// in the table.
func (m *Model) SetRowLines(factor int, lines []int) {
	t, ok := m.Factors[factor].Table.(*tensor.Dense)
	if !ok || len(t.Shape) == 0 || !slices.ContainsFunc(lines, func(line int) bool { return line > 0 }) {
		return
	}
	table := rowsOf(t, len(t.Shape)-1)
	for row := range table.count() {
		if math.Abs(table.sum(row)-1) > rowSlack {
			m.RowLines = append(m.RowLines, make([][]int, len(m.Factors)-len(m.RowLines))...)
			m.RowLines[factor] = slices.Clone(lines)
			return
		}
	}
}

// called is a factor in an error, by its position and its line.
func (m *Model) called(j int) string { return fmt.Sprintf("factor %d%s", j, m.line(j)) }

// line is the line of factor j in parentheses, if it is known.
func (m *Model) line(j int) string {
	if j < len(m.Lines) && m.Lines[j] > 0 {
		return fmt.Sprintf(" (line %d)", m.Lines[j])
	}
	return ""
}

// values writes the values of all variables of factor j's scope at an entry.
func (m *Model) values(j, entry int) string {
	if text := m.parents(j, m.Factors[j].Table.Dims(), -1, entry); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// parents writes the values of all variables of factor j's scope but the one at a mode, in a row.
func (m *Model) parents(j int, shape []int, mode, row int) string {
	scope := m.Factors[j].Scope
	var values []string
	for k := len(scope) - 1; k >= 0; k-- {
		if k != mode {
			values = append(values, m.observed(scope[k], row%shape[k]))
			row /= shape[k]
		}
	}
	slices.Reverse(values)
	return strings.Join(values, ", ")
}

// observed says that a variable is at a value: by their names where they have some.
func (m *Model) observed(v, x int) string {
	variable, value := fmt.Sprintf("x_%d", v), fmt.Sprint(x)
	if v < len(m.Names) && m.Names[v] != "" {
		variable = fmt.Sprintf("%q", nearest.Short(m.Names[v]))
	}
	if v < len(m.States) && x < len(m.States[v]) && m.States[v][x] != "" {
		value = fmt.Sprintf("%q", nearest.Short(m.States[v][x]))
	}
	return variable + " = " + value
}

// conditional reports whether the sums over some one mode are all 1.
func conditional(t *tensor.Dense) bool {
	if len(t.Shape) == 0 {
		return isOne(t.Data[0], 1)
	}
	for mode := len(t.Shape) - 1; mode >= 0; mode-- {
		if sumsToOne(t, mode) {
			return true
		}
	}
	return false
}

// sumsToOne reports whether the sums over a mode are all 1.
func sumsToOne(t *tensor.Dense, mode int) bool {
	table := rowsOf(t, mode)
	for row := range table.count() {
		if !isOne(table.sum(row), table.length) {
			return false
		}
	}
	return true
}

func isOne(sum float64, entries int) bool {
	return math.Abs(sum-1) <= max(rowSlack, rowSlackEach*float64(entries))
}
