package structured

// The weights of values under a node: a product over the statistics of factors that are computed once for every node of a statistic.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
)

const (
	// mostFactors bounds the factors of all nodes of all statistics: 64 MiB of complex ones.
	mostFactors = 1 << 22
	// safe is the range, −ln, that the weights of one variable may have: beyond it they are computed one by one.
	safe = 600
)

// tables are factors of the weights of values by statistic, node and value.
type tables struct {
	base   []plain // e^field, of each variable the largest 1
	ln     float64 // what base is divided by
	spread float64 // −ln of the smallest weight above 0 in base
	axes   []factors
}

// factors are those of one statistic, by node from the first on: e^{t s(x)}, of each variable the largest 1, or e^{i t s(x)}.
type factors struct {
	plain      [][]plain
	phase      [][]phase
	ln, spread []float64
}

// tabulate computes the tables. They are empty where they would be too large.
func (e *evaluator) tabulate() (t tables) {
	values := len(e.field)
	count := 1.0
	for _, a := range e.axes {
		count += float64(a.last - a.first + 1)
	}
	if count*float64(values) > mostFactors {
		return t
	}
	t.base = make([]plain, values)
	t.ln, t.spread = e.exponentials(e.field, t.base)
	args := make([]float64, values)
	for k, a := range e.axes {
		var f factors
		for m := a.first; m <= a.last; m++ {
			turn := a.root * a.step * float64(m)
			for x := range args {
				args[x] = turn * e.fit.Vectors[k*values+x]
			}
			if a.negative {
				row := make([]phase, values)
				for x, angle := range args {
					sin, cos := math.Sincos(angle)
					row[x] = phase(complex(cos, sin))
				}
				f.phase = append(f.phase, row)
				continue
			}
			row := make([]plain, values)
			ln, spread := e.exponentials(args, row)
			f.plain, f.ln, f.spread = append(f.plain, row), append(f.ln, ln), append(f.spread, spread)
		}
		t.axes = append(t.axes, f)
	}
	return t
}

// exponentials fills g with e^args, of each variable the largest 1, and returns ln of what they are divided by, and the largest range of
// the finite args of a variable.
func (e *evaluator) exponentials(args []float64, g []plain) (ln, spread float64) {
	var sum floats.Sum
	for v, d := range e.fit.Domains {
		own := args[e.at[v]:][:d]
		most, least := math.Inf(-1), math.Inf(1)
		for _, f := range own {
			most = max(most, f)
			if !math.IsInf(f, -1) {
				least = min(least, f)
			}
		}
		sum.Add(most)
		spread = max(spread, most-least)
		for x, f := range own {
			g[e.at[v]+x] = plain(math.Exp(f - most))
		}
	}
	return sum.Value(), spread
}

// prefix is the product of the factors of all statistics of a kind but the last one: consecutive nodes share it.
type prefix[T any] struct {
	known      bool
	at         node
	g          []T
	ln, spread float64
}

// real fills to.g with weights of values for the real part of a node, none of a variable's above 1 and one at least e^{−safe}, and returns
// ln of what they are divided by.
func (e *evaluator) real(at node, to *elimination[plain]) (ln float64) {
	if e.tables.base == nil {
		return e.realOneByOne(at, to.g)
	}
	last := -1
	p := &to.prefix
	same := p.known
	for k := range e.axes {
		if e.axes[k].negative {
			continue
		}
		if last >= 0 {
			same = same && p.at[last] == at[last]
		}
		last = k
	}
	if !same {
		p.known, p.at, p.ln, p.spread = true, at, e.tables.ln, e.tables.spread
		p.g = append(p.g[:0], e.tables.base...)
		for k := range last {
			if m := int(at[k]); !e.axes[k].negative && m != 0 {
				f := &e.tables.axes[k]
				m -= e.axes[k].first
				multiply(p.g, p.g, f.plain[m])
				p.ln += f.ln[m]
				p.spread += f.spread[m]
			}
		}
	}
	if last < 0 {
		copy(to.g, p.g)
		return p.ln
	}
	f := &e.tables.axes[last]
	m := int(at[last]) - e.axes[last].first
	if p.spread+f.spread[m] > safe {
		return e.realOneByOne(at, to.g)
	}
	multiply(to.g, p.g, f.plain[m])
	return p.ln + f.ln[m]
}

func multiply[T plain | phase](to, a, b []T) {
	a, b = a[:len(to)], b[:len(to)]
	for x := range to {
		to[x] = a[x] * b[x]
	}
}

// realOneByOne is real by the exponents, of each variable the largest weight 1.
func (e *evaluator) realOneByOne(at node, g []plain) (ln float64) {
	args := append([]float64(nil), e.field...)
	for k, a := range e.axes {
		if t := a.root * a.step * float64(at[k]); !a.negative && t != 0 {
			for x, s := range e.fit.Vectors[k*len(args):][:len(args)] {
				args[x] += t * s
			}
		}
	}
	ln, _ = e.exponentials(args, g)
	return ln
}

// turned fills to.g with a node's weights, with the phases of the statistics with λ < 0.
func (e *evaluator) turned(at node, size []plain, to *elimination[phase]) {
	if e.tables.base == nil {
		values := len(e.field)
		for x, s := range size {
			angle := 0.0
			for k, a := range e.axes {
				if a.negative {
					angle += a.root * a.step * float64(at[k]) * e.fit.Vectors[k*values+x]
				}
			}
			sin, cos := math.Sincos(angle)
			to.g[x] = phase(complex(float64(s)*cos, float64(s)*sin))
		}
		return
	}
	last := -1
	p := &to.prefix
	same := p.known
	for k := range e.axes {
		if !e.axes[k].negative {
			continue
		}
		if last >= 0 {
			same = same && p.at[last] == at[last]
		}
		last = k
	}
	row := func(k int) []phase { return e.tables.axes[k].phase[int(at[k])-e.axes[k].first] }
	if !same {
		p.known, p.at = true, at
		p.g = p.g[:0]
		for k := range last {
			switch {
			case !e.axes[k].negative:
			case len(p.g) == 0:
				p.g = append(p.g, row(k)...)
			default:
				multiply(p.g, p.g, row(k))
			}
		}
	}
	turn := row(last)
	for x, s := range size {
		g := turn[x]
		if len(p.g) > 0 {
			g *= p.g[x]
		}
		to.g[x] = phase(complex(float64(s)*real(g), float64(s)*imag(g)))
	}
}
