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

// traceOut writes the sums over variable i as nodes of the circuit. The sums are the entries of a table, the message m to the variables
// that are summed out later. Entry k is a number times a node, m.factors[k]·m.nodes[k]. A power of two is taken out of all factors of m and
// multiplied to whole.node, the node of the whole sum. If m has no variables, its only entry is multiplied to whole.node, too. ok is false
// if the factors span too many powers of two.
func (e *eliminator) traceOut(i int, m *message, whole *amount) (ok bool) {
	e.writeSums(i, m)
	exponent, ok := m.normaliseFactors()
	if !ok {
		return false
	}
	builder := e.trace.builder
	factor := scaled.Make(1, exponent)
	if len(m.scope) == 0 {
		factor = factor.Mul(scaled.FromFloat(m.factors[0]))
		whole.node = builder.Product(whole.node, m.nodes[0])
	}
	whole.node = builder.Product(whole.node, builder.Number(factor))
	return true
}

// writeSums writes the sum over variable i for each entry k of its message m to the circuit: entry k is m.factors[k] times the node
// m.nodes[k]. Those factors of the bucket that are plain numbers (tables, clauses) were multiplied to numbers, which has a row for each
// entry and a column for each value of the variable.
func (e *eliminator) writeSums(i int, m *message) {
	values := len(e.buckets.values[i])
	numbers := e.tables.numbers(&e.buckets.list[i], len(m.values)*values)
	terms := make([]circuit.Node, values) // by value of variable i
	m.nodes, m.factors = make([]circuit.Node, len(m.values)), make([]float64, len(m.values))
	row := e.newRow(i)
	for k := range m.nodes {
		m.factors[k] = row.writeTerms(numbers[k*values:][:values], terms) // the first number that is not 0; terms are divided by it
		m.nodes[k] = e.trace.builder.Sum(terms...)
		row.next()
	}
	e.tables.releaseFloats(len(numbers))
}

// normaliseFactors divides the factors of a message by 2^exponent, the power of two of the largest one. It widens m.span, the powers of two
// that the message's numbers span, to that of the factors. ok is false if all factors are 0, one is infinite, or they span more than
// denseRange.
func (m *message) normaliseFactors() (exponent int64, ok bool) {
	low, high := math.Inf(1), 0.0 // of the factors above 0
	for _, x := range m.factors {
		if x > 0 {
			low, high = min(low, x), max(high, x)
		}
	}
	if high == 0 || !(math.Log2(high)-math.Log2(low) <= denseRange) || math.IsInf(high, 1) {
		return 0, false
	}
	power := math.Ilogb(high)
	for k := range m.factors {
		m.factors[k] = math.Ldexp(m.factors[k], -power)
	}
	m.span = max(m.span, float64(power-math.Ilogb(low))+1) // high / low is below 2^(power − Ilogb(low) + 1)
	return int64(power), true
}

// row is a row of a bucket's table: the entries that one sum is over, for fixed values of all axes but the first one.
type row struct {
	builder  *circuit.Builder
	dims     []int // of the table
	messages []message
	leaves   []circuit.Node // by value of the variable that is summed out
	offsets  [][][]int32    // by message, axis and value: what the value adds to the index in the message
	x        [denseAxes]int // by axis: the present value
	factors  []circuit.Node // scratch of writeTerms
}

// newRow returns a row at the first entry of bucket i's table, where all axes have value 0. The table's axes are the variables of the
// bucket's scope. The row has the circuit's leaf of each value of the bucket's variable, which is summed out, and for each message of the
// bucket what the values of the axes add to the index in the message (offsets).
func (e *eliminator) newRow(i int) *row {
	b := &e.buckets.list[i]
	r := &row{builder: e.trace.builder, messages: b.messages}
	for _, j := range b.scope {
		r.dims = append(r.dims, len(e.buckets.values[j]))
	}
	for _, a := range e.buckets.values[i] {
		r.leaves = append(r.leaves, e.trace.leaf(e.trace.problem.literalOf(e.buckets.vars[i], int(a))))
	}
	for _, m := range b.messages {
		r.offsets = append(r.offsets, slices.Clone(e.tables.messageOffsets(b.scope, m.scope))) // the next call overwrites its result
	}
	return r
}

// next moves to the next row, axis 1 fastest.
func (r *row) next() {
	for j := 1; j < len(r.dims); j++ { // axis 0 is summed over
		if r.x[j]++; r.x[j] < r.dims[j] {
			return
		}
		r.x[j] = 0
	}
}

// writeTerms writes the terms of the row's sum to terms, one for each value k of the variable that is summed out, which is axis 0 of the
// row. A term is the product of the value's leaf, numbers[k] / first, and a node of each message. first, which it returns, is the first
// number that is not 0. A term of number 0 is Zero. In message n, value x on axis j adds offsets[n][j][x] to the index of the node.
func (r *row) writeTerms(numbers []float64, terms []circuit.Node) (first float64) {
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
		for n, m := range r.messages {
			entry := int32(0)
			for j := range r.dims {
				entry += r.offsets[n][j][r.x[j]]
			}
			r.factors = append(r.factors, m.nodes[entry])
		}
		terms[k] = r.builder.Product(r.factors...)
	}
	return first
}
