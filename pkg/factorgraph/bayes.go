// Models that say they are Bayesian networks.

package factorgraph

import (
	"fmt"
	"iter"
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

// Unnormalised returns "" or, of a model that is called a Bayesian network, which of its tables are no conditional probability tables.
// The rows of such a table sum to 1, to the digits that files have. Which variable a table is of follows from the scopes (see nodes);
// if it does not, a table may be of any variable of its scope. The text names the first factor and row with another sum, says if all
// rows would sum to 1 with the numbers the other way round, and counts the other factors. ln Z of such a model is not ln P(evidence),
// so people want to know; nothing is computed in another way. Factors in other forms than tables are not looked at. Linear time.
func (m *Model) Unnormalised() string {
	if !m.Bayes {
		return ""
	}
	nodes := m.nodes()
	first, factors := "", 0
	for j := range m.Factors {
		t, ok := m.Factors[j].Table.(*tensor.Dense)
		if !ok || isTableOf(t, nodes, j) {
			continue
		}
		if factors++; factors == 1 {
			first = m.describeRows(j, t, nodeMode(t, nodes, j))
		}
	}
	switch factors {
	case 0:
		return ""
	case 1:
		return first + notProbability
	}
	others := fmt.Sprintf("%d more factors are", factors-1)
	if factors == 2 {
		others = "1 more factor is"
	}
	return fmt.Sprintf("%s, and %s like it%s", first, others, notProbability)
}

const notProbability = ": the numbers are used as they are, and ln Z is not the ln P of the evidence"

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

// describeRows names the first row of factor j that does not sum to 1 over a mode, and counts them. There is one.
func (m *Model) describeRows(j int, t *tensor.Dense, mode int) string {
	text, bad, rows := "", 0, 0
	for sum := range rowSums(t, mode) {
		if !isOne(sum, rowLength(t, mode)) {
			if bad++; bad == 1 {
				text = fmt.Sprintf("%s: row %d%s sums to %.6g", m.describeFactor(j, mode), rows, m.parents(j, t.Shape, mode, rows), sum)
			}
		}
		rows++
	}
	if bad > 1 {
		text += fmt.Sprintf(" (and %d more of its %d rows not to 1)", bad-1, rows)
	}
	if bad > 0 && isTurned(t, mode) {
		text += "; with its numbers the other way round all rows would sum to 1"
	}
	return text
}

// rowLength is the number of entries of a row over a mode; a constant is a row of one.
func rowLength(t *tensor.Dense, mode int) int {
	if mode < 0 {
		return 1
	}
	return t.Shape[mode]
}

// rowSums yields the sums over a mode, the last of the other modes fastest; of a constant, itself.
func rowSums(t *tensor.Dense, mode int) iter.Seq[float64] {
	d, stride := rowLength(t, mode), 1
	if mode >= 0 {
		stride = strideOf(t, mode)
	}
	return func(yield func(float64) bool) {
		for block := 0; block < len(t.Data); block += d * stride {
			for first := block; first < block+stride; first++ {
				sum := 0.0
				for x := range d {
					sum += t.Data[first+x*stride]
				}
				if !yield(sum) {
					return
				}
			}
		}
	}
}

// isTurned reports whether a table whose rows do not sum to 1 is one whose numbers were written the other way round: the node slowest
// where it is to be fastest, or the reverse, or as a table of another variable of the scope.
func isTurned(t *tensor.Dense, mode int) bool {
	d := rowLength(t, mode)
	if mode < 0 || d == len(t.Data) {
		return false
	}
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
func (m *Model) describeFactor(j, mode int) string {
	if mode >= 0 {
		if v := m.Factors[j].Scope[mode]; v < len(m.Names) && m.Names[v] != "" {
			return fmt.Sprintf("the table of %q%s", nearest.Short(m.Names[v]), m.line(j))
		}
	}
	return m.called(j)
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
	return m.parents(j, m.Factors[j].Table.Dims(), -1, entry)
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
	if len(values) == 0 {
		return ""
	}
	slices.Reverse(values)
	return " (" + strings.Join(values, ", ") + ")"
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
	for sum := range rowSums(t, mode) {
		if !isOne(sum, t.Shape[mode]) {
			return false
		}
	}
	return true
}

func isOne(sum float64, entries int) bool {
	return math.Abs(sum-1) <= max(rowSlack, rowSlackEach*float64(entries))
}
