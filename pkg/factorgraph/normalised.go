// Bayesian networks whose rows sum to 1, up to the digits that their files have.

package factorgraph

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// A row that misses 1 by more than roundedRow was rounded to so few digits that a warning is due. A row that misses 1 by more than
// mostRounded is wrong, however few digits it has.
const (
	roundedRow  = 1e-4
	mostRounded = 0.02
)

// Normalised returns m with each row of its conditional probability tables divided by its sum, if the row misses 1 by no more than
// rounding: by the slack of WrongRow, or by half a unit of the last printed digit for each entry, at most 0.02. Rows that are exact to
// float64 keep their bits. Tables with another kind of row stay as they are, and so do factors in other forms, and models that are not
// called Bayesian networks. Which variable a table is of follows from the scopes; if it does not, it is the last of its scope. m does not
// change; it is returned itself if no row does. Time linear in the entries.
func (m *Model) Normalised() (normal *Model, r Rounding) {
	if !m.Bayes {
		return m, r
	}
	normal = m
	nodes := m.nodes()
	for j := range m.Factors {
		t, ok := m.Factors[j].Table.(*tensor.Dense)
		if !ok || len(t.Shape) == 0 {
			continue
		}
		mode := nodeMode(t, nodes, j)
		table := normalisedRows(t, mode)
		if table == t {
			continue
		}
		if normal == m {
			own := *m
			own.Factors = slices.Clone(m.Factors)
			normal = &own
		}
		normal.Factors[j].Table = table
		r.add(m, j, t, mode)
	}
	return normal, r
}

// normalisedRows returns t with rows over a mode that sum to 1, or t itself if they do already or are no probabilities.
func normalisedRows(t *tensor.Dense, mode int) *tensor.Dense {
	table := rowsOf(t, mode)
	exact, fine := true, true // all rows sum to 1 to float64, and to the slack of any file
	for row := range table.count() {
		sum := table.sum(row)
		if isExactly(sum, table.length) {
			continue
		}
		exact = false
		if !isOne(sum, table.length) {
			if fine = false; !table.isRounded(row, sum) {
				return t
			}
		}
	}
	if exact || !fine && conditional(t) { // the probabilities are of another mode
		return t
	}
	out := &tensor.Dense{Shape: t.Shape, Data: slices.Clone(t.Data)}
	for row := range table.count() {
		if sum := table.sum(row); !isExactly(sum, table.length) {
			first := table.first(row)
			for x := range table.length {
				out.Data[first+x*table.stride] /= sum
			}
		}
	}
	return out
}

func sumOf(row []float64) float64 {
	sum := 0.0
	for _, x := range row {
		sum += x
	}
	return sum
}

// isExactly reports whether a sum of entries misses 1 by rounding of float64 alone.
func isExactly(sum float64, entries int) bool { return math.Abs(sum-1) <= float64(entries)*0x1p-52 }

// digitSlack is how much the sum of a row may miss 1 if its entries were rounded to the digits that they have.
func digitSlack(row []float64) float64 {
	digits := 0
	var text []byte
	for _, x := range row {
		text = strconv.AppendFloat(text[:0], x, 'f', -1, 64)
		if at := slices.Index(text, '.'); at >= 0 {
			digits = max(digits, len(text)-1-at)
		}
	}
	slack := float64(len(row)) / 2 * math.Pow(10, -float64(digits))
	return min(slack, mostRounded) * (1 + 1e-9)
}

// Rounding is of the rows that were divided by their sums.
type Rounding struct {
	Rows     int
	Furthest float64 // of a sum from 1

	coarse int    // rows that miss 1 by more than roundedRow
	first  string // of them
}

// add looks at the rows of a factor's table over a mode.
func (r *Rounding) add(m *Model, j int, t *tensor.Dense, mode int) {
	table := rowsOf(t, mode)
	for row := range table.count() {
		sum := table.sum(row)
		if isExactly(sum, table.length) {
			continue
		}
		r.Rows++
		miss := math.Abs(sum - 1)
		r.Furthest = max(r.Furthest, miss)
		if miss <= roundedRow {
			continue
		}
		if r.coarse++; r.coarse == 1 {
			r.first = fmt.Sprintf("%s sums to %.6g", m.describeRow(j, t.Shape, mode, row), sum)
		}
	}
}

// warning says that rows miss 1 by more than 1e-4; empty if none does.
func (r Rounding) warning() string {
	if r.coarse == 0 {
		return ""
	}
	text := r.first + ": it was divided by its sum, because the rounding of its digits explains that"
	switch r.Rows {
	case 1:
		return text
	case 2:
		return fmt.Sprintf("%s. So was 1 more row; the sums miss 1 by up to %.2g", text, r.Furthest)
	}
	return fmt.Sprintf("%s. So were %d more rows; the sums miss 1 by up to %.2g", text, r.Rows-1, r.Furthest)
}

// Warnings are about the rows of a model that is called a Bayesian network, which normal is normalised from: those that were divided by
// their sums and miss 1 by more than 1e-4, and those that are kept as they are though they do not sum to 1. At most one of each.
func (r Rounding) Warnings(normal *Model) []string {
	return slices.DeleteFunc([]string{normal.unnormalised(), r.warning()}, func(text string) bool { return text == "" })
}

// Directed reports whether m is a Bayesian network by its tables: it is called one; each variable is the last in the scope of
// exactly one factor, which is its conditional probability table; all rows sum to 1 to float64; and no variable is its own ancestor.
// Then the sum over a variable without children is 1, whatever the others are. Time linear in the entries.
func (m *Model) Directed() bool {
	if !m.Bayes || len(m.Factors) != len(m.Domains) {
		return false
	}
	table := slices.Repeat([]int{-1}, len(m.Domains))
	for j, f := range m.Factors {
		n := len(f.Scope)
		if n == 0 || table[f.Scope[n-1]] >= 0 || !isConditional(f.Table) {
			return false
		}
		table[f.Scope[n-1]] = j
	}
	return m.acyclic()
}

// acyclic reports whether parents can be put before their children. Each variable is the last of one scope.
func (m *Model) acyclic() bool {
	missing := make([]int, len(m.Domains)) // parents that have no place yet
	children := make([][]int, len(m.Domains))
	for _, f := range m.Factors {
		last := len(f.Scope) - 1
		missing[f.Scope[last]] = last
		for _, parent := range f.Scope[:last] {
			children[parent] = append(children[parent], f.Scope[last])
		}
	}
	var placed []int
	for v, n := range missing {
		if n == 0 {
			placed = append(placed, v)
		}
	}
	for k := 0; k < len(placed); k++ {
		for _, child := range children[placed[k]] {
			if missing[child]--; missing[child] == 0 {
				placed = append(placed, child)
			}
		}
	}
	return len(placed) == len(m.Domains)
}

// isConditional reports whether the sums over the last mode are all 1 to float64. Of forms other than tables and CP it says no.
func isConditional(t tensor.Tensor) bool {
	switch t := t.(type) {
	case *tensor.Dense:
		d := t.Shape[len(t.Shape)-1]
		for from := 0; from < len(t.Data); from += d {
			if !isExactly(sumOf(t.Data[from:from+d]), 2*d) {
				return false
			}
		}
		return true
	case *tensor.CP:
		return isConditionalCP(t)
	}
	return false
}

// mostEntries bounds the operations on the sums of a CP factor: if there are more, a factor counts as conditional only if its sums are
// constant term by term.
const mostEntries = 1 << 20

// isConditionalCP sums the last mode out, and looks at each entry that is left.
func isConditionalCP(t *tensor.CP) bool {
	last := len(t.Shape) - 1
	if t.Vectors[last] == nil && len(t.Weights) != t.Shape[last] {
		return false
	}
	terms := sumsOfTerms(t)
	if len(terms) == 0 {
		return false
	}
	entries, varies := 1.0, []int{} // modes on which some term depends
	for mode, d := range t.Shape[:last] {
		if slices.ContainsFunc(terms, func(k term) bool { return !k.isConstant(t, mode) }) {
			entries, varies = entries*float64(d), append(varies, mode)
		}
	}
	if entries*float64(len(terms)) > mostEntries {
		return false
	}
	at := make([]int, len(t.Shape))
	for range int(entries) {
		sum := 0.0
		for _, k := range terms {
			product := k.weight
			for mode := range t.Shape[:last] {
				product *= k.at(t, mode, at[mode])
			}
			sum += product
		}
		if !isExactly(sum, 2*(len(terms)+len(t.Shape))) {
			return false
		}
		for _, mode := range varies {
			if at[mode]++; at[mode] < t.Shape[mode] {
				break
			}
			at[mode] = 0
		}
	}
	return true
}

// term is one of a CP factor, with the sum over the last mode in its weight.
type term struct {
	place  int
	weight float64
}

// sumsOfTerms lists the terms whose sum over the last mode is not 0.
func sumsOfTerms(t *tensor.CP) (terms []term) {
	last := len(t.Shape) - 1
	d := t.Shape[last]
	for k, w := range t.Weights {
		if v := t.Vectors[last]; v != nil {
			w *= sumOf(v[k*d : (k+1)*d])
		}
		if w != 0 {
			terms = append(terms, term{k, w})
		}
	}
	return terms
}

// at is the entry of the term's vector of a mode.
func (k term) at(t *tensor.CP, mode, x int) float64 {
	switch v := t.Vectors[mode]; {
	case v != nil:
		return v[k.place*t.Shape[mode]+x]
	case k.place == x:
		return 1
	}
	return 0
}

// isConstant reports whether the entries of the term's vector of a mode are all the same.
func (k term) isConstant(t *tensor.CP, mode int) bool {
	for x := range t.Shape[mode] {
		if k.at(t, mode, x) != k.at(t, mode, 0) {
			return false
		}
	}
	return true
}
