package compiler

// The tables of an elimination: the factors of a variable, multiplied entry by entry, and summed.

import (
	"math"
	"slices"
)

// denseRange is the number of powers of two that the factors of an entry may span: below it no digit is lost.
const denseRange = 900

// denseAxes is more than the variables of a table with at most 2^24 entries.
const denseAxes = 32

// tabulator computes the tables of buckets. A table has one axis for each variable of the bucket's scope, the first one fastest.
type tabulator struct {
	residual *residual
	buckets  *buckets

	// Scratch memory, reused from one elimination to the next.
	ints    []int32
	floats  []float64
	weights [denseValues]float64
	x       [denseAxes]int
	offsets [denseAxes][]int32
}

// reset takes back all memory that takeInts and takeFloats have given.
func (t *tabulator) reset() { t.ints, t.floats = t.ints[:0], t.floats[:0] }

// takeInts returns n zeros in memory of the tabulator, which stay until reset.
func (t *tabulator) takeInts(n int) []int32 {
	start := len(t.ints)
	t.ints = slices.Grow(t.ints, n)[:start+n]
	zeros := t.ints[start : start+n : start+n]
	clear(zeros)
	return zeros
}

// takeFloats returns n numbers of arbitrary value in memory of the tabulator, which stay until reset or releaseFloats.
func (t *tabulator) takeFloats(n int) []float64 {
	start := len(t.floats)
	t.floats = slices.Grow(t.floats, n)[:start+n]
	return t.floats[start : start+n : start+n]
}

// releaseFloats takes back the last n numbers that takeFloats has given.
func (t *tabulator) releaseFloats(n int) { t.floats = t.floats[:len(t.floats)-n] }

// sumOut multiplies the factors of bucket i and sums its variable out of the product. The factors are the variable's weights, clauses,
// tables, and messages: sums over earlier variables. The sums are the entries of the message m times 2^exponent; the largest entry of m is
// from 1 to 2. ok is false if all sums are 0, or if the factors span so many powers of two that digits may be lost (denseRange).
func (t *tabulator) sumOut(i int) (m message, exponent int64, ok bool) {
	// The product. The first variable of the scope, which is summed out, changes fastest.
	b := &t.buckets.list[i]
	table, valueCount, ok := t.multiplyFactors(i)
	if !ok {
		return message{}, 0, false
	}

	// The sums take the place of entries that were read already: sum k is at most at the first entry of its terms.
	size := len(table)
	m = message{scope: b.scope[1:], values: table[:size/valueCount]}
	for k := range m.values {
		sum := 0.0
		for _, x := range table[k*valueCount:][:valueCount] {
			sum += x
		}
		m.values[k] = sum
	}
	t.releaseFloats(size - len(m.values))
	exponent, ok = m.normalise()
	return m, exponent, ok
}

// multiplyFactors returns the product of all factors that have variable i and were not summed over before (bucket i): a table over the
// bucket's scope, in which variable i changes fastest. It also returns the number of values of that variable. ok is false if the numbers of
// the factors together may span more than denseRange powers of two.
func (t *tabulator) multiplyFactors(i int) (table []float64, valueCount int, ok bool) {
	b := &t.buckets.list[i]
	size := 1
	for _, j := range b.scope {
		size *= len(t.buckets.values[j])
	}
	table = t.takeFloats(size)
	weights, span := t.ownWeights(i) // span bounds the powers of two that the product's numbers span
	for k := range table {
		table[k] = weights[k%len(weights)]
	}
	for _, m := range b.messages {
		span += m.span
		t.multiply(table, t.messageOffsets(b.scope, m.scope), 0, m.values, 1) // index 0 at values 0, and no divisor
	}
	for _, slice := range b.tables {
		span += 2 * t.residual.tables[slice.table].span // once for the entry, once for its divisor, the factor of the slice
	}
	if span > denseRange {
		return nil, 0, false
	}
	t.multiplyTables(table, b)
	t.excludeAll(table, b)
	return table, len(weights), true
}

// normalise divides the entries of a message by 2^exponent, the power of two of the largest one, and sets its span. ok is false if all
// entries are 0.
func (m *message) normalise() (exponent int64, ok bool) {
	largest, smallest := 0.0, math.Inf(1)
	for _, x := range m.values {
		largest = max(largest, x)
		if x > 0 {
			smallest = min(smallest, x)
		}
	}
	if largest == 0 {
		return 0, false
	}
	power := math.Ilogb(largest)
	scale := math.Ldexp(1, -power)
	for k := range m.values {
		m.values[k] *= scale
	}
	m.span = float64(power-math.Ilogb(smallest)) + 1 // largest / smallest is below 2^span
	return int64(power), true
}

// ownWeights returns the weights of the open values of the variable of bucket i. span is |log2 smallest| + |log2 largest|, which bounds
// the exponents of all weights and of their quotients; it is +Inf if a weight is 0. It is also +Inf if a weight is beyond 2^±denseRange,
// the powers of two that factors may span: then weights are not all set.
func (t *tabulator) ownWeights(i int) (weights []float64, span float64) {
	p, values := t.residual.problem, t.buckets.values[i]
	weights = t.weights[:len(values)]
	low, high := math.Inf(1), 0.0
	for k, a := range values {
		w := p.weights[p.literalOf(t.buckets.vars[i], int(a))]
		if w.Exp > denseRange || w.Exp < -denseRange {
			return weights, math.Inf(1)
		}
		weights[k] = w.Float64()
		low, high = min(low, weights[k]), max(high, weights[k])
	}
	return weights, math.Abs(math.Log2(low)) + math.Abs(math.Log2(high))
}

// numbers returns the product of those factors of a bucket that are plain numbers when its sum is written to a circuit: tables, clauses,
// which are 0 or 1, and the numbers by which entries of messages multiply their nodes (m.factors). Nodes of the circuit are not in it. It
// is a table over the bucket's scope, of the given size.
func (t *tabulator) numbers(b *bucket, size int) []float64 {
	table := t.takeFloats(size)
	for k := range table {
		table[k] = 1
	}
	for _, m := range b.messages {
		t.multiply(table, t.messageOffsets(b.scope, m.scope), 0, m.factors, 1) // index 0 at values 0, and no divisor
	}
	t.multiplyTables(table, b)
	t.excludeAll(table, b)
	return table
}

// multiplyTables multiplies a table over the scope of bucket b by the formula's tables in the bucket, each divided by the factor of its
// slice.
func (t *tabulator) multiplyTables(table []float64, b *bucket) {
	for _, slice := range b.tables {
		offsets, base := t.tableOffsets(b.scope, t.residual.tables[slice.table])
		t.multiply(table, offsets, base, t.residual.problem.tables[slice.table].values, t.residual.sliceOf(slice).factor)
	}
}

// messageOffsets returns the offsets of the entries of a message, a table over the variables in part, by the axes of a table over scope:
// value x on an axis adds offsets[axis][x] to the index in the message. part is some of the variables in scope, in the same order, the
// first one fastest. On the axes of variables that are not in part all offsets are 0. The result is valid until the next call.
func (t *tabulator) messageOffsets(scope, part []int32) [][]int32 {
	offsets := t.offsets[:len(scope)]
	stride := int32(1) // of the first variable of part that is left
	for axis, j := range scope {
		offsets[axis] = t.takeInts(len(t.buckets.values[j])) // zeros
		if len(part) > 0 && part[0] == j {
			for x := range offsets[axis] {
				offsets[axis][x] = int32(x) * stride
			}
			stride *= int32(len(t.buckets.values[j]))
			part = part[1:]
		}
	}
	return offsets
}

// tableOffsets returns the offsets of a table of the formula by the axes of another table, over scope: value x on an axis adds
// offsets[axis][x] to the index in the formula's table. On axes of variables that this does not have, offsets are 0. base is the index by
// the values of its assigned variables. scope is in ascending order, and has all open variables of the formula's table. Value x of an axis
// is the variable's x-th open value. The result is valid until the next call.
func (t *tabulator) tableOffsets(scope []int32, st *sliceTable) (offsets [][]int32, base int32) {
	offsets = t.offsets[:len(scope)]
	for axis, j := range scope {
		offsets[axis] = t.takeInts(len(t.buckets.values[j]))
	}
	for i, v := range st.table.scope {
		if a := t.residual.valueOf(v); a >= 0 {
			base += a * st.strides[i]
			continue
		}
		j := t.buckets.number[v]
		axis, _ := slices.BinarySearch(scope, j)
		for x, a := range t.buckets.values[j] {
			offsets[axis][x] = a * st.strides[i]
		}
	}
	return offsets, base
}

// multiply multiplies each entry of a table by factor[base + Σ_j offsets[j][x_j]] / divisor, where x_j is the entry's value on axis j.
// The first axis is the fastest.
func (t *tabulator) multiply(table []float64, offsets [][]int32, base int32, factor []float64, divisor float64) {
	x := t.x[:len(offsets)] // by axis but the first: the present value, whose offset is in base
	clear(x)
	first := offsets[0]
	for j := 1; j < len(offsets); j++ {
		base += offsets[j][0]
	}
	for start := 0; start < len(table); start += len(first) {
		for k, offset := range first {
			table[start+k] *= factor[base+offset] / divisor
		}
		for j := 1; j < len(offsets); j++ { // the next combination of values
			base -= offsets[j][x[j]]
			if x[j]++; x[j] < len(offsets[j]) {
				base += offsets[j][x[j]]
				break
			}
			x[j] = 0
			base += offsets[j][0]
		}
	}
}

// excludeAll sets all entries of the bucket's table to 0 for which a clause of the bucket does not hold.
func (t *tabulator) excludeAll(table []float64, b *bucket) {
	for _, c := range b.pairs {
		t.exclude(table, b.scope, c[:])
	}
	for _, k := range b.clauses {
		t.exclude(table, b.scope, t.residual.clauses[k])
	}
}

// exclude sets those entries of a table, whose axes are the variables of scope, to 0 at which all literals of clause c are false. An axis
// whose variable is in no literal can have any value. The scope is in ascending order. The clause is not satisfied by the assignment.
func (t *tabulator) exclude(table []float64, scope []int32, c []lit) {
	// By axis: the set of values that make all literals about its variable false. Bit x stands for the x-th open value.
	var buffer [denseAxes]uint64
	falsify := buffer[:len(scope)]
	for axis, j := range scope {
		falsify[axis] = 1<<len(t.buckets.values[j]) - 1
	}
	p := t.residual.problem
	for _, l := range c {
		if t.residual.value[l] != 0 { // false under the assignment: it satisfies the clause nowhere
			continue
		}
		v := p.formulaVariable[l.Variable()]
		j := t.buckets.number[v]
		axis, _ := slices.BinarySearch(scope, j)
		for x, a := range t.buckets.values[j] {
			if p.isTrueAt(l, v, a) {
				falsify[axis] &^= 1 << x
			}
		}
	}
	t.clearCells(table, scope, falsify)
}

// clearCells sets entries of a table over a scope to 0: those whose value on every axis is in the set falsify[axis]. Bit x of a set
// stands for value x. The last axis is the slowest, so its values divide the table into equal parts.
func (t *tabulator) clearCells(table []float64, scope []int32, falsify []uint64) {
	last := len(scope) - 1
	if last < 0 {
		table[0] = 0
		return
	}
	size := len(table) / len(t.buckets.values[scope[last]])
	for x := range t.buckets.values[scope[last]] {
		if falsify[last]&(1<<x) != 0 {
			t.clearCells(table[x*size:][:size], scope[:last], falsify[:last])
		}
	}
}
