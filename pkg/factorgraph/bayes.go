// Models that say they are Bayesian networks.

package factorgraph

import (
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// A row of a conditional probability table may miss 1 by rowSlack, or by rowSlackEach for every entry where
// that is more: files written with six digits do.
const (
	rowSlack     = 1e-5
	rowSlackEach = 1e-6
)

// Unnormalised returns "" or, of a model that is called a Bayesian network, which of its tables are no
// conditional probability tables: P of one variable of the scope, the last as a rule, given the others. Each
// of their rows sums to 1, to the digits that files have. It names the first factor and row that does not,
// and counts the others. ln Z of such a model is not ln P(evidence), so people want to know; nothing is
// computed in another way. Factors in other forms than tables are not looked at. Linear time.
func (m *Model) Unnormalised() string {
	if !m.Bayes {
		return ""
	}
	first, factors := "", 0
	for j := range m.Factors {
		t, ok := m.Factors[j].Table.(*tensor.Dense)
		if !ok || conditional(t) {
			continue
		}
		if factors++; factors == 1 {
			first = m.firstRow(j, t)
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

const notProbability = ": the model is called BAYES, but ln Z is not the ln P of the evidence"

// firstRow names the first row of factor j that does not sum to 1, and counts them. There is one.
func (m *Model) firstRow(j int, t *tensor.Dense) string {
	scope := m.Factors[j].Scope
	rows, rest := 1, 1
	if n := len(t.Shape); n > 0 {
		rows, rest = len(t.Data)/t.Shape[n-1], t.Shape[n-1]
	}
	text, bad := "", 0
	for r := range rows {
		sum := 0.0
		for _, x := range t.Data[r*rest : (r+1)*rest] {
			sum += x
		}
		if isOne(sum, rest) {
			continue
		}
		if bad++; bad == 1 {
			text = fmt.Sprintf("%s: row %d%s sums to %.6g", m.describeFactor(j), r, m.parents(scope, t.Shape, r), sum)
		}
	}
	if bad > 1 {
		text += fmt.Sprintf(" (and %d more of its %d rows not to 1)", bad-1, rows)
	}
	return text
}

// describeFactor is a factor in a sentence: by the variable whose table it is, where that has a name.
func (m *Model) describeFactor(j int) string {
	if n := len(m.Factors[j].Scope); n > 0 {
		if v := m.Factors[j].Scope[n-1]; v < len(m.Names) && m.Names[v] != "" {
			return fmt.Sprintf("the table of %q", nearest.Short(m.Names[v]))
		}
	}
	return fmt.Sprintf("factor %d", j)
}

// parents writes the values of all variables of a scope but the last, in row r.
func (m *Model) parents(scope, shape []int, r int) string {
	if len(scope) < 2 {
		return ""
	}
	values := make([]string, len(scope)-1)
	for k := len(values) - 1; k >= 0; k-- {
		values[k] = m.observed(scope[k], r%shape[k])
		r /= shape[k]
	}
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
	stride := 1
	for mode := len(t.Shape) - 1; mode >= 0; mode-- {
		if sumsToOne(t.Data, t.Shape[mode], stride) {
			return true
		}
		stride *= t.Shape[mode]
	}
	return false
}

// sumsToOne sums over a mode of d values that are stride entries apart.
func sumsToOne(data []float64, d, stride int) bool {
	for from := 0; from < len(data); from += d * stride {
		for at := from; at < from+stride; at++ {
			sum := 0.0
			for x := range d {
				sum += data[at+x*stride]
			}
			if !isOne(sum, d) {
				return false
			}
		}
	}
	return true
}

func isOne(sum float64, entries int) bool {
	return math.Abs(sum-1) <= max(rowSlack, rowSlackEach*float64(entries))
}
