package counts

// The largest weights of a piece: with its leg counted, and without.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// peak is the largest weight of a piece at count 0 and 1, with the terms of its links that have it.
type peak struct {
	at     [2]scaled.Number
	unique [2]bool
	terms  [2][]int // by link
}

// single reports whether a kind has one leg that counts at most, and sums over nothing but the values of variables.
func (f *Form) single(kind *kind) bool {
	counting := 0
	for _, link := range kind.links {
		most := 0
		for x := range f.net.Links[link].T.(*tensor.CP).Weights {
			c, _, ok := f.counts(link, x)
			if !ok {
				return false
			}
			most = max(most, c)
		}
		counting += most
	}
	if counting > 1 || kind.wired == nil {
		return counting <= 1
	}
	of := make([]bool, len(kind.wired.e.Dims))
	for _, i := range kind.wired.index {
		of[i] = true
	}
	for i, d := range kind.wired.e.Dims {
		if !of[i] && d > 1 {
			return false
		}
	}
	return true
}

// counts returns how often term x of a link counts, and with which weight; false where that is not one number.
func (f *Form) counts(link, x int) (c int, w scaled.Number, ok bool) {
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
		own, level := f.weight(leg, x)
		w = w.Mul(scaled.FromFloat(own))
		c += level
	}
	return c, w, true
}

// peak finds the largest weights of a kind. Weights whose relative difference is at most close are equal.
func (f *Form) peak(ctx context.Context, kind *kind, close float64) (peak, error) {
	if kind.wired != nil {
		return f.wiredPeak(ctx, kind, close)
	}
	p := peak{terms: [2][]int{{0}, {0}}}
	link := kind.links[0]
	var top [2]ranked
	for x, own := range f.net.Links[link].T.(*tensor.CP).Weights {
		c, w, _ := f.counts(link, x)
		next := ranked{scaled.FromFloat(own).Mul(w), 1}
		if next.w.IsZero() {
			continue
		}
		if !near(top[c].w, next.w, close) {
			p.terms[c][0] = x
		}
		top[c] = top[c].or(next, close)
	}
	for c, r := range top {
		p.at[c], p.unique[c] = r.w, r.ties == 1
	}
	return p, nil
}

// ranked is the largest of some weights, and its multiplicity, 2 for more than one.
type ranked struct {
	w    scaled.Number
	ties int8
}

// or is the larger of two.
func (a ranked) or(b ranked, close float64) ranked {
	if b.w.Cmp(a.w) > 0 {
		a, b = b, a
	}
	if !b.w.IsZero() && near(b.w, a.w, close) {
		a.ties = 2
	}
	return a
}

// times is the largest product.
func (a ranked) times(b ranked) ranked { return ranked{a.w.Mul(b.w), max(a.ties, b.ties)} }

// climb is a piece with tables under maximisation, its legs counting a given number of times.
type climb struct {
	*run
	form     *Form
	close    float64
	count    int
	counting int   // the link that counts, −1: none
	fixed    []int // by link: the one term that it may have, −1: all
	ranks    [][]ranked
	value    []int // by index
}

// mostAgain bounds the entries computed to find the smallest of several assignments of a piece.
const mostAgain = 1 << 20

// wiredPeak is peak for a piece with tables.
func (f *Form) wiredPeak(ctx context.Context, kind *kind, close float64) (p peak, err error) {
	m := &climb{
		run:      &run{layout: f.layout, net: kind.wired, ctx: ctx},
		form:     f,
		close:    close,
		counting: -1,
		fixed:    slices.Repeat([]int{-1}, len(kind.links)),
		value:    make([]int, len(kind.wired.e.Dims)),
	}
	for i, link := range kind.links {
		for x := range f.net.Links[link].T.(*tensor.CP).Weights {
			if c, _, _ := f.counts(link, x); c > 0 {
				m.counting = i
			}
		}
	}
	for c := range p.at {
		p.terms[c] = make([]int, len(kind.links))
		if m.count = c; c > 0 && m.counting < 0 {
			continue
		}
		top, err := m.up()
		if err != nil {
			return p, err
		}
		if p.at[c], p.unique[c] = top.w, top.ties == 1; top.w.IsZero() {
			continue
		}
		m.down(len(m.steps) - 1)
		for i, index := range m.index {
			p.terms[c][i] = m.termOf(i, m.value[index])
		}
		if top.ties > 1 {
			if err := m.smallest(top.w, p.terms[c]); err != nil {
				return p, err
			}
		}
	}
	return p, nil
}

// up returns the largest weight of the piece.
func (m *climb) up() (ranked, error) {
	if m.e.Scale.IsZero() {
		return ranked{}, nil
	}
	m.ranks = make([][]ranked, len(m.steps))
	for i := range m.steps {
		s := &m.steps[i]
		if err := m.ctx.Err(); err != nil {
			return ranked{}, err
		}
		out := make([]ranked, int(m.states(s)))
		switch s.op {
		case opTable:
			for at, p := range m.constants(s) {
				out[at] = ranked{p.Coef.At(0), 1}
			}
		case opUnary:
			for at := range out {
				out[at] = m.unary(s.a, m.termOf(s.a, at))
			}
		case opProduct:
			w := m.walk(s.scope, m.steps[s.a].scope, m.steps[s.b].scope)
			for at := range out {
				out[at] = m.ranks[s.a][w.At[0]].times(m.ranks[s.b][w.At[1]])
				w.Next()
			}
		case opSum:
			w := m.walk(m.steps[s.a].scope, s.scope)
			for _, r := range m.ranks[s.a] {
				out[w.At[0]] = out[w.At[0]].or(r, m.close)
				w.Next()
			}
		}
		m.ranks[i] = out
	}
	top := m.ranks[len(m.steps)-1][0]
	top.w = top.w.Mul(m.e.Scale)
	return top, nil
}

// unary is the weight of a term of a link on the legs that no table has, 0 where it may not be.
func (m *climb) unary(link, x int) ranked {
	c, w, _ := m.form.counts(m.links[link], x)
	if m.fixed[link] >= 0 && m.fixed[link] != x || link == m.counting && c != m.count {
		return ranked{}
	}
	return ranked{w, 1}
}

// down fills the values of the indices below a step with its largest entry's, the smallest of each where several have it.
func (m *climb) down(step int) {
	s := &m.steps[step]
	switch s.op {
	case opSum:
		top := m.entry(step)
		for x := range m.e.Dims[s.index] {
			if m.value[s.index] = x; near(m.entry(s.a), top, m.close) {
				break
			}
		}
		m.down(s.a)
	case opProduct:
		m.down(s.a)
		m.down(s.b)
	}
}

// entry returns the entry of a step's table at the present values of its indices.
func (m *climb) entry(step int) scaled.Number {
	at := 0
	for _, i := range m.steps[step].scope {
		at = at*m.e.Dims[i] + m.value[i]
	}
	return m.ranks[step][at].w
}

// smallest replaces an assignment of weight top by the smallest one, in the order of the variables, where finding it takes no more
// than mostAgain entries.
func (m *climb) smallest(top scaled.Number, terms []int) error {
	work, again := 0.0, 0.0
	for i := range m.steps {
		work += m.states(&m.steps[i])
	}
	for i := range terms {
		again += float64(m.e.Dims[m.index[i]])
	}
	if work*again > mostAgain {
		return nil
	}

	variable := m.form.variable
	order := make([]int, len(terms))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return variable[m.links[a]] - variable[m.links[b]] })
	defer func() {
		for i := range m.fixed {
			m.fixed[i] = -1
		}
	}()
	for _, i := range order {
		for at := range m.e.Dims[m.index[i]] {
			m.fixed[i] = m.termOf(i, at)
			own, err := m.up()
			if err != nil {
				return err
			}
			if near(own.w, top, m.close) {
				break
			}
		}
		terms[i] = m.fixed[i]
	}
	return nil
}
