package frobenius

// Extrapolation between sweeps. Alternating least squares crawls along narrow valleys; a step
// further in the direction of the last sweep, taken only if it explains more, crosses them.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	firstStep  = 1.0
	stepGrowth = 1.5 // after a step that was kept
	stepShrink = 0.5 // after one that was not
	leastStep  = 0.25
	mostStep   = 1000.0
)

// extrapolate tries S + β(S − S'), R + β(R − R') for all parts at once, where before are the parts
// of one sweep ago, and keeps the result if it explains more. It adapts β.
// Cost: one count polynomial of B per part and one per pair.
func (l *learner) extrapolate(before []*part) error {
	if len(before) != len(l.parts) {
		return nil
	}
	trial := l.snapshot()
	for i, p := range l.parts {
		if q := p.beyond(before[i], l.step); q != nil {
			trial.parts[i] = q
		}
	}

	if err := trial.system(); err != nil {
		return err
	}
	if trial.fit.Explained.Cmp(l.fit.Explained) <= 0 {
		l.step = math.Max(leastStep, l.step*stepShrink)
		return nil
	}
	l.step = math.Min(mostStep, l.step*stepGrowth)
	l.model = trial
	return nil
}

// beyond returns the part at p + β(p − before) with unit vectors.
func (p *part) beyond(before *part, beta float64) *part {
	q := &part{class: p.class, term: term{r: append([][]float64(nil), p.r...)}}
	if p.s != nil {
		s := p.s.Add(p.s.Sub(*before.s).Scale(scaled.FromFloat(beta)))
		q.s = &s
	}
	if p.class == btn.ClassSymmetric {
		return q
	}

	for leg, v := range p.r {
		fresh := make([]float64, len(v))
		square := 0.0
		for x := range v {
			fresh[x] = v[x] + beta*(v[x]-before.r[leg][x])
			square += fresh[x] * fresh[x]
		}
		if square == 0 {
			return nil
		}
		for x := range fresh {
			fresh[x] /= math.Sqrt(square)
		}
		q.r[leg] = fresh
	}

	return q
}

// system computes all of G and b by product trees and refits.
func (m *model) system() error {
	for i, p := range m.parts {
		s, d := p.core(m.sp.levels)
		base, err := m.sp.basePoly(p.r, d)
		if err != nil {
			return err
		}
		m.b[i] = countspace.Dot(s, base, m.sp.ops)
		for k := 0; k <= i; k++ {
			s, d := p.joint(m.parts[k].term, m.sp.levels)
			m.g[i][k] = countspace.Dot(s, m.sp.pairPoly(p.r, m.parts[k].r, d), m.sp.ops)
			m.g[k][i] = m.g[i][k]
		}
	}
	return m.refit()
}
