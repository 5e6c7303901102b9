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

// unnormalisedWarning returns WrongRow's text with what is done with that row, and the number of other such tables. It is "" if there is no
// such row. People want to know, since ln Z of such a model is not ln P(evidence). Nothing is computed in another way.
func (m *Model) unnormalisedWarning() string {
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

// wrongRow describes a row, with its sum, of the first table that is no conditional probability table. tables is the number of such tables;
// if it is 0, text is "". hasParents is true if the variable of that first table has parents, which are the table's other modes.
func (m *Model) wrongRow() (text string, tables int, hasParents bool) {
	if !m.Bayes {
		return "", 0, false
	}
	nodes := m.nodes()
	for j := range m.Factors {
		t, ok := m.Factors[j].Table.(*tensor.Dense)
		if !ok || isConditionalTable(t, nodes, j) {
			continue
		}
		if tables++; tables == 1 {
			text, hasParents = m.describeRows(j, t, childMode(t, nodes, j)), len(t.Shape) > 1
		}
	}
	return text, tables, hasParents
}

// nodes returns nodes[j], the position in factor j's scope of the variable whose table the factor is. It returns nil if the scopes do
// not tell. If no two scopes end with the same variable, each node is the last of its scope. Otherwise factors are matched one after the
// other: if all variables of a scope but one have a table already, the factor is the table of that one. If every variable has one table
// and none is its own ancestor, this reaches all factors, and gives them the same nodes in any order. Time linear in the scopes.
func (m *Model) nodes() []int {
	if len(m.Factors) != len(m.Domains) {
		return nil
	}
	if nodes := m.lastPositions(); nodes != nil {
		return nodes
	}
	factorsOf := make([][]int, len(m.Domains)) // by variable: the factors that have it in their scope
	missing := make([]int, len(m.Factors))     // by factor: the variables of its scope that have no table so far
	var ready []int                            // factors that have had, at some time, one such variable
	for j, f := range m.Factors {
		for _, v := range f.Scope {
			factorsOf[v] = append(factorsOf[v], j)
		}
		if missing[j] = len(f.Scope); missing[j] == 1 {
			ready = append(ready, j)
		}
	}
	nodes := make([]int, len(m.Factors))
	hasTable := make([]bool, len(m.Domains))
	for k := 0; k < len(ready); k++ { // ready grows
		scope := m.Factors[ready[k]].Scope
		mode := slices.IndexFunc(scope, func(v int) bool { return !hasTable[v] })
		if mode < 0 {
			return nil // two tables of one variable
		}
		nodes[ready[k]], hasTable[scope[mode]] = mode, true
		for _, j := range factorsOf[scope[mode]] {
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

// lastPositions returns the last position of each scope, or nil if two scopes end with the same variable or a scope is empty.
func (m *Model) lastPositions() []int {
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

// isConditionalTable reports whether the rows of factor j's table sum to 1: over its node, or over some variable if nodes is nil (unknown).
func isConditionalTable(t *tensor.Dense, nodes []int, j int) bool {
	if nodes == nil || len(t.Shape) == 0 {
		return sumsToOneOverSomeMode(t)
	}
	return sumsToOneOver(t, nodes[j])
}

// childMode returns the mode of factor j's node, or the last mode if nodes is nil (unknown).
func childMode(t *tensor.Dense, nodes []int, j int) int {
	if nodes == nil {
		return len(t.Shape) - 1
	}
	return nodes[j]
}

// strideOf returns the distance in Data of two entries that differ by 1 in a mode.
func strideOf(t *tensor.Dense, mode int) int { return decimal.Entries(t.Shape[mode+1:]) }

// describeRows describes a row of factor j over a mode that does not sum to 1, and counts the others. It takes the first row that rounding
// does not explain, or the first of all if rounding explains them. It returns "" if all rows sum to 1.
func (m *Model) describeRows(j int, t *tensor.Dense, mode int) string {
	table := rowsOf(t, mode)
	wrongRow, wrongRows := -1, 0 // the row to describe, and the number of such rows
	isWrongRowRounded := false
	for row := range table.count() {
		sum := table.sum(row)
		if isOneWithinSlack(sum, table.length) {
			continue
		}
		wrongRows++
		if isRounded := table.isRounded(row, sum); wrongRow < 0 || isWrongRowRounded && !isRounded {
			wrongRow, isWrongRowRounded = row, isRounded
		}
	}
	if wrongRows == 0 {
		return ""
	}
	text := fmt.Sprintf("%s sums to %.6g", m.describeRow(j, t.Shape, mode, wrongRow), table.sum(wrongRow))
	if !isWrongRowRounded {
		text += ", which rounding does not explain"
	}
	if wrongRows > 1 {
		text += fmt.Sprintf(" (and %d more of its %d rows not to 1)", wrongRows-1, table.count())
	}
	if isTurned(t, mode) {
		text += "; with its numbers the other way round all rows would sum to 1"
	}
	return text
}

// rows is a table seen as rows: the entries that differ in one mode only. The rows of a conditional probability table sum to 1. Rows are
// counted with the last of the other modes fastest. A constant is one row of one entry.
type rows struct {
	data   []float64
	length int // of each row
	stride int // from one entry of a row to the next, in data
}

// rowsOf returns the rows of a table over a mode, which is -1 for a constant.
func rowsOf(t *tensor.Dense, mode int) rows {
	if mode < 0 {
		return rows{t.Data, 1, 1}
	}
	return rows{t.Data, t.Shape[mode], strideOf(t, mode)}
}

func (r rows) count() int { return len(r.data) / r.length }

// firstEntry returns the position in data of a row's first entry.
func (r rows) firstEntry(row int) int { return row/r.stride*r.stride*r.length + row%r.stride }

func (r rows) sum(row int) float64 {
	sum, first := 0.0, r.firstEntry(row)
	for x := range r.length {
		sum += r.data[first+x*r.stride]
	}
	return sum
}

// isRounded reports whether a row with this sum misses 1 by no more than the rounding of its entries to their digits explains.
func (r rows) isRounded(row int, sum float64) bool {
	entries, first := make([]float64, r.length), r.firstEntry(row)
	for x := range entries {
		entries[x] = r.data[first+x*r.stride]
	}
	return math.Abs(sum-1) <= digitSlack(entries)
}

// isTurned reports whether the rows of a table, which do not sum to 1 over a mode, would sum to 1 with the numbers in another order. It
// tries rows over another mode. If the mode is the last one, it also tries the numbers as they are, but with that mode as the first one,
// and the numbers transposed once more.
func isTurned(t *tensor.Dense, mode int) bool {
	if mode < 0 || t.Shape[mode] == len(t.Data) { // a single row has no other order
		return false
	}
	d := t.Shape[mode]
	if sumsToOneOverSomeMode(t) {
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
	return sumsToOneOver(slowest, 0) || sumsToOneOver(fastest, 1)
}

// describeFactor returns a factor as it is called in a sentence: by the variable at a mode, whose table it is, if that has a name, and by
// its line.
func (m *Model) describeFactor(j, mode int) string { return m.tableName(j, mode) + m.lineSuffix(j) }

// tableName returns a factor as it is called in a sentence, without its line.
func (m *Model) tableName(j, mode int) string {
	if mode >= 0 {
		if v := m.Factors[j].Scope[mode]; v < len(m.Names) && m.Names[v] != "" {
			return fmt.Sprintf("the table of %q", nearest.Shorten(m.Names[v]))
		}
	}
	return fmt.Sprintf("factor %d", j)
}

// DescribeRow names a row of a factor's table over a mode in a sentence: by the variable whose table it is and the values of the others,
// with its line or, if that is not known, the table's. Rows are counted with the last of the other variables fastest.
func (m *Model) DescribeRow(factor, mode, row int) string {
	return m.describeRow(factor, m.Factors[factor].Table.Dims(), mode, row)
}

// describeRow is DescribeRow for a table of a given shape.
func (m *Model) describeRow(j int, shape []int, mode, row int) string {
	values, line := m.describeParents(j, shape, mode, row), m.rowLineSuffix(j, shape, mode, row)
	switch {
	case line == "" && values == "":
		return m.describeFactor(j, mode)
	case line == "":
		return m.describeFactor(j, mode) + ": the row of " + values
	case values == "":
		return m.tableName(j, mode) + line
	}
	return m.tableName(j, mode) + ": the row of " + values + line
}

// rowLineSuffix returns the line of a row in parentheses, or "" if it is not known.
func (m *Model) rowLineSuffix(j int, shape []int, mode, row int) string {
	if mode != len(shape)-1 || j >= len(m.RowLines) || row >= len(m.RowLines[j]) || m.RowLines[j][row] <= 0 {
		return ""
	}
	return fmt.Sprintf(" (line %d)", m.RowLines[j][row])
}

// SetRowLines notes on which lines of the file the rows of a factor begin, if one of the rows does not sum to 1: only the warning about
// such a row names its line. Lines of 0 are not known. Time linear in the table.
func (m *Model) SetRowLines(factor int, lines []int) {
	t, ok := m.Factors[factor].Table.(*tensor.Dense)
	if !ok || len(t.Shape) == 0 || !slices.ContainsFunc(lines, func(line int) bool { return line > 0 }) {
		return
	}
	table := rowsOf(t, len(t.Shape)-1)
	for row := range table.count() {
		if math.Abs(table.sum(row)-1) > rowSlack {
			m.RowLines = append(m.RowLines, make([][]int, len(m.Factors)-len(m.RowLines))...) // nil for the other factors
			m.RowLines[factor] = slices.Clone(lines)
			return
		}
	}
}

// factorAndLine returns a factor as errors call it: by its position and its line.
func (m *Model) factorAndLine(j int) string { return fmt.Sprintf("factor %d%s", j, m.lineSuffix(j)) }

// lineSuffix returns the line of factor j in parentheses, or "" if it is not known.
func (m *Model) lineSuffix(j int) string {
	if j < len(m.Lines) && m.Lines[j] > 0 {
		return fmt.Sprintf(" (line %d)", m.Lines[j])
	}
	return ""
}

// entrySuffix returns the values of all variables of factor j's scope at an entry, in parentheses: (a = 0, b = 1).
func (m *Model) entrySuffix(j, entry int) string {
	if text := m.describeParents(j, m.Factors[j].Table.Dims(), -1, entry); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// describeParents returns the values that the variables of factor j's scope, without the one at a mode, have in a row: a = 0, b = 1. With
// mode −1 it is for all variables of the scope, and row is an entry.
func (m *Model) describeParents(j int, shape []int, mode, row int) string {
	scope := m.Factors[j].Scope
	var values []string
	for k := len(scope) - 1; k >= 0; k-- {
		if k != mode {
			values = append(values, m.describeValue(scope[k], row%shape[k]))
			row /= shape[k]
		}
	}
	slices.Reverse(values)
	return strings.Join(values, ", ")
}

// describeValue returns the text variable = value, with names if there are any.
func (m *Model) describeValue(v, x int) string {
	variable, value := fmt.Sprintf("x_%d", v), fmt.Sprint(x)
	if v < len(m.Names) && m.Names[v] != "" {
		variable = fmt.Sprintf("%q", nearest.Shorten(m.Names[v]))
	}
	if v < len(m.States) && x < len(m.States[v]) && m.States[v][x] != "" {
		value = fmt.Sprintf("%q", nearest.Shorten(m.States[v][x]))
	}
	return variable + " = " + value
}

// sumsToOneOverSomeMode reports whether there is a mode over which all sums are 1.
func sumsToOneOverSomeMode(t *tensor.Dense) bool {
	if len(t.Shape) == 0 {
		return isOneWithinSlack(t.Data[0], 1)
	}
	for mode := len(t.Shape) - 1; mode >= 0; mode-- {
		if sumsToOneOver(t, mode) {
			return true
		}
	}
	return false
}

// sumsToOneOver reports whether all sums over a mode are 1.
func sumsToOneOver(t *tensor.Dense, mode int) bool {
	table := rowsOf(t, mode)
	for row := range table.count() {
		if !isOneWithinSlack(table.sum(row), table.length) {
			return false
		}
	}
	return true
}

// isOneWithinSlack reports whether a sum of so many entries is 1 to the digits that files have.
func isOneWithinSlack(sum float64, entries int) bool {
	return math.Abs(sum-1) <= max(rowSlack, rowSlackEach*float64(entries))
}
