package compiler

// Elimination, written down: its sums and products become nodes of the circuit that is traced.
//
// Every sum decides on the variable that is summed out, and every entry that is not 0 is over the variables that were summed into it: the
// circuit stays smooth, decomposable and deterministic. Sums that are multiples of one another are one node: the first number of each
// goes into the factor of its entry.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// traceOut writes the sums over variable i down, as the nodes and factors of its message, m, or as a factor of whole if that has no
// variables. It is not ok if the factors span too many powers of two.
func (e *eliminator) traceOut(i int, m *message, whole *amount) (ok bool) {
	values, builder := len(e.buckets.values[i]), e.trace.builder
	numbers := e.tables.numbers(&e.buckets.list[i], len(m.values)*values)
	terms := make([]circuit.Node, values)
	m.nodes, m.factors = make([]circuit.Node, len(m.values)), make([]float64, len(m.values))
	low, high := math.Inf(1), 0.0
	row := e.newRow(i)
	for k := range m.nodes {
		m.factors[k] = row.write(numbers[k*values:][:values], terms)
		m.nodes[k] = builder.Sum(terms...)
		if x := m.factors[k]; x > 0 {
			low, high = min(low, x), max(high, x)
		}
		row.next()
	}
	e.tables.releaseFloats(len(numbers))
	if high == 0 || !(math.Log2(high)-math.Log2(low) <= denseRange) || math.IsInf(high, 1) {
		return false
	}
	exponent := math.Ilogb(high)
	for k := range m.factors {
		m.factors[k] = math.Ldexp(m.factors[k], -exponent)
	}
	m.span = max(m.span, float64(exponent-math.Ilogb(low))+1)
	factor := scaled.Make(1, int64(exponent))
	if len(m.scope) == 0 {
		factor = factor.Mul(scaled.FromFloat(m.factors[0]))
		whole.node = builder.Product(whole.node, m.nodes[0])
	}
	whole.node = builder.Product(whole.node, builder.Number(factor))
	return true
}

// row is the entries of a bucket's table that one sum is over, as products.
type row struct {
	builder  *circuit.Builder
	dims     []int // of the table
	messages []message
	leaves   []circuit.Node // by value of the variable that is summed out
	offsets  [][][]int32    // by message: its offsets by axis and value
	x        [denseAxes]int // values of the scope
	factors  []circuit.Node
}

// newRow returns the first row of bucket i.
func (e *eliminator) newRow(i int) *row {
	b := &e.buckets.list[i]
	r := &row{builder: e.trace.builder, messages: b.messages}
	for _, j := range b.scope {
		r.dims = append(r.dims, len(e.buckets.values[j]))
	}
	for _, a := range e.buckets.values[i] {
		r.leaves = append(r.leaves, e.trace.leaf(e.trace.problem.is(e.buckets.vars[i], int(a))))
	}
	for _, in := range b.messages {
		r.offsets = append(r.offsets, slices.Clone(e.tables.messageOffsets(b.scope, in.scope)))
	}
	return r
}

// next moves to the next row.
func (r *row) next() {
	for j := 1; j < len(r.dims); j++ {
		if r.x[j]++; r.x[j] < r.dims[j] {
			return
		}
		r.x[j] = 0
	}
}

// write writes the terms of the row's sum, with their numbers divided by the first that is not 0, which it returns.
func (r *row) write(numbers []float64, terms []circuit.Node) (first float64) {
	for k, x := range numbers {
		terms[k] = circuit.Zero
		if x == 0 {
			continue
		}
		if first == 0 {
			first = x
		}
		r.x[0] = k
		r.factors = append(r.factors[:0], r.leaves[k], r.builder.Number(scaled.FromFloat(x/first)))
		for n, in := range r.messages {
			entry := int32(0)
			for j := range r.dims {
				entry += r.offsets[n][j][r.x[j]]
			}
			r.factors = append(r.factors, in.nodes[entry])
		}
		terms[k] = r.builder.Product(r.factors...)
	}
	return first
}
