package bp

// The message of a table to an index, and a table's contribution to the Bethe value.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Between these a float64 sum of products has lost only terms 2^−600 below its largest; outside it
// is computed again with exponents.
const (
	tiny = 0x1p-400
	huge = 0x1p900
)

// kernel computes messages of g from m (tables to indices) and v (indices to tables), in its own
// scratch memory.
type kernel struct {
	g         *graph
	m, v      []float64
	out       []float64 // a message
	half      [2][]float64
	products  []float64 // prefix products of an index
	exponents []int64   // and their exponents of 2
}

// newKernel prepares the computation of messages m to indices and v to tables.
func newKernel(g *graph, m, v []float64) *kernel {
	top := 1
	for _, d := range g.e.Dims {
		top = max(top, d)
	}
	return &kernel{g: g, m: m, v: v, out: make([]float64, top)}
}

// toIndex returns Σ T[x] Π_{l≠k} v_l[x_l] as a function of x_k for incidence k, normalised by Σ|·|
// with a sum ≥ 0. It returns false when all of it is 0. The slice is reused.
func (c *kernel) toIndex(k int32) ([]float64, bool) {
	out := c.contract(k)
	if total := normalise(out); total > tiny && total < huge {
		return out, true
	}
	return out, fromNumbers(out, c.careful(k))
}

// normalise divides x by ±Σ|x| so that its sum is not negative, and returns Σ|x|.
func normalise(x []float64) float64 {
	sum, total := 0.0, 0.0
	for _, a := range x {
		sum += a
		total += math.Abs(a)
	}
	by := total
	if sum < 0 {
		by = -total
	}
	if total > tiny && total < huge {
		for a := range x {
			x[a] /= by
		}
	}
	return total
}

// contract computes toIndex without normalisation: the axes after k's are summed out, last
// first, then the axes before it.
func (c *kernel) contract(k int32) []float64 {
	g := c.g
	along, slot := g.alongScope(g.table[k]), int(g.slot[k])
	cur := g.e.Tables[g.table[k]].Data
	out := c.out[:g.at[k+1]-g.at[k]]
	if len(along) == 1 {
		copy(out, cur)
		return out
	}

	side := 0
	dst := func(size int, last bool) []float64 {
		if last {
			return out
		}
		side = 1 - side
		if cap(c.half[side]) < size {
			c.half[side] = make([]float64, size)
		}
		return c.half[side][:size]
	}
	for l := len(along) - 1; l > slot; l-- {
		v := g.message(c.v, along[l])
		to := dst(len(cur)/len(v), l == slot+1 && slot == 0)
		inner(to, cur, v)
		cur = to
	}

	for l := range slot {
		v := g.message(c.v, along[l])
		to := dst(len(cur)/len(v), l == slot-1)
		outer(to, cur, v)
		cur = to
	}

	return out
}

// inner sums out the last axis: to[r] = Σ_b from[r, b] v[b].
func inner(to, from, v []float64) {
	if len(v) == 2 {
		for r := range to {
			to[r] = from[2*r]*v[0] + from[2*r+1]*v[1]
		}
		return
	}
	for r := range to {
		row, sum := from[r*len(v):(r+1)*len(v)], 0.0
		for b, x := range row {
			sum += x * v[b]
		}
		to[r] = sum
	}
}

// outer sums out the first axis: to[r] = Σ_a v[a] from[a, r].
func outer(to, from, v []float64) {
	for r := range to {
		to[r] = v[0] * from[r]
	}
	for a := 1; a < len(v); a++ {
		for r, x := range from[a*len(to) : (a+1)*len(to)] {
			to[r] += v[a] * x
		}
	}
}

// careful is contract term by term, with an exponent per number.
func (c *kernel) careful(k int32) []scaled.Number {
	g := c.g
	t, slot := g.table[k], int(g.slot[k])
	along := g.alongScope(t)
	out := make([]scaled.Number, g.at[k+1]-g.at[k])
	at := sumproduct.NewWalk(g.e.Dims, g.e.Tables[t].Scope)
	for _, entry := range g.e.Tables[t].Data {
		if entry != 0 {
			term := scaled.FromFloat(entry)
			for l, other := range along {
				if l != slot {
					term = term.Mul(scaled.FromFloat(g.message(c.v, other)[at.X[l]]))
				}
			}
			to := &out[at.X[slot]]
			*to = to.Add(term)
		}
		at.Next()
	}

	return out
}

// fromNumbers writes xs, normalised by Σ|xs| with a sum ≥ 0, to out. It returns false when all are
// 0.
func fromNumbers(out []float64, xs []scaled.Number) bool {
	sizes := make([]scaled.Number, len(xs))
	for a, x := range xs {
		sizes[a] = x.Abs()
	}
	total := scaled.Sum(sizes)
	if total.IsZero() {
		clear(out)
		return false
	}
	if scaled.Sum(xs).Sign() < 0 {
		total = total.Neg()
	}
	for a, x := range xs {
		out[a] = x.Div(total).Float64()
	}
	return true
}

// value returns Σ T[x] Π v_l[x_l] over all indices of table t.
func (c *kernel) value(t int) scaled.Number {
	table := c.g.e.Tables[t]
	if len(table.Scope) == 0 {
		return scaled.FromFloat(table.Data[0])
	}
	k := c.g.edge(t, 0)
	v := c.g.message(c.v, k)
	sum := 0.0
	for a, x := range c.contract(k) {
		sum += x * v[a]
	}

	if size := math.Abs(sum); size > tiny && size < huge {
		return scaled.FromFloat(sum)
	}
	var xs []scaled.Number
	for a, x := range c.careful(k) {
		xs = append(xs, x.Mul(scaled.FromFloat(v[a])))
	}
	return scaled.Sum(xs)
}
