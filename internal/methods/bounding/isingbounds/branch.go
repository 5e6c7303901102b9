package isingbounds

// Slices of models of spins: the sum of their bounds is one.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/ising"
)

// sliceRounds is the number of rounds of a slice: it begins with the result for the slice that it is a half of.
// Measured on complete and bipartite models: 2 or 3 gain less than slices do at the same time.
const sliceRounds = 1

// slice is a model with some spins held.
type slice struct {
	base  float64 // of the spins held, nats
	above float64 // bounds ln of its sum
	left  []int32 // spins that are not held
	field []float64
	d, s  []float64 // of the best bound
	half  [2]*slice // nil where it was not divided
}

// total is ln of the sum of the bounds of a slice's halves, or its own where that is less.
func (c *slice) total() float64 {
	if c.half[0] == nil {
		return c.above
	}
	a, b := c.half[0].total(), c.half[1].total()
	top := max(a, b)
	if math.IsInf(top, 0) {
		return min(c.above, top)
	}
	return min(c.above, top+math.Log(math.Exp(a-top)+math.Exp(b-top)))
}

// branch divides slices until there have been so many bounds: always the one with the largest, by the spin with the largest
// d, which is the one that is known best from the others.
func branch(ctx context.Context, m *ising.Model, root *slice, most int) error {
	var open []*slice
	if m.N > 0 {
		open = append(open, root)
	}
	for made := 1; made+2 <= most && len(open) > 0; made += 2 {
		at := 0
		for k, c := range open {
			if c.above > open[at].above {
				at = k
			}
		}
		c := open[at]
		open = slices.Delete(open, at, at+1)
		best := 0
		for k := range c.left {
			if c.d[k+1] > c.d[best+1] {
				best = k
			}
		}
		for k := range c.half {
			c.half[k] = c.hold(ctx, m, best, float64(2*k-1))
			if len(c.half[k].left) > 0 {
				open = append(open, c.half[k])
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.left, c.field, c.d, c.s = nil, nil, nil, nil
	}
	return nil
}

// hold returns the slice with the k-th spin that is left at a sign, and its bound.
func (c *slice) hold(ctx context.Context, m *ising.Model, k int, sign float64) *slice {
	i := c.left[k]
	out := &slice{
		base: c.base + sign*c.field[k], left: slices.Delete(slices.Clone(c.left), k, k+1),
		field: slices.Delete(slices.Clone(c.field), k, k+1),
	}
	n := len(out.left)
	place := make([]int, m.N)
	for a, j := range out.left {
		place[j] = a + 1
	}
	for e := m.First[i]; e < m.First[i+1]; e++ {
		if a := place[m.To[e]]; a > 0 {
			out.field[a-1] += sign * m.J[e]
		}
	}

	p := &determinant{
		n: n, a: make([]float64, (n+1)*(n+1)),
		d: slices.Delete(slices.Clone(c.d), k+1, k+2), s: slices.Delete(slices.Clone(c.s), k, k+1),
	}
	for a, j := range out.left {
		p.a[a+1], p.a[(a+1)*(n+1)] = out.field[a], out.field[a]
		for e := m.First[j]; e < m.First[j+1]; e++ {
			if b := place[m.To[e]]; b > 0 {
				p.a[(a+1)*(n+1)+b] = m.J[e]
			}
		}
	}
	p.first(out.field)
	out.above = min(c.above, out.base+p.improve(ctx, sliceRounds)+1e-11*math.Abs(out.base))
	out.d, out.s = p.d, p.s
	return out
}

// first sets d_0 to its best for the other d: 1 + hᵀ(D − J)⁻¹h. Where there is none it stays.
func (p *determinant) first(field []float64) {
	if p.n == 0 {
		p.d[0] = 1
		return
	}
	rest := make([]float64, 0, p.n*p.n)
	noise := p.noise(p.d)
	for a := 1; a <= p.n; a++ {
		rest = append(rest, noise[a*(p.n+1)+1:(a+1)*(p.n+1)]...)
	}
	c, err := linalg.NewCholesky(rest, p.n)
	if err != nil {
		return
	}
	x, err := c.Solve(field)
	if err != nil {
		return
	}
	p.d[0] = 1
	for a, h := range field {
		p.d[0] += h * x[a]
	}
}
