package lower

// Chains of plain counters: symmetric tensors of wide layouts, every entry exactly.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// maxCounterEntries is the limit of the entries of one chain of plain counters.
const maxCounterEntries = 1 << 22

// addPlainChain adds s as tables: per leg one of 0 and 1 over (count before, leg, count after) and, if the leg has vectors, a matrix (term,
// leg); then one over (count, term) with the entries of S, and one with the weights α. Every count vector that the legs so far can have is
// a state. Nothing is divided, so every number is one of the tensor's. The error is ErrOverBudget if the tables would be too large.
func (l *layout) addPlainChain(s *symmetricSum) error {
	strides, boxSize := countStrides(s.levels)
	if boxSize > maxCounts/(len(s.dims)+1) {
		return s.plainChainTooLarge()
	}
	counts := reachableCounts(s.levels, strides, boxSize)
	entries := 0
	for k, d := range s.dims {
		size := len(counts[k]) * len(counts[k+1])
		if size > maxCounterEntries/d {
			return s.plainChainTooLarge()
		}
		if entries += size * d; entries > maxCounterEntries {
			return s.plainChainTooLarge()
		}
	}

	term := l.addNode(len(s.terms))
	before := -1 // the counter before the leg; there is none before the first
	for k, leg := range s.legs {
		after := l.addNode(len(counts[k+1]))
		if len(s.terms) == 1 {
			l.counterNodes = append(l.counterNodes, after)
		}
		step := plainStep(s.levels.Of[k], strides, counts[k], counts[k+1])
		nodes := []int{before, leg, after}
		if k == 0 { // before the first leg there is one count and no counter
			nodes = nodes[1:]
			step.dims = step.dims[1:]
		}
		l.addTable(nodes, step)
		l.addTermMatrix(s, k, term)

		before = after
	}
	l.addExactFinal(s, counts[len(s.legs)], before, term)
	return nil
}

// plainChainTooLarge returns the error for a chain of plain counters beyond maxCounterEntries.
func (s *symmetricSum) plainChainTooLarge() error {
	return fault.New(fault.OverBudget,
		"%w: a plain chain of counters of %s %d over %d legs has more than %d entries",
		sumproduct.ErrOverBudget, s.kind, s.position, len(s.dims), maxCounterEntries)
}

// plainStep returns the table over (count before, value of a leg, count after) that is 1 if the value's level leads from the one count to
// the other, else 0. before and after list the count vectors, ascending.
func plainStep(levelOf []uint8, strides, before, after []int) rawTable {
	dim := len(levelOf)
	step := rawTable{
		dims: []int{len(before), dim, len(after)},
		data: make([]float64, len(before)*dim*len(after)),
	}
	for i, c := range before {
		for x, level := range levelOf {
			j, _ := slices.BinarySearch(after, c+strides[level])
			step.data[(i*dim+x)*len(after)+j] = 1
		}
	}
	return step
}

// addExactFinal adds two tables: S^(i) over (count, term) with exponents, and α_i over term. counts lists the count vectors that all legs
// can have.
func (l *layout) addExactFinal(s *symmetricSum, counts []int, counter, term int) {
	final := rawTable{dims: []int{len(counts), len(s.terms)}}
	for _, c := range counts {
		for _, t := range s.terms {
			value := t.S.At(c)
			final.data = append(final.data, value.Mant)
			final.exp = append(final.exp, value.Exp)
		}
	}
	l.addFinalTable(s, final, counter, term)

	alpha := make([]float64, len(s.terms))
	for i, t := range s.terms {
		alpha[i] = t.Alpha
	}
	l.addTable([]int{term}, rawTable{dims: []int{len(s.terms)}, data: alpha})
}
