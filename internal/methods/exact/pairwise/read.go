package pairwise

// Marginals from a table and its adjoint.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// marginals has the sums of all marginals over slices, and the memory to read them.
type marginals struct {
	total      [][]scaled.Number // [i][v]: Σ of the terms of Z with index i at value v
	odometer   odometer          // over the blocks; a block has all entries of a run
	runOffsets [2][]int          // offsets of the entries of a run in the table and in its adjoint
	terms      []float64         // by position in the run: sum of the terms over the blocks
	sums       [][]float64       // by index that is read, and its value: sum of the terms of the table
}

// readMarginals adds the marginals of some indices of a table T (buffer o.a) to the totals. These are the indices r.reads[o.a]. The
// marginal of a value of an index is the sum of the entries of T·adj(T) that have the value; adj(T) is the adjoint of T (buffer o.b). If T
// is a leaf, its buffer has no lone indices, which no other table has: their marginals need the entries of the table in the expression
// (r.inputs). adj(T) does not depend on lone indices. Time: 3 flops per entry, a product and two additions.
func (r *run) readMarginals(o *op) {
	m := &r.marginals
	s := r.shape
	table, tableLayout, factor := r.tableToRead(o)

	// Loops over blocks and over the run of a block, in the sequence of the table.
	adjoint, adjointLayout := r.buffers[o.b].data, s.layouts[o.b]
	axes := make([]axis, len(tableLayout.index))
	for i, v := range tableLayout.index {
		axes[i] = axis{index: v, dim: s.dims[v], stride: [3]int{tableLayout.stride[i], adjointLayout.strideOf(v), 0}}
	}
	start := suffixStart(axes, maxRun)
	outer, run := axes[:start], axes[start:]

	// m.sums[i][x] is the sum for value x of index read[i]. addTerms adds to it if the index is outer axis outerAxis[i]. If the index is in
	// the run (outerAxis[i] = −1), sumRun does, from the sums over all blocks that addTerms leaves in m.terms.
	read := r.reads[o.a]
	outerAxis := m.prepareSums(s, read, outer)
	entries := m.addTerms(table, adjoint, outer, run, outerAxis)
	r.stats.Flops += 3 * entries
	for i, v := range read {
		if isInRun := outerAxis[i] < 0; isInRun {
			m.sumRun(i, v, run)
		}
		for x, sum := range m.sums[i] {
			m.total[v][x] = m.total[v][x].Add(factor.Mul(scaled.FromFloat(sum)))
		}
	}
}

// tableToRead returns the entries of the table T of readMarginals, number o.a, with their layout, and the factor by which their products
// with the entries of adj(T) = ∂Z/∂T, buffer o.b, are terms of Z. If a product may be too small for a float64, and the loss is not
// negligible, it sets stats.Lost.
func (r *run) tableToRead(o *op) (table []float64, tableLayout layout, factor scaled.Number) {
	s := r.shape
	t := &r.buffers[o.a]
	table, tableLayout = t.data, s.layouts[o.a]
	factor = r.buffers[o.b].scale
	if isLeaf := o.a < s.leaves; isLeaf {
		t = &r.inputs[o.a]
		table, tableLayout = t.data[r.sliceOffset(o.a):], s.storedLayout(o.a)
		if wasDivided := !r.factors[o.a].IsZero(); wasDivided { // adj(T) is that of T divided by the factor
			factor = factor.Div(r.factors[o.a])
		}
	}
	if _, loses := r.productDepth(t, &r.buffers[o.b]); loses {
		r.stats.Lost = r.stats.Lost || !r.areNegligible(o.a, float64(len(t.data)), factor)
	}
	return table, tableLayout, factor
}

// addTerms goes through the terms, the products of an entry of a table and one of its adjoint, block by block. It sets m.terms to their
// sums over the blocks, by position in the run. It adds the sum of each block to the sums of those indices i that are outer axes,
// outerAxis[i] ≥ 0. It returns the number of entries.
func (m *marginals) addTerms(table, adjoint []float64, outer, run []axis, outerAxis []int) (entries float64) {
	for i := range 2 {
		m.runOffsets[i] = offsets(m.runOffsets[i], run, i)
	}
	n, blocks := len(m.runOffsets[0]), count(outer)
	m.terms = resize(m.terms, n)
	clear(m.terms)
	m.odometer.seek(outer, 0)
	for range blocks {
		sum := addProducts(m.terms, table[m.odometer.offsets[0]:], adjoint[m.odometer.offsets[1]:], m.runOffsets[0], m.runOffsets[1])
		for i, axis := range outerAxis {
			if axis >= 0 {
				m.sums[i][m.odometer.values[axis]] += sum
			}
		}
		m.odometer.next()
	}
	return float64(n) * float64(blocks)
}

// addProducts adds a[offsetsA[j]] · b[offsetsB[j]] to terms[j] for all j, and returns the sum of these products.
func addProducts(terms, a, b []float64, offsetsA, offsetsB []int) float64 {
	offsetsA, offsetsB = offsetsA[:len(terms)], offsetsB[:len(terms)]
	sum := 0.0
	for j := range terms {
		p := a[offsetsA[j]] * b[offsetsB[j]]
		terms[j] += p
		sum += p
	}
	return sum
}

// prepareSums sets the sums of the indices in read to 0, one for each value. It returns for each of these indices its position among the
// outer axes, or −1 if it is not among them, but in the run.
func (m *marginals) prepareSums(s *shape, read []int, outer []axis) (outerAxis []int) {
	outerAxis = make([]int, len(read))
	for i, v := range read {
		if i == len(m.sums) {
			m.sums = append(m.sums, nil)
		}
		m.sums[i] = resize(m.sums[i], s.dims[v])
		clear(m.sums[i])
		outerAxis[i] = slices.IndexFunc(outer, func(a axis) bool { return a.index == v })
	}
	return outerAxis
}

// sumRun adds the terms of the run to m.sums[i], by the value of index v, which is one of the axes of the run.
func (m *marginals) sumRun(i, v int, run []axis) {
	stride := 1 // of index v in the run
	for p := len(run) - 1; run[p].index != v; p-- {
		stride *= run[p].dim
	}
	sums := m.sums[i]
	for j, term := range m.terms {
		value := j / stride % len(sums)
		sums[value] += term
	}
}
