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

// kernel computes messages of a factor graph from others. It has scratch memory, so it serves one goroutine. The messages are normalised,
// and listed by incidence, a pair of a table and an index of its scope.
type kernel struct {
	graph            *graph
	toIndex, toTable []float64    // all messages: m from tables to indices, v from indices to tables
	buffer           []float64    // for one message
	halfBuffers      [2][]float64 // for intermediate results of contractTable, in turn
	products         []float64    // prefix products of the messages to an index
	exponents        []int64      // the binary exponents of products
}

// newKernel returns a kernel of g that reads and writes the messages toIndex, from tables to indices, and toTable, from indices to tables.
func newKernel(g *graph, toIndex, toTable []float64) *kernel {
	largestDim := 1
	for _, d := range g.expression.Dims {
		largestDim = max(largestDim, d)
	}
	return &kernel{graph: g, toIndex: toIndex, toTable: toTable, buffer: make([]float64, largestDim)}
}

// messageToIndex computes the message of incidence k from its table to its index,
//
//	m[x_k] = Σ T[x] Π_{l≠k} v_l[x_l]
//
// with the sum over all other indices of the table, and their messages v_l to the table. It is normalised: Σ|m| is 1 and the sum is not
// negative. ok is false if all entries are 0. The message is valid until the next call.
func (c *kernel) messageToIndex(k int32) (message []float64, ok bool) {
	message = c.contractTable(k)
	if total := normalise(message); total > tiny && total < huge {
		return message, true
	}
	return message, writeNormalised(message, c.contractWithExponents(k))
}

// normalise divides the entries of message by ±Σ|x|, with the sign that makes their sum not negative, and returns Σ|x|. It changes nothing
// if Σ|x| is not between tiny (2^−400) and huge (2^900).
func normalise(message []float64) (total float64) {
	sum := 0.0
	for _, x := range message {
		sum += x
		total += math.Abs(x)
	}
	divisor := total
	if sum < 0 {
		divisor = -total
	}
	if total > tiny && total < huge {
		for a := range message {
			message[a] /= divisor
		}
	}
	return total
}

// contractTable computes the message of incidence k from its table to its index, without normalisation: it multiplies the table by the
// messages of all other indices and sums these indices out, one axis at a time. It begins with the axes after that of the index, the last
// axis first, since these are the fastest in memory; then it sums out the axes before it, the first axis first. The message is valid until
// the next call.
func (c *kernel) contractTable(k int32) []float64 {
	g := c.graph
	incidences, axisOfIndex := g.incidencesOfTable(g.tableOf[k]), int(g.scopePosition[k])
	current := g.expression.Tables[g.tableOf[k]].Data // the table with some axes summed out
	message := c.buffer[:g.messageStart[k+1]-g.messageStart[k]]
	if len(incidences) == 1 {
		copy(message, current)
		return message
	}

	// nextBuffer returns memory for the table without one more axis, which has the given size: message if only the axis of the index is
	// left then, else one of two buffers in turn.
	half := 0
	remainingAxes := len(incidences) - 1 // that are to be summed out
	nextBuffer := func(size int) []float64 {
		remainingAxes--
		if remainingAxes == 0 {
			return message
		}
		half = 1 - half
		if cap(c.halfBuffers[half]) < size {
			c.halfBuffers[half] = make([]float64, size)
		}
		return c.halfBuffers[half][:size]
	}

	for axis := len(incidences) - 1; axis > axisOfIndex; axis-- {
		v := g.messageOf(c.toTable, incidences[axis])
		target := nextBuffer(len(current) / len(v))
		sumLastAxis(target, current, v)
		current = target
	}
	for axis := range axisOfIndex {
		v := g.messageOf(c.toTable, incidences[axis])
		target := nextBuffer(len(current) / len(v))
		sumFirstAxis(target, current, v)
		current = target
	}

	return message
}

// sumLastAxis multiplies a table by v along its last axis and sums that axis out: to[r] = Σ_b from[r·d + b] v[b], where v has d entries.
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

// sumFirstAxis multiplies a table by v along its first axis and sums that axis out: to[r] = Σ_a v[a] from[a·n + r], where to has n entries.
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

// contractWithExponents computes the message of incidence k from its table to its index, without normalisation, as contractTable does, but
// term by term and in numbers with exponents of any size.
func (c *kernel) contractWithExponents(k int32) []scaled.Number {
	g := c.graph
	t, axisOfIndex := g.tableOf[k], int(g.scopePosition[k])
	incidences := g.incidencesOfTable(t)
	message := make([]scaled.Number, g.messageStart[k+1]-g.messageStart[k])
	walk := sumproduct.NewWalk(g.expression.Dims, g.expression.Tables[t].Scope) // walk.Values has the values of the present entry
	for _, entry := range g.expression.Tables[t].Data {
		if entry != 0 {
			term := scaled.FromFloat(entry)
			for axis, incidence := range incidences {
				if axis != axisOfIndex {
					term = term.Mul(scaled.FromFloat(g.messageOf(c.toTable, incidence)[walk.Values[axis]]))
				}
			}
			sum := &message[walk.Values[axisOfIndex]]
			*sum = sum.Add(term)
		}
		walk.Next()
	}

	return message
}

// writeNormalised writes the numbers xs to message, divided by ±Σ|x|, with the sign that makes their sum not negative. If all numbers are
// 0, it writes zeros and returns false.
func writeNormalised(message []float64, xs []scaled.Number) bool {
	sizes := make([]scaled.Number, len(xs))
	for a, x := range xs {
		sizes[a] = x.Abs()
	}
	divisor := scaled.Sum(sizes)
	if divisor.IsZero() {
		clear(message)
		return false
	}
	if scaled.Sum(xs).Sign() < 0 {
		divisor = divisor.Neg()
	}
	for a, x := range xs {
		message[a] = x.Div(divisor).Float64()
	}
	return true
}

// tableValue returns z_t = Σ_x T[x] Π_i v_i[x_i] of table t, where v_i is the message from index i to the table. It computes this as Σ_a
// u[a] v[a] over the values a of the first index of t, where v is the message from that index and u the unnormalised message to it. If the
// sum is out of the safe range, between tiny (2^−400) and huge (2^900), it computes with exponents.
func (c *kernel) tableValue(t int) scaled.Number {
	table := c.graph.expression.Tables[t]
	if len(table.Scope) == 0 {
		return scaled.FromFloat(table.Data[0])
	}
	k := c.graph.incidenceAt(t, 0) // of t with its first index
	v := c.graph.messageOf(c.toTable, k)
	sum := 0.0
	for a, u := range c.contractTable(k) {
		sum += u * v[a]
	}

	if size := math.Abs(sum); size > tiny && size < huge {
		return scaled.FromFloat(sum)
	}
	var terms []scaled.Number
	for a, u := range c.contractWithExponents(k) {
		terms = append(terms, u.Mul(scaled.FromFloat(v[a])))
	}
	return scaled.Sum(terms)
}
