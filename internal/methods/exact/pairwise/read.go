package pairwise

// Marginals from a table and its adjoint.

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// marginals has the sums of all marginals over slices, and the memory to read them.
type marginals struct {
	total    [][]scaled.Number // [i][v]: Σ of the terms of Z with index i at value v
	odometer odometer          // over the blocks; a block has all entries of a run
	run      [2][]int          // offsets of the run in the table and its adjoint
	terms    []float64         // by place in the run: sum over the blocks
	sums     [][]float64       // by index read and its value: sum of the terms of the table
}

// readMarginals adds Σ T·adj(T) over all other indices, for the values of every index that is read at table T = o.a. If T is a leaf, it
// takes the entries of the expression with the lone indices, which the adjoint does not depend on. Time: 3 flops per entry.
func (r *run) readMarginals(o *op) {
	m := &r.marginals
	s := r.shape
	t := &r.buffers[o.a]
	table, l := t.data, s.layouts[o.a]
	factor := r.buffers[o.b].scale
	if o.a < s.leaves {
		t = &r.inputs[o.a]
		table, l = t.data[r.sliceOffset(o.a):], s.storedLayout(o.a)
		if !r.factors[o.a].IsZero() {
			factor = factor.Div(r.factors[o.a])
		}
	}

	if _, loses := r.productDepth(t, &r.buffers[o.b]); loses {
		r.stats.Lost = r.stats.Lost || !r.areNegligible(o.a, float64(len(t.data)), factor)
	}

	adjoint, adjointLayout := r.buffers[o.b].data, s.layouts[o.b]
	axes := make([]axis, len(l.index))
	for i, v := range l.index {
		axes[i] = axis{index: v, dim: s.dims[v], stride: [3]int{l.stride[i], adjointLayout.strideOf(v), 0}}
	}
	start := suffixStart(axes, maxRun)
	outer, run := axes[:start], axes[start:]

	read := r.reads[o.a]
	outerAxis := m.prepareSums(s, read, outer)
	entries := m.addTerms(table, adjoint, outer, run, outerAxis)
	r.stats.Flops += 3 * entries

	for i, v := range read {
		if outerAxis[i] < 0 {
			m.sumRun(i, v, run)
		}
		for x, sum := range m.sums[i] {
			m.total[v][x] = m.total[v][x].Add(factor.Mul(scaled.FromFloat(sum)))
		}
	}
}

// addTerms goes through the products of a table's and its adjoint's entries. It sets terms to their sums over the blocks, and adds the
// sum of each block to the sums of the indices that are outer axes. outerAxis is that of prepareSums. It returns the number of entries.
func (m *marginals) addTerms(table, adjoint []float64, outer, run []axis, outerAxis []int) (entries float64) {
	for i := range 2 {
		m.run[i] = offsets(m.run[i], run, i)
	}
	n, blocks := len(m.run[0]), count(outer)
	m.terms = resize(m.terms, n)
	clear(m.terms)
	m.odometer.seek(outer, 0)
	for range blocks {
		sum := addProducts(m.terms, table[m.odometer.offsets[0]:], adjoint[m.odometer.offsets[1]:], m.run[0], m.run[1])
		for i, p := range outerAxis {
			if p >= 0 {
				m.sums[i][m.odometer.values[p]] += sum
			}
		}
		m.odometer.next()
	}
	return float64(n) * float64(blocks)
}

// addProducts adds the products of a run to terms, and returns their sum.
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

// prepareSums clears the sums of the indices read. It returns, for each of them, which of the outer axes it is, or −1 if it is in the run.
func (m *marginals) prepareSums(s *shape, read []int, outer []axis) (outerAxis []int) {
	outerAxis = make([]int, len(read))
	for i, v := range read {
		if i == len(m.sums) {
			m.sums = append(m.sums, nil)
		}
		m.sums[i] = resize(m.sums[i], s.dims[v])
		clear(m.sums[i])
		outerAxis[i] = -1
		for p := range outer {
			if outer[p].index == v {
				outerAxis[i] = p
			}
		}
	}
	return outerAxis
}

// sumRun adds the terms of the run to sums[i], by the value of index v.
func (m *marginals) sumRun(i, v int, run []axis) {
	inner := 1 // entries of the axes after that of v
	for p := len(run) - 1; run[p].index != v; p-- {
		inner *= run[p].dim
	}
	sums := m.sums[i]
	for j, t := range m.terms {
		sums[j/inner%len(sums)] += t
	}
}
