package isingbounds

// Slices of models of spins: the sum of their bounds is one.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/ising"
)

// sliceRounds is the number of rounds for a slice. It begins with the result for the slice that it is a half of. Measured on complete and
// bipartite models: 2 or 3 gain less than slices do at the same time.
const sliceRounds = 1

// slice is a model with some spins held. When it is divided, only heldLn, upperBound and halves remain.
type slice struct {
	heldLn     float64   // sum of the fields and couplings of held spins, nats
	upperBound float64   // of ln of the sum over the slice
	open       []int32   // spins that are not held
	fields     []float64 // by place in open, with those of held neighbours
	d, s       []float64 // of the best bound; d has that of the fields first
	halves     [2]*slice // nil: it was not divided
}

// lnTotal returns the best upper bound of ln of the sum over the slice: its bound, or ln of the sum of the bounds of its halves if that is
// less.
func (c *slice) lnTotal() float64 {
	if c.halves[0] == nil {
		return c.upperBound
	}
	a, b := c.halves[0].lnTotal(), c.halves[1].lnTotal()
	top := max(a, b)
	if math.IsInf(top, 0) {
		return min(c.upperBound, top)
	}
	return min(c.upperBound, top+math.Log(math.Exp(a-top)+math.Exp(b-top)))
}

// divideSlices divides slices until there have been most bounds, or no spins remain. The next slice is that with the largest bound. It is
// divided by the spin with the largest d, which is known best from the others. The error is that of the context.
func divideSlices(ctx context.Context, m *ising.Model, root *slice, most int) error {
	var open []*slice
	if m.N > 0 {
		open = append(open, root)
	}
	for bounds := 1; bounds+2 <= most && len(open) > 0; bounds += 2 {
		next := 0
		for k, c := range open {
			if c.upperBound > open[next].upperBound {
				next = k
			}
		}
		c := open[next]
		open = slices.Delete(open, next, next+1)
		spin := 0 // place in c.open
		for k := range c.open {
			if c.d[k+1] > c.d[spin+1] {
				spin = k
			}
		}
		for k := range c.halves {
			c.halves[k] = c.holdSpin(ctx, m, spin, float64(2*k-1))
			if len(c.halves[k].open) > 0 {
				open = append(open, c.halves[k])
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		c.open, c.fields, c.d, c.s = nil, nil, nil, nil
	}
	return nil
}

// holdSpin returns the half of the slice in which the k-th open spin has a sign, and its bound, which is at most that of the slice.
func (c *slice) holdSpin(ctx context.Context, m *ising.Model, k int, sign float64) *slice {
	i := c.open[k]
	out := &slice{
		heldLn: c.heldLn + sign*c.fields[k], open: slices.Delete(slices.Clone(c.open), k, k+1),
		fields: slices.Delete(slices.Clone(c.fields), k, k+1),
	}
	n := len(out.open)
	place := make([]int, m.N) // by spin: its place in out.open, from 1; 0: it is held
	for a, j := range out.open {
		place[j] = a + 1
	}
	for e := m.First[i]; e < m.First[i+1]; e++ {
		if a := place[m.To[e]]; a > 0 {
			out.fields[a-1] += sign * m.J[e]
		}
	}

	p := &determinant{
		n: n, matrix: make([]float64, (n+1)*(n+1)),
		d: slices.Delete(slices.Clone(c.d), k+1, k+2), s: slices.Delete(slices.Clone(c.s), k, k+1),
	}
	for a, j := range out.open {
		p.matrix[a+1], p.matrix[(a+1)*(n+1)] = out.fields[a], out.fields[a]
		for e := m.First[j]; e < m.First[j+1]; e++ {
			if b := place[m.To[e]]; b > 0 {
				p.matrix[(a+1)*(n+1)+b] = m.J[e]
			}
		}
	}
	p.setFirst(out.fields)
	out.upperBound = min(c.upperBound, out.heldLn+p.improve(ctx, sliceRounds)+1e-11*math.Abs(out.heldLn))
	out.d, out.s = p.d, p.s
	return out
}

// setFirst sets d_0 to its best for the other d: 1 + hᵀ(D − J)⁻¹h with the fields h. It leaves d_0 as it is if D − J is not positive
// definite.
func (p *determinant) setFirst(fields []float64) {
	if p.n == 0 {
		p.d[0] = 1
		return
	}
	inner := make([]float64, 0, p.n*p.n) // D − J: D − A without the first row and column
	whole := p.difference(p.d)
	for a := 1; a <= p.n; a++ {
		inner = append(inner, whole[a*(p.n+1)+1:(a+1)*(p.n+1)]...)
	}
	c, err := linalg.NewCholesky(inner, p.n)
	if err != nil {
		return
	}
	x, err := c.Solve(fields)
	if err != nil {
		return
	}
	p.d[0] = 1
	for a, h := range fields {
		p.d[0] += h * x[a]
	}
}
