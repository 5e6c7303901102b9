package bp

// The message of a table to an index, and a table's contribution to the Bethe value.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A float64 sum of products between tiny and huge has lost only terms that are 2^−600 times its largest or less. Another sum is computed
// again with exponents.
const (
	tiny = 0x1p-400
	huge = 0x1p900
)

// kernel computes messages of a graph from others. It has scratch memory, so it serves one goroutine.
type kernel struct {
	g         *graph
	m, v      []float64 // all messages: m from tables to indices, v from indices to tables
	buffer    []float64 // for one message
	halves    [2][]float64
	products  []float64 // prefix products of the messages to an index
	exponents []int64   // the binary exponents of products
}

// newKernel returns a kernel of g that reads and writes the messages m to indices and v to tables.
func newKernel(g *graph, m, v []float64) *kernel {
	largestDim := 1
	for _, d := range g.e.Dims {
		largestDim = max(largestDim, d)
	}
	return &kernel{g: g, m: m, v: v, buffer: make([]float64, largestDim)}
}

// messageToIndex computes the message of incidence k from its table to its index: Σ T[x] Π_{l≠k} v_l[x_l], the sum over all indices except
// that of the incidence. It is normalised: Σ|·| is 1 and the sum is not negative. It returns false if all entries are 0. The message is
// valid until the next call.
func (c *kernel) messageToIndex(k int32) (message []float64, ok bool) {
	out := c.contract(k)
	if total := normalise(out); total > tiny && total < huge {
		return out, true
	}
	return out, writeNormalised(out, c.contractCarefully(k))
}

// normalise divides x by ±Σ|x|, with the sign that makes its sum not negative, and returns Σ|x|. It leaves x if Σ|x| is not between tiny
// and huge.
func normalise(x []float64) float64 {
	sum, total := 0.0, 0.0
	for _, a := range x {
		sum += a
		total += math.Abs(a)
	}
	divisor := total
	if sum < 0 {
		divisor = -total
	}
	if total > tiny && total < huge {
		for a := range x {
			x[a] /= divisor
		}
	}
	return total
}

// contract computes the message of incidence k from its table to its index without normalisation. It sums out the axes after that of the
// index, the last first, then the axes before it. The message is valid until the next call.
func (c *kernel) contract(k int32) []float64 {
	g := c.g
	along, slot := g.alongScope(g.tableOf[k]), int(g.slot[k])
	current := g.e.Tables[g.tableOf[k]].Data
	out := c.buffer[:g.offset[k+1]-g.offset[k]]
	if len(along) == 1 {
		copy(out, current)
		return out
	}

	side := 0
	// nextBuffer returns memory for an intermediate result of the given size, not that of the one before, or for the message if isLast.
	nextBuffer := func(size int, isLast bool) []float64 {
		if isLast {
			return out
		}
		side = 1 - side
		if cap(c.halves[side]) < size {
			c.halves[side] = make([]float64, size)
		}
		return c.halves[side][:size]
	}
	for axis := len(along) - 1; axis > slot; axis-- {
		v := g.message(c.v, along[axis])
		target := nextBuffer(len(current)/len(v), axis == slot+1 && slot == 0)
		sumLastAxis(target, current, v)
		current = target
	}

	for axis := range slot {
		v := g.message(c.v, along[axis])
		target := nextBuffer(len(current)/len(v), axis == slot-1)
		sumFirstAxis(target, current, v)
		current = target
	}

	return out
}

// sumLastAxis sums out the last axis: to[r] = Σ_b from[r, b] v[b].
func sumLastAxis(to, from, v []float64) {
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

// sumFirstAxis sums out the first axis: to[r] = Σ_a v[a] from[a, r].
func sumFirstAxis(to, from, v []float64) {
	for r := range to {
		to[r] = v[0] * from[r]
	}
	for a := 1; a < len(v); a++ {
		for r, x := range from[a*len(to) : (a+1)*len(to)] {
			to[r] += v[a] * x
		}
	}
}

// contractCarefully is contract term by term, in numbers with exponents of any size.
func (c *kernel) contractCarefully(k int32) []scaled.Number {
	g := c.g
	t, slot := g.tableOf[k], int(g.slot[k])
	along := g.alongScope(t)
	out := make([]scaled.Number, g.offset[k+1]-g.offset[k])
	walk := sumproduct.NewWalk(g.e.Dims, g.e.Tables[t].Scope)
	for _, entry := range g.e.Tables[t].Data {
		if entry != 0 {
			term := scaled.FromFloat(entry)
			for axis, other := range along {
				if axis != slot {
					term = term.Mul(scaled.FromFloat(g.message(c.v, other)[walk.X[axis]]))
				}
			}
			sum := &out[walk.X[slot]]
			*sum = sum.Add(term)
		}
		walk.Next()
	}

	return out
}

// writeNormalised writes xs to out, divided by ±Σ|xs| with the sign that makes the sum not negative. It returns false, and writes zeros, if
// all are 0.
func writeNormalised(out []float64, xs []scaled.Number) bool {
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

// tableValue returns z_t = Σ_x T[x] Π_l v_l[x_l] of table t, the sum over all its indices.
func (kernel *kernel) tableValue(t int) scaled.Number {
	table := kernel.g.e.Tables[t]
	if len(table.Scope) == 0 {
		return scaled.FromFloat(table.Data[0])
	}
	k := kernel.g.incidence(t, 0)
	v := kernel.g.message(kernel.v, k)
	sum := 0.0
	for a, x := range kernel.contract(k) {
		sum += x * v[a]
	}

	if size := math.Abs(sum); size > tiny && size < huge {
		return scaled.FromFloat(sum)
	}
	var xs []scaled.Number
	for a, x := range kernel.contractCarefully(k) {
		xs = append(xs, x.Mul(scaled.FromFloat(v[a])))
	}
	return scaled.Sum(xs)
}
