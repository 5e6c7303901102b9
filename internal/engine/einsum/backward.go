package einsum

// The way back over a tape: derivatives by every table that leads to a marginal.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// derivative is ∂Z/∂table = data·2^exp; data nil stands for 0.
type derivative struct {
	data []float64
	exp  int64
	sumproduct.Depth
}

// backward returns the marginals of every index after a run that kept its tables. The tables are given up on the way.
func (c *contraction) backward() ([][]scaled.Number, error) {
	t := c.tape
	m := make([][]scaled.Number, len(c.dims))
	for i, d := range c.dims {
		m[i] = make([]scaled.Number, d)
		switch {
		case d == 1:
			m[i][0] = c.scale
		case !t.used[i]:
			for x := range m[i] {
				m[i][x] = c.scale.Div(scaled.FromFloat(float64(d)))
			}
		}
	}
	if t.wanted != nil {
		c.by, c.byExp = make([][]float64, len(t.h.Edges)), make([]int64, len(t.h.Edges))
	}
	by := make([]derivative, len(c.tables))
	for n, seed := range t.seeds() {
		if k := t.tables[n]; t.wanted != nil && k >= 0 && k < len(t.h.Edges) && t.wanted[k] && !seed.IsZero() {
			c.by[k], c.byExp[k] = []float64{seed.Mant}, seed.Exp // a table of one entry
		}
		if k := t.tables[n]; k >= len(t.h.Edges) && t.need[k] && !seed.IsZero() {
			by[k] = derivative{data: c.arena.Get(1), exp: seed.Exp}
			by[k].data[0] = seed.Mant
		}
	}
	for n := len(t.steps) - 1; n >= 0; n-- {
		s, out := t.steps[n], len(t.h.Edges)+n
		c.arena.Put(c.tables[out].data)
		c.tables[out].data = nil
		if by[out].data == nil {
			continue
		}
		if err := c.stepBack(s, out, by); err != nil {
			return nil, err
		}
		c.arena.Put(by[out].data)
		by[out] = derivative{}
		for _, k := range s.In {
			if k < len(t.reads) && by[k].data != nil {
				for _, i := range t.reads[k] {
					c.read(m[i], i, k, by[k])
				}
				if t.wanted != nil && t.wanted[k] {
					c.by[k], c.byExp[k] = slices.Clone(by[k].data), by[k].exp-t.shift[k]
				}
				c.arena.Put(by[k].data)
				by[k] = derivative{}
			}
		}
	}
	return m, nil
}

// stepBack computes the derivatives by the inputs of a step from the one by its output.
func (c *contraction) stepBack(s *contractionorder.Step, out int, by []derivative) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	into := make([][]float64, len(s.In))
	for i, k := range s.In {
		if c.tape.need[k] {
			into[i] = c.arena.Get(int(c.tape.of(k)))
			clear(into[i])
		}
	}
	depths, exp := make([]sumproduct.Depth, len(s.In)), by[out].exp-c.tape.shift[out]
	for i, k := range s.In {
		if into[i] == nil {
			continue
		}
		low, loses := c.descend(s, i, &by[out])
		depths[i].Low = max(low, sumproduct.Smallest)
		if loses && !c.lost {
			up := upper(by[out].data)
			for _, t := range s.In {
				up += upper(c.tables[t].data)
			}
			c.lost = !c.spares(k, s.Full, up, exp)
		}
	}
	b := &c.back
	c.kernel.prepare(c.dims, s, c.tables, by[out].data)
	b.prepare(&c.kernel, c.dims, s, into)
	if err := b.run(c.ctx, c.threads); err != nil {
		return err
	}
	for i, k := range s.In {
		if into[i] == nil {
			continue
		}
		d := derivative{data: into[i], exp: exp, Depth: depths[i]}
		top := floats.LargestBits(d.data)
		switch {
		case top >= infinity:
			return fmt.Errorf("%w: in the derivative by table %d", sumproduct.ErrNotFinite, k)
		case top == 0:
			c.arena.Put(d.data)
			continue
		case outside(top):
			p, loses := rescale(d.data, top, &d.Depth)
			d.exp += p.Exp
			c.lost = c.lost || loses && !c.spares(k, float64(len(d.data)), 0, d.exp)
		}
		d.Low = min(max(d.Low, sumproduct.Smallest), 0)
		by[k] = d
	}
	return nil
}

// read adds t[y]·∂Z/∂t[y] of table k up by the value that y has at index i.
func (c *contraction) read(m []scaled.Number, i, k int, by derivative) {
	t := &c.tables[k]
	if t.Low+by.Low < floats.Lowest {
		t.Measure(t.data)
		by.Measure(by.data)
		c.lost = c.lost || t.Low+by.Low < floats.Lowest && !c.spares(k, float64(len(t.data)), 0, by.exp)
	}
	inner := 1
	for a := len(t.scope) - 1; t.scope[a] != i; a-- {
		inner *= c.dims[t.scope[a]]
	}
	for x := range m {
		sum := 0.0
		for at := x * inner; at < len(t.data); at += inner * len(m) {
			for j := at; j < at+inner; j++ {
				sum += float64(t.data[j] * by.data[j])
			}
		}
		m[x] = scaled.Make(sum, by.exp)
	}
}
