package counts

// The largest weights of a piece: with its leg counted, and without.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// pieceMaximum has, for count 0 and 1, the largest weight of a piece, whether one assignment alone has it, and an assignment that has it.
type pieceMaximum struct {
	weight   [2]scaled.Number // 0 if the piece cannot have the count
	isUnique [2]bool
	terms    [2][]int // by link
}

// countsOnce reports whether the pieces of a kind have at most one leg that counts, and sum over no index but those of variables.
func (f *Form) countsOnce(kind *kind) bool {
	counting := 0
	for _, link := range kind.links {
		largest := 0
		for x := range f.net.Links[link].T.(*tensor.CP).Weights {
			c, _, ok := f.termCount(link, x)
			if !ok {
				return false
			}
			largest = max(largest, c)
		}
		counting += largest
	}
	if counting > 1 || kind.tables == nil {
		return counting <= 1
	}
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

// termCount returns how often term x of a link counts, and with which weight. ok is false if its legs are not fixed to one value each.
func (f *Form) termCount(link, x int) (c int, w scaled.Number, ok bool) {
	k := &f.net.Links[link]
	cp := k.T.(*tensor.CP)
	w = scaled.One
	for mode, leg := range k.Legs {
		if f.onTable(leg) {
			continue
		}
		if cp.Vectors[mode] != nil {
			return 0, w, false
		}
		own, level := f.contribution(leg, x)
		w = w.Mul(scaled.FromFloat(own))
		c += level
	}
	return c, w, true
}

// maximumOf returns the largest weights of a kind's pieces. Weights are equal up to the relative difference close.
func (f *Form) maximumOf(ctx context.Context, kind *kind, close float64) (pieceMaximum, error) {
	if kind.tables != nil {
		return f.maximumOfTables(ctx, kind, close)
	}
	p := pieceMaximum{terms: [2][]int{{0}, {0}}}
	link := kind.links[0]
	var top [2]maximum
	for x, own := range f.net.Links[link].T.(*tensor.CP).Weights {
		c, w, _ := f.termCount(link, x)
		next := maximum{scaled.FromFloat(own).Mul(w), 1}
		if next.weight.IsZero() {
			continue
		}
		if !isNear(top[c].weight, next.weight, close) {
			p.terms[c][0] = x
		}
		top[c] = top[c].larger(next, close)
	}
	for c, r := range top {
		p.weight[c], p.isUnique[c] = r.weight, r.ties == 1
	}
	return p, nil
}

// maximum is the largest of some weights, and how often it occurs: 2 for more than once.
type maximum struct {
	weight scaled.Number
	ties   int8
}

// larger returns the larger of two. It occurs twice if both are equal up to close.
func (a maximum) larger(b maximum, close float64) maximum {
	if b.weight.Cmp(a.weight) > 0 {
		a, b = b, a
	}
	if !b.weight.IsZero() && isNear(b.weight, a.weight, close) {
		a.ties = 2
	}
	return a
}

// product returns the product of two maxima: the largest product of their weights.
func (a maximum) product(b maximum) maximum {
	return maximum{a.weight.Mul(b.weight), max(a.ties, b.ties)}
}

// maximiser finds the largest weight of a piece with tables whose legs count a required number of times.
type maximiser struct {
	*tableRun
	form          *Form
	tolerance     float64
	requiredCount int
	countingLink  int         // the link that counts, −1: none
	fixedTerm     []int       // by link: the one term that it may have, −1: all
	maxima        [][]maximum // by step and entry
	value         []int       // by index
}

// maxReevaluated bounds the entries computed to find the smallest of several assignments of a piece.
const maxReevaluated = 1 << 20

// maximumOfTables is maximumOf for a kind with tables.
func (f *Form) maximumOfTables(ctx context.Context, kind *kind, close float64) (p pieceMaximum, err error) {
	m := &maximiser{
		tableRun:     &tableRun{layout: f.layout, netPlan: kind.tables, ctx: ctx},
		form:         f,
		tolerance:    close,
		countingLink: -1,
		fixedTerm:    slices.Repeat([]int{-1}, len(kind.links)),
		value:        make([]int, len(kind.tables.expression.Dims)),
	}
	for i, link := range kind.links {
		for x := range f.net.Links[link].T.(*tensor.CP).Weights {
			if c, _, _ := f.termCount(link, x); c > 0 {
				m.countingLink = i
			}
		}
	}
	for c := range p.weight {
		p.terms[c] = make([]int, len(kind.links))
		if m.requiredCount = c; c > 0 && m.countingLink < 0 {
			continue
		}
		top, err := m.fillMaxima()
		if err != nil {
			return p, err
		}
		if p.weight[c], p.isUnique[c] = top.weight, top.ties == 1; top.weight.IsZero() {
			continue
		}
		m.readArgument(len(m.steps) - 1)
		for i, index := range m.index {
			p.terms[c][i] = m.termOf(i, m.value[index])
		}
		if top.ties > 1 {
			if err := m.findSmallest(top.weight, p.terms[c]); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// fillMaxima fills the maxima of all steps and returns the largest weight of the piece.
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
		maxima := make([]maximum, int(m.entries(s)))
		switch s.op {
		case opTable:
			for entry, p := range m.tableEntries(s) {
				maxima[entry] = maximum{p.Coef.At(0), 1}
			}
		case opUnary:
			for entry := range maxima {
				maxima[entry] = m.linkMaximum(s.first, m.termOf(s.first, entry))
			}
		case opProduct:
			walk := m.walk(s.scope, m.steps[s.first].scope, m.steps[s.second].scope)
			for entry := range maxima {
				maxima[entry] = m.maxima[s.first][walk.At[0]].product(m.maxima[s.second][walk.At[1]])
				walk.Next()
			}
		case opSum:
			walk := m.walk(m.steps[s.first].scope, s.scope)
			for _, r := range m.maxima[s.first] {
				maxima[walk.At[0]] = maxima[walk.At[0]].larger(r, m.tolerance)
				walk.Next()
			}
		}
		m.maxima[i] = maxima
	}
	top := m.maxima[len(m.steps)-1][0]
	top.weight = top.weight.Mul(m.expression.Scale)
	return top, nil
}

// linkMaximum returns the weight of a term of a link on the legs that no table has. It returns 0 for a term that is not allowed.
func (m *maximiser) linkMaximum(link, x int) maximum {
	c, w, _ := m.form.termCount(m.links[link], x)
	if m.fixedTerm[link] >= 0 && m.fixedTerm[link] != x || link == m.countingLink && c != m.requiredCount {
		return maximum{}
	}
	return maximum{w, 1}
}

// readArgument sets the values of the indices below a step to those that give its present entry. Of several it takes the smallest.
func (m *maximiser) readArgument(step int) {
	s := &m.steps[step]
	switch s.op {
	case opSum:
		top := m.entry(step)
		for x := range m.expression.Dims[s.index] {
			if m.value[s.index] = x; isNear(m.entry(s.first), top, m.tolerance) {
				break
			}
		}
		m.readArgument(s.first)
	case opProduct:
		m.readArgument(s.first)
		m.readArgument(s.second)
	}
}

// entry returns the entry of a step at the present values of its indices.
func (m *maximiser) entry(step int) scaled.Number {
	place := 0
	for _, i := range m.steps[step].scope {
		place = place*m.expression.Dims[i] + m.value[i]
	}
	return m.maxima[step][place].weight
}

// findSmallest replaces an assignment of weight top by the smallest one of that weight, in the order of the variables. It leaves the
// assignment as it is if that takes more than maxReevaluated entries.
func (m *maximiser) findSmallest(top scaled.Number, terms []int) error {
	entries, reevaluations := 0.0, 0.0
	for i := range m.steps {
		entries += m.entries(&m.steps[i])
	}
	for i := range terms {
		reevaluations += float64(m.expression.Dims[m.index[i]])
	}
	if entries*reevaluations > maxReevaluated {
		return nil
	}

	variable := m.form.variableOf
	order := make([]int, len(terms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return variable[m.links[a]] - variable[m.links[b]] })
	defer func() {
		for i := range m.fixedTerm {
			m.fixedTerm[i] = -1
		}
	}()
	for _, i := range order {
		for value := range m.expression.Dims[m.index[i]] {
			m.fixedTerm[i] = m.termOf(i, value)
			found, err := m.fillMaxima()
			if err != nil {
				return err
			}
			if isNear(found.weight, top, m.tolerance) {
				break
			}
		}
		terms[i] = m.fixedTerm[i]
	}
	return nil
}
