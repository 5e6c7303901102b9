package lower

// Chains of plain counters: symmetric tensors of wide layouts, every entry exactly.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// maxCounterEntries bounds the tables of one chain of plain counters.
const maxCounterEntries = 1 << 22

// addCounters writes Σ_i α_i S^(i) ∘ R^(i) as tables of 0 and 1 over (count before, leg, count
// after), one over (count, term) with the entries of S as they are, the weights α, and a matrix
// (term, leg) per leg with vectors. States are count vectors that the legs so far can have: nothing
// is divided, so every number is one of the tensor's.
func (l *layout) addCounters(
	what string, at int, legs, dims []int, levels countspace.Levels, terms []tensor.SymmetryRankOne,
) error {
	strides, box := countStrides(levels)
	tooLarge := func() error {
		return fault.New(fault.OverBudget,
			"%w: a plain chain of counters of %s %d over %d legs has more than %d entries",
			sumproduct.ErrOverBudget, what, at, len(dims), maxCounterEntries)
	}
	if box > maxCounts/(len(dims)+1) {
		return tooLarge()
	}

	counts := reachable(levels, strides, box)
	entries := 0

	for k, d := range dims {
		size := len(counts[k]) * len(counts[k+1])
		if size > maxCounterEntries/d {
			return tooLarge()
		}
		if entries += size * d; entries > maxCounterEntries {
			return tooLarge()
		}
	}

	term := l.node(len(terms))
	before := -1
	for k, leg := range legs {
		after := l.node(len(counts[k+1]))
		if len(terms) == 1 {
			l.counters = append(l.counters, after)
		}
		step := raw{
			dims: []int{len(counts[k]), dims[k], len(counts[k+1])},
			data: make([]float64, len(counts[k])*dims[k]*len(counts[k+1])),
		}

		for i, c := range counts[k] {
			for x, a := range levels.Of[k] {
				j, _ := slices.BinarySearch(counts[k+1], c+strides[a])
				step.data[(i*dims[k]+x)*len(counts[k+1])+j] = 1
			}
		}

		nodes := []int{before, leg, after}
		if k == 0 { // one count and no index before the first leg
			nodes = nodes[1:]
			step.dims = step.dims[1:]
		}

		l.table(nodes, step)
		if m := termMatrix(terms, k, dims[k]); m != nil {
			l.table([]int{term, leg}, raw{dims: []int{len(terms), dims[k]}, data: m})
		}

		before = after
	}
	l.addFinal(before, term, counts[len(legs)], terms)
	return nil
}

// addFinal adds S^(i) over (count, term), and α.
func (l *layout) addFinal(counter, term int, counts []int, terms []tensor.SymmetryRankOne) {
	final := raw{dims: []int{len(counts), len(terms)}}
	for _, c := range counts {
		for _, t := range terms {
			s := t.S.At(c)
			final.data = append(final.data, s.Mant)
			final.exp = append(final.exp, s.Exp)
		}
	}

	nodes := []int{counter, term}
	if counter < 0 {
		nodes = nodes[1:]
		final.dims = final.dims[1:]
	}
	l.table(nodes, final)

	alpha := make([]float64, len(terms))
	for i, t := range terms {
		alpha[i] = t.Alpha
	}
	l.table([]int{term}, raw{dims: []int{len(terms)}, data: alpha})
}
