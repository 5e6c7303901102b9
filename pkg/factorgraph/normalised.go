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
// rounding: by the slack that WrongRow allows, or by half a unit of the last printed digit for each entry, at most 0.02. Rows that are
// exact to float64 keep their bits. A table stays as it is if one of its rows misses 1 by more. So do factors in other forms, and models
// that are not called Bayesian networks. Which variable a table is of follows from the scopes; if it does not, it is the last of its scope.
// m does not change; it is returned itself if no row does. Time linear in the entries.
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
		mode := childMode(t, nodes, j)
		table := normalisedRows(t, mode)
		if table == t {
			continue
		}
		if normal == m {
			copied := *m
			copied.Factors = slices.Clone(m.Factors)
			normal = &copied
		}
		normal.Factors[j].Table = table
		r.add(m, j, t, mode)
	}
	return normal, r
}

// normalisedRows returns t with each row over a mode divided by its sum. It returns t itself if all rows sum to 1 to float64, if some row
// misses 1 by more than rounding explains, or if t is rather a table of another mode.
func normalisedRows(t *tensor.Dense, mode int) *tensor.Dense {
	table := rowsOf(t, mode)
	areExact, areWithinSlack := true, true // whether the sums of all rows are 1 to float64, and within the slack of WrongRow
	for row := range table.count() {
		sum := table.sum(row)
		if isExactly(sum, table.length) {
			continue
		}
		areExact = false
		if !isOneWithinSlack(sum, table.length) {
			areWithinSlack = false
			if !table.isRounded(row, sum) { // the rounding of its digits does not explain it either
				return t
			}
		}
	}
	isOfAnotherMode := !areWithinSlack && sumsToOneOverSomeMode(t)
	if areExact || isOfAnotherMode {
		return t
	}
	normal := &tensor.Dense{Shape: t.Shape, Data: slices.Clone(t.Data)}
	for row := range table.count() {
		if sum := table.sum(row); !isExactly(sum, table.length) {
			first := table.firstEntry(row)
			for x := range table.length {
				normal.Data[first+x*table.stride] /= sum
			}
		}
	}
	return normal
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

// digitSlack returns the largest distance of a row's sum from 1 that rounding explains: half a unit of the last printed digit for each
// entry, at most mostRounded.
func digitSlack(row []float64) float64 {
	digits := 0
	var text []byte
	for _, x := range row {
		text = strconv.AppendFloat(text[:0], x, 'f', -1, 64)
		if point := slices.Index(text, '.'); point >= 0 {
			digits = max(digits, len(text)-1-point)
		}
	}
	slack := float64(len(row)) / 2 * math.Pow(10, -float64(digits))
	return min(slack, mostRounded) * (1 + 1e-9) // the sum is rounded too: a row that is off by exactly the slack passes
}

// Rounding describes the rows that were divided by their sums.
type Rounding struct {
	Rows     int
	Furthest float64 // the largest distance of a sum from 1

	coarseRows  int    // rows that miss 1 by more than roundedRow
	firstCoarse string // the first of them, in words
}

// add counts the rows over a mode of a factor's table that do not sum to 1 to float64.
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
		if r.coarseRows++; r.coarseRows == 1 {
			r.firstCoarse = fmt.Sprintf("%s sums to %.6g", m.describeRow(j, t.Shape, mode, row), sum)
		}
	}
}

// warning returns a text about the rows that miss 1 by more than 1e-4, or "" if there are none.
func (r Rounding) warning() string {
	if r.coarseRows == 0 {
		return ""
	}
	text := r.firstCoarse + ": it was divided by its sum, because the rounding of its digits explains that"
	switch r.Rows {
	case 1:
		return text
	case 2:
		return fmt.Sprintf("%s. So was 1 more row; the sums miss 1 by up to %.2g", text, r.Furthest)
	}
	return fmt.Sprintf("%s. So were %d more rows; the sums miss 1 by up to %.2g", text, r.Rows-1, r.Furthest)
}

// Warnings returns at most two texts about the rows of a Bayesian network of which normal is the normalised form: one about rows that are
// kept though they do not sum to 1, and one about rows that were divided by their sums and missed 1 by more than 1e-4.
func (r Rounding) Warnings(normal *Model) []string {
	return slices.DeleteFunc([]string{normal.unnormalisedWarning(), r.warning()}, func(text string) bool { return text == "" })
}

// Directed reports whether m is a Bayesian network by its tables: it is called one; each variable is the last in the scope of
// exactly one factor, which is its conditional probability table; all rows sum to 1 to float64; and no variable is its own ancestor.
// Then the sum over a variable without children is 1, whatever the others are. Time linear in the entries.
func (m *Model) Directed() bool {
	if !m.Bayes || len(m.Factors) != len(m.Domains) {
		return false
	}
	hasTable := make([]bool, len(m.Domains))
	for _, f := range m.Factors {
		last := len(f.Scope) - 1
		if last < 0 || hasTable[f.Scope[last]] || !isConditional(f.Table) {
			return false
		}
		hasTable[f.Scope[last]] = true
	}
	return m.hasParentsFirstOrder()
}

// hasParentsFirstOrder reports whether the variables have an order with parents before their children. Each variable must be the last of
// one scope, whose other variables are its parents.
func (m *Model) hasParentsFirstOrder() bool {
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

// isConditional reports whether all sums over the last mode are 1 up to rounding; for a table with d values in that mode, whether each
// |sum − 1| is at most 2d·2^-52. It is false for forms other than tables and CP.
func isConditional(t tensor.Tensor) bool {
	switch t := t.(type) {
	case *tensor.Dense:
		d := t.Shape[len(t.Shape)-1]
		for start := 0; start < len(t.Data); start += d {
			if !isExactly(sumOf(t.Data[start:start+d]), 2*d) {
				return false
			}
		}
		return true
	case *tensor.CP:
		return isConditionalCP(t)
	}
	return false
}

// maxOperations bounds the work of isConditionalCP, in entries times terms.
const maxOperations = 1 << 20

// isConditionalCP is isConditional for a CP factor: it sums the last mode out of each term, and adds up the terms at each combination of
// the values of the other modes. Of a mode on which no term depends value 0 is enough. The result is false if that takes more than
// maxOperations.
func isConditionalCP(t *tensor.CP) bool {
	last := len(t.Shape) - 1
	if t.Vectors[last] == nil && len(t.Weights) != t.Shape[last] { // nil is the identity, with a term for each value
		return false
	}
	terms := sumsOfTerms(t)
	if len(terms) == 0 {
		return false
	}
	entries, varyingModes := 1.0, []int{} // some term depends on each of these modes; entries is the number of their values' combinations
	for mode, d := range t.Shape[:last] {
		if slices.ContainsFunc(terms, func(k term) bool { return !k.isConstant(t, mode) }) {
			entries, varyingModes = entries*float64(d), append(varyingModes, mode)
		}
	}
	if entries*float64(len(terms)) > maxOperations {
		return false
	}
	values := make([]int, len(t.Shape))
	for range int(entries) {
		sum := 0.0
		for _, k := range terms {
			product := k.weight
			for mode := range t.Shape[:last] {
				product *= k.entry(t, mode, values[mode])
			}
			sum += product
		}
		if !isExactly(sum, 2*(len(terms)+len(t.Shape))) { // room for the rounding of each term and of its factors
			return false
		}
		for _, mode := range varyingModes { // the next combination
			if values[mode]++; values[mode] < t.Shape[mode] {
				break
			}
			values[mode] = 0
		}
	}
	return true
}

// term is a term of a CP factor with its last mode summed out.
type term struct {
	index  int     // in the factor
	weight float64 // of the factor's term, times the sum of its vector of the last mode
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

// entry returns entry x of the term's vector of a mode. A mode without vectors has the unit vectors: term i is 1 at value i.
func (k term) entry(t *tensor.CP, mode, x int) float64 {
	switch v := t.Vectors[mode]; {
	case v != nil:
		return v[k.index*t.Shape[mode]+x]
	case k.index == x:
		return 1
	}
	return 0
}

// isConstant reports whether the entries of the term's vector of a mode are all the same.
func (k term) isConstant(t *tensor.CP, mode int) bool {
	for x := range t.Shape[mode] {
		if k.entry(t, mode, x) != k.entry(t, mode, 0) {
			return false
		}
	}
	return true
}
