package frobenius

// The state of learning: components, their Gram matrix and their weights, always consistent with one
// another.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// part is a component being learned, a term of weight 1. It is replaced, never changed.
type part struct {
	class btn.Class
	term
}

// model is B̃ = Σ_i fit.Alpha[i] parts[i] with G and b of its parts.
type model struct {
	sp          *space
	norm2       scaled.Number
	nonNegative bool
	parts       []*part
	g           [][]scaled.Number
	b           []scaled.Number
	fit         Fit
}

// snapshot returns a copy that later steps on m leave alone.
func (m *model) snapshot() *model {
	c := *m
	c.parts = append([]*part(nil), m.parts...)
	c.b = append([]scaled.Number(nil), m.b...)
	c.g = square(len(m.g))
	for i := range m.g {
		copy(c.g[i], m.g[i])
	}
	sp := *m.sp
	sp.rot = append([][]float64(nil), m.sp.rot...)
	c.sp = &sp
	return &c
}

// refit fits all weights to G and b.
func (m *model) refit() error {
	fit, err := FitWeights(m.g, m.b, m.norm2, len(m.sp.dims), m.nonNegative)
	if err == nil {
		fit.rounds(len(m.sp.dims), m.sp.cancelled)
		m.fit = fit
	}
	return err
}

// products are the count polynomials that decide a component's place among the others under its
// present R: of the base tensor, of the component with itself (N), and with every other component.
type products struct {
	base, self countspace.Poly
	others     []countspace.Poly // by component; unused at the component itself
}

// measure computes the products of part i against the model, by product trees.
func (m *model) measure(i int, p *part) (products, error) {
	d := p.depth(m.sp.levels)
	base, err := m.sp.basePoly(p.r, d)
	if err != nil {
		return products{}, err
	}
	q := products{
		base:   base,
		self:   m.sp.pairPoly(p.r, p.r, d),
		others: make([]countspace.Poly, len(m.parts)),
	}
	for k, other := range m.parts {
		if k != i {
			_, d := p.joint(other.term, m.sp.levels)
			q.others[k] = m.sp.pairPoly(p.r, other.r, d)
		}
	}
	return q, nil
}

// place puts part p at i, computes row i of G and b_i from its products, and refits. If the explained
// fraction falls (by rounding: no step of this package lowers it otherwise), m is as before.
func (m *model) place(i int, p *part, q products) error {
	before := m.snapshot()
	m.parts[i] = p
	s, _ := p.core(m.sp.levels)
	m.b[i] = countspace.Dot(s, q.base, m.sp.ops)
	for k, other := range m.parts {
		x := q.self
		if k != i {
			x = q.others[k]
		}
		s, _ := p.joint(other.term, m.sp.levels)
		m.g[i][k] = countspace.Dot(s, x, m.sp.ops)
		m.g[k][i] = m.g[i][k]
	}

	if err := m.refit(); err != nil {
		return err
	}
	if m.fit.Explained.Cmp(before.fit.Explained) < 0 {
		*m = *before
	}
	return nil
}

// grow makes room for one more component of norm zero.
func (m *model) grow(p *part) int {
	i := len(m.parts)
	m.parts = append(m.parts, p)
	m.b = append(m.b, scaled.Number{})
	g := square(i + 1)
	for k := range m.g {
		copy(g[k], m.g[k])
	}
	m.g = g
	m.fit.Alpha = append(m.fit.Alpha, scaled.Number{})
	return i
}

// square returns an n×n matrix of zeros.
func square(n int) [][]scaled.Number {
	g := make([][]scaled.Number, n)
	for i := range g {
		g[i] = make([]scaled.Number, n)
	}
	return g
}
