package lower

// Chains of plain counters: symmetric tensors of wide layouts, every entry exactly.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// maxCounterEntries is the limit of the entries of one chain of plain counters.
const maxCounterEntries = 1 << 22

// addPlainChain adds a symmetric tensor s = Σ_term α·S(count)·Π vectors as a chain of counters whose tables have the numbers of s as they
// are. A count is a count vector (the number of legs at each level) that the legs so far can have. There is one table of 0 and 1 per leg,
// over (count before, leg, count after), and a matrix over (term, leg) if the leg has vectors. Then there is one table over (count, term)
// with the entries of S, and one over term with the weights α. The error is ErrOverBudget if the tables would be too large.
func (l *layout) addPlainChain(s *symmetricSum) error {
	strides, boxSize := levelStrides(s.levels)
	if boxSize > maxCounts/(len(s.dims)+1) {
		return s.plainChainTooLarge()
	}
	counts := reachableCounts(s.levels, strides, boxSize) // by number of legs: the count vectors
	if !fitsPlainChain(s.dims, counts) {
		return s.plainChainTooLarge()
	}

	term := l.addNode(len(s.terms))
	before := -1 // node of the counter before the leg; there is none before the first
	for k, leg := range s.legs {
		after := l.addNode(len(counts[k+1]))
		if len(s.terms) == 1 { // only then the variables decide the count
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

// fitsPlainChain reports whether the tables of the legs have at most maxCounterEntries entries together. The table of leg k has one for
// each count vector before the leg (counts[k]), value of the leg and count vector after it (counts[k+1]).
func fitsPlainChain(dims []int, counts [][]int) bool {
	entries := 0
	for k, d := range dims {
		countPairs := len(counts[k]) * len(counts[k+1])
		if countPairs > maxCounterEntries/d { // this table alone is too large; the product below cannot overflow
			return false
		}
		entries += countPairs * d
		if entries > maxCounterEntries {
			return false
		}
	}
	return true
}

// plainChainTooLarge returns the error that the tables of s as a chain of plain counters have more than maxCounterEntries entries.
func (s *symmetricSum) plainChainTooLarge() error {
	return fault.New(fault.OverBudget,
		"%w: a plain chain of counters of %s %d over %d legs has more than %d entries",
		sumproduct.ErrOverBudget, s.kind, s.position, len(s.dims), maxCounterEntries)
}

// plainStep returns the table over (count before, value of a leg, count after). Its entry is 1 if the count vector before the leg, with one
// more leg at the value's level, is the count vector after it; otherwise 0. before and after list the count vectors as numbers, ascending.
// A leg at a level raises the number by strides[level]. after has every number that arises from before in this way (reachableCounts).
func plainStep(levelOf []uint8, strides, before, after []int) rawTable {
	dim := len(levelOf)
	step := rawTable{
		dims: []int{len(before), dim, len(after)},
		data: make([]float64, len(before)*dim*len(after)),
	}
	for i, count := range before {
		for x, level := range levelOf {
			j, _ := slices.BinarySearch(after, count+strides[level]) // it is always found
			step.data[(i*dim+x)*len(after)+j] = 1
		}
	}
	return step
}

// addExactFinal adds the last two tables of a plain chain: the entries of S over the nodes counter and term, and the weights α over term.
// Each entry of S is written as final.data·2^final.exp, so that none is lost. counts lists the count vectors that all legs together can
// have, the values of the node counter.
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
