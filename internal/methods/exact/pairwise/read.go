package pairwise

// Marginals from a table and its adjoint.

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// marginals are sums over slices: at[i][v] is Σ of the terms of Z with index i at value v.
type marginals struct {
	at    [][]scaled.Number
	odo   odometer    // over the blocks
	off   [2][]int    // offsets of the run in the table and its adjoint
	terms []float64   // by place in the run: sum over the blocks
	sums  [][]float64 // by index wanted
}

// read adds Σ_rest T·adj(T) for the values of every index that is read at table o.a. Of a tensor of
// the network it takes the entries as they are, the indices included that only it has. Time: 3
// flops per entry.
func (r *run) read(o *op) {
	m := &r.marginal
	s := r.shape
	table, l := r.buffers[o.a].data, s.layouts[o.a]
	factor := r.buffers[o.b].scale
	if o.a < s.leaves {
		table, l = r.raw[o.a].data[r.base(o.a):], s.rawLayout(o.a)
		if !r.factors[o.a].IsZero() {
			factor = factor.Div(r.factors[o.a])
		}
	}

	t := &r.buffers[o.a]
	if o.a < s.leaves {
		t = &r.raw[o.a]
	}

	if _, loses := r.descend(t, &r.buffers[o.b]); loses {
		r.stats.Lost = r.stats.Lost || !r.spares(o.a, float64(len(t.data)), factor)
	}

	adjoint, other := r.buffers[o.b].data, s.layouts[o.b]
	axes := make([]axis, len(l.index))
	for i, v := range l.index {
		axes[i] = axis{index: v, dim: s.dims[v], stride: [3]int{l.stride[i], other.strideOf(v), 0}}
	}

	at := tail(axes, maxRun)
	outer, run := axes[:at], axes[at:]
	for i := range 2 {
		m.off[i] = offsets(m.off[i], run, i)
	}

	n, blocks := len(m.off[0]), count(outer)
	r.stats.Flops += 3 * float64(n) * float64(blocks)
	m.terms = room(m.terms, n)
	clear(m.terms)

	wanted := r.reads[o.a]
	place := m.prepare(s, wanted, outer)
	m.odo.seek(outer, 0)
	for range blocks {
		sum := products(m.terms, table[m.odo.off[0]:], adjoint[m.odo.off[1]:], m.off[0], m.off[1])
		for i, p := range place {
			if p >= 0 {
				m.sums[i][m.odo.at[p]] += sum
			}
		}
		m.odo.next()
	}

	for i, v := range wanted {
		if place[i] < 0 {
			m.fold(i, v, run)
		}
		for x, sum := range m.sums[i] {
			m.at[v][x] = m.at[v][x].Add(factor.Mul(scaled.FromFloat(sum)))
		}
	}
}

// products adds the products of a run to terms, and returns their sum.
func products(terms, a, b []float64, atA, atB []int) float64 {
	atA, atB = atA[:len(terms)], atB[:len(terms)]
	sum := 0.0
	for j := range terms {
		p := a[atA[j]] * b[atB[j]]
		terms[j] += p
		sum += p
	}
	return sum
}

// prepare clears the sums,
// and says which of the outer axes a wanted index is, −1 for one of the run.
func (m *marginals) prepare(s *shape, wanted []int, outer []axis) []int {
	place := make([]int, len(wanted))
	for i, v := range wanted {
		if i == len(m.sums) {
			m.sums = append(m.sums, nil)
		}
		m.sums[i] = room(m.sums[i], s.dims[v])
		clear(m.sums[i])
		place[i] = -1
		for p := range outer {
			if outer[p].index == v {
				place[i] = p
			}
		}
	}
	return place
}

// fold adds up the terms of the run by the value of index v.
func (m *marginals) fold(i, v int, run []axis) {
	inner := 1
	for p := len(run) - 1; run[p].index != v; p-- {
		inner *= run[p].dim
	}
	sums := m.sums[i]
	for j, t := range m.terms {
		sums[j/inner%len(sums)] += t
	}
}
