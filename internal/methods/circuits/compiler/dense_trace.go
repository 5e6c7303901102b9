package compiler

// Elimination, written down: its sums and products become nodes of the circuit that is traced.
//
// Every sum decides on the variable that is summed out, and every entry that is not 0 is over the variables that were summed into it: the
// circuit stays smooth, decomposable and deterministic. Sums that are multiples of one another are one node: the first number of each
// goes into the factor of its entry.

import (
	"math"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// traceOut writes the sums over variable i down, as the nodes and factors of its message, m, or as a node of whole where that has no
// variables. It returns false where the factors span too many powers of two.
func (s *search) traceOut(i int, m *message, whole *amount) bool {
	e := &s.dense
	b := &e.buckets[i]
	numbers := s.numbersOf(b, len(m.values)*len(e.values[i]))
	terms := make([]circuit.Node, len(e.values[i]))
	m.nodes, m.factors = make([]circuit.Node, len(m.values)), make([]float64, len(m.values))
	low, high := math.Inf(1), 0.0
	row := s.newRow(i)
	for at := range m.nodes {
		m.factors[at] = row.sum(numbers[at*len(terms):][:len(terms)], terms)
		m.nodes[at] = s.trace.builder.Sum(terms...)
		if x := m.factors[at]; x > 0 {
			low, high = min(low, x), max(high, x)
		}
		row.next()
	}
	e.floats = e.floats[:len(e.floats)-len(numbers)]
	if high == 0 || !(math.Log2(high)-math.Log2(low) <= denseRange) || math.IsInf(high, 1) {
		return false
	}
	exponent := math.Ilogb(high)
	for at := range m.factors {
		m.factors[at] = math.Ldexp(m.factors[at], -exponent)
	}
	m.span = max(m.span, float64(exponent-math.Ilogb(low))+1)
	factor := scaled.Make(1, int64(exponent))
	if len(m.scope) == 0 {
		factor = factor.Mul(scaled.FromFloat(m.factors[0]))
		whole.node = s.trace.builder.Product(whole.node, m.nodes[0])
	}
	whole.node = s.trace.builder.Product(whole.node, s.trace.builder.Number(factor))
	return true
}

// numbersOf returns the numbers of a bucket's table: from tables and clauses, and the factors of
// messages.
func (s *search) numbersOf(b *bucket, size int) []float64 {
	e := &s.dense
	numbers := e.takeFloats(size)
	for at := range numbers {
		numbers[at] = 1
	}
	for _, in := range b.messages {
		e.multiply(numbers, b.scope, e.offsets(b.scope, in.scope), 0, in.factors, 1)
	}
	s.multiplyTables(numbers, b)
	s.excludeAll(numbers, b)
	return numbers
}

// row is the entries of a bucket's table that one sum is over, as products.
type row struct {
	s       *search
	b       *bucket
	leaves  []circuit.Node // by value of the variable that is summed out
	steps   [][][]int32    // by message: its steps by place in the scope and value
	x       [denseAxes]int // values of the scope
	factors []circuit.Node
}

// newRow is the first row of bucket i.
func (s *search) newRow(i int) *row {
	e := &s.dense
	r := &row{s: s, b: &e.buckets[i]}
	for _, a := range e.values[i] {
		r.leaves = append(r.leaves, s.trace.leaf(s.residual.problem.is(e.vars[i], int(a))))
	}
	for _, in := range r.b.messages {
		r.steps = append(r.steps, append([][]int32(nil), e.offsets(r.b.scope, in.scope)...))
	}
	return r
}

// next moves to the next row.
func (r *row) next() {
	for j := 1; j < len(r.b.scope); j++ {
		if r.x[j]++; r.x[j] < len(r.s.dense.values[r.b.scope[j]]) {
			return
		}
		r.x[j] = 0
	}
}

// sum writes the terms of the row's sum, with their numbers divided by the first that is not 0, which it returns.
func (r *row) sum(numbers []float64, terms []circuit.Node) (first float64) {
	for k, x := range numbers {
		terms[k] = circuit.Zero
		if x == 0 {
			continue
		}
		if first == 0 {
			first = x
		}
		r.x[0] = k
		r.factors = append(r.factors[:0], r.leaves[k], r.s.trace.builder.Number(scaled.FromFloat(x/first)))
		for n, in := range r.b.messages {
			place := int32(0)
			for j := range r.b.scope {
				place += r.steps[n][j][r.x[j]]
			}
			r.factors = append(r.factors, in.nodes[place])
		}
		terms[k] = r.s.trace.builder.Product(r.factors...)
	}
	return first
}
