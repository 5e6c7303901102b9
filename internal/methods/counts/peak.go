package counts

// The largest weights of a piece: with its leg counted, and without.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// pieceMaximum has the best assignment of a piece for count 0 and for count 1, the number of its legs that count.
type pieceMaximum struct {
	weight   [2]scaled.Number // by count: the largest weight; 0 if the piece cannot have the count
	isUnique [2]bool          // by count: only one assignment has that weight
	terms    [2][]int         // by count and link: the assignment, as terms of the links
}

// countsOnce reports whether every piece of a kind counts at most once: it has at most one leg that counts, its legs have one value for
// each term of their link, and it sums over no index but those of variables.
func (f *Form) countsOnce(kind *kind) bool {
	// The largest count of the piece: the sum of those of its links.
	largestCount := 0
	for _, link := range kind.links {
		largestOfLink := 0
		for x := range f.net.Links[link].T.(*tensor.CP).Weights {
			c, _, ok := f.termCount(link, x)
			if !ok {
				return false
			}
			largestOfLink = max(largestOfLink, c)
		}
		largestCount += largestOfLink
	}
	if largestCount > 1 || kind.tables == nil { // a piece without tables has no further condition
		return largestCount <= 1
	}

	// An index of no variable may have one value only.
	isOfVariable := make([]bool, len(kind.tables.expression.Dims))
	for _, i := range kind.tables.index {
		isOfVariable[i] = true
	}
	for i, d := range kind.tables.expression.Dims {
		if !isOfVariable[i] && d > 1 {
			return false
		}
	}
	return true
}

// termCount returns how often term x of a link counts, and its weight on the legs that no table has. A link joins its legs: its term x is
// value x of its variable, and one value or a vector on each leg. The weight is the product of the contributions of the values that the
// term has on these legs. ok is false if the term is a vector on such a leg and not one value.
func (f *Form) termCount(link, x int) (count int, weight scaled.Number, ok bool) {
	cp := f.net.Links[link].T.(*tensor.CP)
	weight = scaled.One
	for mode, leg := range f.net.Links[link].Legs {
		if f.onTable(leg) {
			continue
		}
		if cp.Vectors[mode] != nil { // the term is a vector over the leg's values
			return 0, weight, false
		}
		factor, level := f.contribution(leg, x) // level is 1 if value x counts: there is one count variable
		weight = weight.Mul(scaled.FromFloat(factor))
		count += level
	}
	return count, weight, true
}

// maximumOf returns the best assignments of a piece of a kind, a class of equal pieces: one for count 0 and one for count 1, the number of
// the piece's legs that count. Weights within the relative difference tolerance are equal.
func (f *Form) maximumOf(ctx context.Context, kind *kind, tolerance float64) (pieceMaximum, error) {
	if kind.tables != nil {
		return f.maximumOfTables(ctx, kind, tolerance)
	}

	// A piece without tables is one link: compare its terms.
	p := pieceMaximum{terms: [2][]int{{0}, {0}}}
	link := kind.links[0]
	var largest [2]maximum // by count
	for x, linkWeight := range f.net.Links[link].T.(*tensor.CP).Weights {
		c, legWeight, _ := f.termCount(link, x) // countsOnce has seen to it that every term has a count, of 0 or 1
		candidate := maximum{scaled.FromFloat(linkWeight).Mul(legWeight), 1}
		if candidate.weight.IsZero() {
			continue
		}
		if !isNear(largest[c].weight, candidate.weight, tolerance) { // the candidate is larger by more than the tolerance
			p.terms[c][0] = x
		}
		largest[c] = largest[c].larger(candidate, tolerance)
	}
	for c, m := range largest {
		p.weight[c], p.isUnique[c] = m.weight, m.ties == 1
	}
	return p, nil
}

// maximum is the largest of some weights.
type maximum struct {
	weight scaled.Number
	ties   int8 // how often it occurs: 1, or 2 for more than once
}

// larger returns the larger of two maxima. If both are equal up to the relative difference tolerance, it occurs twice.
func (a maximum) larger(b maximum, tolerance float64) maximum {
	if b.weight.Cmp(a.weight) > 0 {
		a, b = b, a
	}
	if !b.weight.IsZero() && isNear(b.weight, a.weight, tolerance) {
		a.ties = 2
	}
	return a
}

// product returns the largest product of a weight of one list and a weight of another, given the maximum of each list.
func (a maximum) product(b maximum) maximum {
	return maximum{a.weight.Mul(b.weight), max(a.ties, b.ties)}
}

// maximiser finds the largest weight of a piece with tables whose legs count a required number of times.
type maximiser struct {
	*tableRun
	form          *Form
	tolerance     float64     // relative difference up to which weights are equal
	requiredCount int         // 0 or 1
	countingLink  int         // the link that counts, −1: none
	fixedTerm     []int       // by link: the one term that it may have, −1: all
	maxima        [][]maximum // by step and entry of the step's table
	value         []int       // by index of the expression: its present value
}

// maxReevaluated bounds the entries computed to find the smallest of several assignments of a piece.
const maxReevaluated = 1 << 20

// maximumOfTables is maximumOf for a kind with tables, of which at most one link counts. It maximises for count 0, and for count 1 if a
// link counts.
func (f *Form) maximumOfTables(ctx context.Context, kind *kind, tolerance float64) (p pieceMaximum, err error) {
	m := &maximiser{
		tableRun:     &tableRun{layout: f.layout, netPlan: kind.tables, ctx: ctx},
		form:         f,
		tolerance:    tolerance,
		countingLink: -1,
		fixedTerm:    slices.Repeat([]int{-1}, len(kind.links)),
		value:        make([]int, len(kind.tables.expression.Dims)),
	}
	for i, link := range kind.links {
		for x := range f.net.Links[link].T.(*tensor.CP).Weights {
			if c, _, _ := f.termCount(link, x); c > 0 { // term x counts
				m.countingLink = i
			}
		}
	}

	for c := range p.weight {
		p.terms[c] = make([]int, len(kind.links))
		m.requiredCount = c
		if c > 0 && m.countingLink < 0 { // the piece never counts
			continue
		}
		largest, err := m.maximise(p.terms[c])
		if err != nil {
			return p, err
		}
		p.weight[c], p.isUnique[c] = largest.weight, largest.ties == 1
	}
	return p, nil
}

// maximise returns the largest weight of the piece with the required count, and sets terms to the assignment that has it. It eliminates the
// indices with maxima instead of sums (fillMaxima), and reads values that give the maximum (readArgument). If several assignments have it,
// it looks for the smallest. If the weight is 0, it leaves terms as they are.
func (m *maximiser) maximise(terms []int) (maximum, error) {
	largest, err := m.fillMaxima()
	if err != nil || largest.weight.IsZero() {
		return largest, err
	}
	m.readArgument(len(m.steps) - 1) // sets m.value, from the last step back
	for i, index := range m.index {
		terms[i] = m.termOf(i, m.value[index])
	}
	if largest.ties > 1 {
		return largest, m.findSmallest(largest.weight, terms)
	}
	return largest, nil
}

// fillMaxima runs the elimination of a piece with maxima in the place of sums, and returns the largest weight of the piece. Each step makes
// a table, m.maxima by step and entry: of a table of numbers, of a link's terms, of a product of two steps, or of a step with one index
// maximised over.
func (m *maximiser) fillMaxima() (maximum, error) {
	if m.expression.Scale.IsZero() {
		return maximum{}, nil
	}
	m.maxima = make([][]maximum, len(m.steps))
	for i := range m.steps {
		s := &m.steps[i]
		if err := m.ctx.Err(); err != nil {
			return maximum{}, err
		}
		m.maxima[i] = m.stepMaxima(s)
	}
	largest := m.maxima[len(m.steps)-1][0] // the last step has no index
	largest.weight = largest.weight.Mul(m.expression.Scale)
	return largest, nil
}

// stepMaxima returns the table of a step from those of earlier steps: the largest weight for each combination of values of its indices.
// m.walk(scope, others…) goes through the entries of a table over scope. walk.Position[k] is then the number of the entry at the same
// values in a table over others[k].
func (m *maximiser) stepMaxima(s *step) []maximum {
	maxima := make([]maximum, int(m.entries(s)))
	switch s.op {
	case opTable:
		for entry, p := range m.tableEntries(s) {
			maxima[entry] = maximum{weight: p.Coef.At(0), ties: 1} // p is a constant polynomial
		}
	case opUnary:
		for entry := range maxima {
			maxima[entry] = m.linkMaximum(s.first, m.termOf(s.first, entry))
		}
	case opProduct:
		walk := m.walk(s.scope, m.steps[s.first].scope, m.steps[s.second].scope)
		for entry := range maxima {
			maxima[entry] = m.maxima[s.first][walk.Position[0]].product(m.maxima[s.second][walk.Position[1]])
			walk.Next()
		}
	case opSum:
		walk := m.walk(m.steps[s.first].scope, s.scope)
		for _, summand := range m.maxima[s.first] {
			maxima[walk.Position[0]] = maxima[walk.Position[0]].larger(summand, m.tolerance)
			walk.Next()
		}
	}
	return maxima
}

// linkMaximum returns the weight of term x of a link on the legs that no table has, as a maximum that occurs once. The weight is 0 if
// another term of the link is fixed (fixedTerm), or if this is the one link of the piece that may count and the term does not have the
// required count.
func (m *maximiser) linkMaximum(link, x int) maximum {
	count, weight, _ := m.form.termCount(m.links[link], x)
	isOtherFixed := m.fixedTerm[link] >= 0 && m.fixedTerm[link] != x
	hasWrongCount := link == m.countingLink && count != m.requiredCount
	if isOtherFixed || hasWrongCount {
		return maximum{}
	}
	return maximum{weight, 1}
}

// readArgument sets m.value for the indices that were maximised over in a step and in the steps that it is made from. They get the values
// that give the step's entry at the present values of its own indices; of several the smallest. Steps without factors have no such index.
func (m *maximiser) readArgument(step int) {
	s := &m.steps[step]
	switch s.op {
	case opSum:
		largest := m.entry(step)
		for x := range m.expression.Dims[s.index] {
			m.value[s.index] = x
			if isNear(m.entry(s.first), largest, m.tolerance) { // it stays at the first value that gives the largest entry
				break
			}
		}
		m.readArgument(s.first)
	case opProduct:
		m.readArgument(s.first)
		m.readArgument(s.second)
	}
}

// entry returns the weight in a step's table at the present values of its indices, the last of which changes fastest.
func (m *maximiser) entry(step int) scaled.Number {
	entry := 0
	for _, i := range m.steps[step].scope {
		entry = entry*m.expression.Dims[i] + m.value[i]
	}
	return m.maxima[step][entry].weight
}

// reevaluatedEntries bounds the entries that findSmallest computes: those of all steps, once for each term of each link.
func (m *maximiser) reevaluatedEntries() float64 {
	entries, reevaluations := 0.0, 0.0
	for i := range m.steps {
		entries += m.entries(&m.steps[i])
	}
	for _, index := range m.index {
		reevaluations += float64(m.expression.Dims[index])
	}
	return entries * reevaluations
}

// findSmallest replaces an assignment of weight top by the smallest assignment of that weight, in the order of the variables. It fixes one
// link after the other to the first term with which the largest weight stays top. It leaves terms as they are if that would compute more
// than maxReevaluated entries.
func (m *maximiser) findSmallest(top scaled.Number, terms []int) error {
	if m.reevaluatedEntries() > maxReevaluated {
		return nil
	}
	variable := m.form.variableOf
	order := make([]int, len(terms)) // the links in the order of their variables
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return variable[m.links[a]] - variable[m.links[b]] })
	defer func() { // no term is fixed for the next count
		for i := range m.fixedTerm {
			m.fixedTerm[i] = -1
		}
	}()
	for _, i := range order {
		for value := range m.expression.Dims[m.index[i]] {
			m.fixedTerm[i] = m.termOf(i, value)
			largest, err := m.fillMaxima() // it depends on the fixed terms
			if err != nil {
				return err
			}
			if isNear(largest.weight, top, m.tolerance) {
				break
			}
		}
		terms[i] = m.fixedTerm[i]
	}
	return nil
}
