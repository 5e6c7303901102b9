package lower

// Chains of counters: symmetric tensors as layered automata.

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	maxCounts       = 1 << 24 // limit of count vectors times legs from which a chain is derived
	maxChainEntries = 1 << 27 // limit of the entries of the tables of one chain: 1 GiB
)

// symmetricSum is a symmetric or symmetry-CP tensor of the network: Σ_i α_i S^(i) ∘ R^(i) over its terms. S^(i) depends only on the count
// vector, which has, for each level above 0, the number of legs at that level. R^(i) is a product of a vector per leg. Count vectors are
// numbered as in countspace: the box of all count vectors in row-major sequence, 0 for the count of no legs.
type symmetricSum struct {
	kind     string // "core" or "link", for error texts
	position int    // its number among the cores or links, for error texts
	legs     []int  // nodes of the layout
	dims     []int  // by leg
	levels   countspace.Levels
	terms    []tensor.SymmetryRankOne // at least one
}

// hasVectors reports whether some term has a vector on leg k. A term without one has ones there.
func (s *symmetricSum) hasVectors(k int) bool {
	return slices.ContainsFunc(s.terms, func(t tensor.SymmetryRankOne) bool { return t.R != nil && t.R[k] != nil })
}

// termMatrix returns the vectors of all terms on leg k, as a matrix over (term, value of the leg). It returns nil if all of them are ones.
func (s *symmetricSum) termMatrix(k int) []float64 {
	if !s.hasVectors(k) {
		return nil
	}
	matrix := make([]float64, 0, len(s.terms)*s.dims[k])
	for _, t := range s.terms {
		if t.R != nil && t.R[k] != nil {
			matrix = append(matrix, t.R[k]...)
			continue
		}
		for range s.dims[k] {
			matrix = append(matrix, 1)
		}
	}
	return matrix
}

// state is a state of a chain before one of its legs, or after the last one. It stands for count vectors from which the remaining legs lead
// to the same values of S, up to a factor, the gain of a count vector.
type state struct {
	nextState   []int     // by level of the leg: the state after the leg; −1 if S is 0 from there on. nil after the last leg
	stepWeight  []float64 // by level of the leg: factor of the step, relative to the gain; the largest is ±1
	finalValues []float64 // after the last leg, by term: α_i S^(i), relative to the gain
	// isUnfit: a weight or a final value is not 0 and too small for float64. ±tiny stands for it.
	isUnfit bool
}

// tiny stands for values that are not 0 and too small for float64, so that the zeros of a table stay right.
const tiny = 0x1p-1000

// countState is the state of one count vector: the values of S that the remaining legs lead to are gain times those of the state. If the
// state is −1, they are 0.
type countState struct {
	state int
	gain  scaled.Number
}

// addChain adds a symmetric tensor s as a chain of counters: one table per leg over (counter before, leg, counter after), and a last one
// over (counter, term). A counter is a hidden index whose values are the states of the chain between two legs. If s has several terms, it
// adds a matrix (term, leg) for every leg with vectors, too; a single term's vectors are multiplied into the tables of the legs.
//
// The tensor maps every value of a leg to a level, and its entry depends only on the count vector, the number of legs at each level. S is
// the list of the entries by count vector. They are spread over the chain as factors near 1, so that S may span any range. If float64 does
// not hold all factors, addChain sets l.unfit; if S is 0, it sets l.isZero and adds no table.
func (l *layout) addChain(s *symmetricSum) error {
	layers, start, err := s.deriveStates()
	if err != nil {
		return fmt.Errorf("%s %d: %w", s.kind, s.position, err)
	}

	// A node is an index of the layout. counters[k] is the node of the counter before leg k; before leg 0 there is none.
	counters := make([]int, len(s.legs)+1)
	for k := range s.legs {
		counters[k+1] = l.addNode(len(layers[k+1]))
	}
	if len(s.terms) == 1 { // only then the values of the legs decide the states
		l.counterNodes = append(l.counterNodes, counters[1:]...)
	}
	term := l.addNode(len(s.terms))

	if start.state < 0 { // S is 0
		l.isZero = true
		return nil
	}
	l.scale = l.scale.Mul(start.gain) // the entries of the chain are those of S, divided by this gain

	// The tables of the legs, and the last one.
	for k, leg := range s.legs {
		step := l.chainStep(s, k, layers[k], len(layers[k+1]))
		nodes := []int{counters[k], leg, counters[k+1]}
		if k == 0 { // before the first leg there is one state and no counter
			nodes = nodes[1:]
			step.dims = step.dims[1:]
		}
		l.addTable(nodes, step)
		if len(s.terms) > 1 {
			l.addTermMatrix(s, k, term)
		}
	}

	if hasUnfitState(layers) {
		l.unfit = fmt.Sprintf("values of %s %d are further apart than float64 holds", s.kind, s.position)
	}
	l.addFinalTable(s, finalTable(layers[len(s.legs)], len(s.terms)), counters[len(s.legs)], term)
	return nil
}

// finalTable returns the table over (state, term) with the values of S, for the states after the last leg.
func finalTable(states []state, termCount int) rawTable {
	final := rawTable{dims: []int{len(states), termCount}, rounded: true}
	for _, state := range states {
		final.data = append(final.data, state.finalValues...)
	}
	return final
}

// addTermMatrix adds the vectors of all terms of s on leg k as a table over (term, leg), unless all of them are ones.
func (l *layout) addTermMatrix(s *symmetricSum, k, term int) {
	if matrix := s.termMatrix(k); matrix != nil {
		l.addTable([]int{term, s.legs[k]}, rawTable{dims: []int{len(s.terms), s.dims[k]}, data: matrix})
	}
}

// addFinalTable adds the table final over the nodes counter and term. A tensor without legs has no counter: its table is over term only.
func (l *layout) addFinalTable(s *symmetricSum, final rawTable, counter, term int) {
	nodes := []int{counter, term}
	if len(s.legs) == 0 {
		nodes = nodes[1:]
		final.dims = final.dims[1:]
	}
	l.addTable(nodes, final)
}

// hasUnfitState reports whether some state is unfit: a value of it is too small for float64. layers has the states before every leg and
// after the last.
func hasUnfitState(layers [][]state) bool {
	for _, layer := range layers {
		for _, s := range layer {
			if s.isUnfit {
				return true
			}
		}
	}
	return false
}

// chainStep returns the table of leg k of a chain, over (state before, value, state after). A value x has a level, which leads from state i
// to one state j with a weight. The vector v of a single term is multiplied in:
//
//	data[i, x, j] = weight_i(level of x) · v[x]   if the level leads from state i to state j, else 0
//
// layer has the states before the leg, and afterCount is the number of states after it.
func (l *layout) chainStep(s *symmetricSum, k int, layer []state, afterCount int) rawTable {
	levelOf := s.levels.Of[k]
	dim := len(levelOf)
	table := rawTable{
		dims:    []int{len(layer), dim, afterCount},
		data:    make([]float64, len(layer)*dim*afterCount),
		rounded: true,
	}

	var vector []float64
	if len(s.terms) == 1 && s.terms[0].R != nil {
		vector = s.terms[0].R[k]
	}

	for i, before := range layer {
		for x, level := range levelOf {
			j := before.nextState[level]
			if j < 0 { // S is 0 from there on
				continue
			}
			weight := before.stepWeight[level]
			if vector != nil {
				if vector[x] == 0 {
					continue
				}
				weight = l.multiplyOrUnfit(weight, vector[x])
			}
			table.data[(i*dim+x)*afterCount+j] = weight
		}
	}
	return table
}

// multiplyOrUnfit returns a · b for a and b that are not 0. If the product is infinite, or so small that it would lose digits, it marks
// the layout as unfit and returns ±tiny (2^−1000) in place of the product, so that no new zero arises.
func (l *layout) multiplyOrUnfit(a, b float64) float64 {
	product := a * b
	maxExponent, minExponent, _ := floats.Extent([]float64{a, b})
	isTooSmall := minExponent+maxExponent < floats.Lowest // the exponent of the product is this sum, or one more
	isInfiniteOrNaN := product-product != 0
	if isTooSmall || isInfiniteOrNaN {
		l.unfit = fmt.Sprintf("entries of a symmetric tensor are beyond float64: %g times %g", a, b)
		return math.Copysign(tiny, a) * math.Copysign(1, b)
	}
	return product
}

// deriveStates derives the states of the chain of s layer by layer, from the last leg to the first. layers[k] has the states after k legs,
// and start is the state before the first leg. A count vector tells how many legs are at each level; it is written as a number below
// boxSize. The error is ErrOverBudget if there are too many count vectors or the tables would be too large. Time and memory: count vectors
// × legs × levels.
func (s *symmetricSum) deriveStates() (layers [][]state, start countState, err error) {
	strides, boxSize := levelStrides(s.levels)
	legs := len(s.dims)

	if boxSize > maxCounts/(legs+1) {
		return nil, countState{}, fault.New(fault.OverBudget,
			"%w: a symmetric tensor over %d legs with %d count vectors is too large for a "+
				"chain of counters", sumproduct.ErrOverBudget, legs, boxSize)
	}

	counts := reachableCounts(s.levels, strides, boxSize)
	layers = make([][]state, legs+1)
	following := make([]countState, boxSize) // by count vector after leg k: its state
	entries := 0
	for k := legs; k >= 0; k-- {
		layers[k], following = s.layerStates(k, counts[k], strides, following) // following becomes the one before leg k
		if k == legs {                                                         // no leg follows, and so no table
			continue
		}
		statePairs := len(layers[k]) * len(layers[k+1]) // entries of the table of leg k, per value
		if statePairs > maxChainEntries/s.dims[k] || entries+statePairs*s.dims[k] > maxChainEntries {
			return nil, countState{}, fault.New(fault.OverBudget,
				"%w: the chain of counters of a symmetric tensor over %d legs needs more "+
					"than %d bytes", sumproduct.ErrOverBudget, legs, 8*maxChainEntries)
		}
		entries += statePairs * s.dims[k]
	}
	return layers, following[0], nil // 0 is the count vector of no legs
}

// layerStates finds the states of a symmetric sum S before leg k, or after all legs if k is their number. counts are the count vectors
// that the first k legs can have. Two count vectors have one state if, up to a factor, the remaining legs lead from both to the same
// values of S. following has, by count vector, the state after leg k. It returns the states, and by count vector its state (−1 if S is 0
// whatever the remaining legs are) and its gain, the factor.
func (s *symmetricSum) layerStates(k int, counts, strides []int, following []countState) ([]state, []countState) {
	var states []state
	byCount := make([]countState, len(following))
	stateOf := map[string]int{} // by key: the position in states
	for _, c := range counts {
		var candidate state
		var gain scaled.Number
		if k == len(s.dims) {
			candidate, gain = s.finalState(c)
		} else {
			candidate, gain = s.innerState(k, c, strides, following)
		}

		if gain.IsZero() { // S is 0 whatever the remaining legs are
			byCount[c] = countState{state: -1}
			continue
		}

		key := candidate.key() // equal for equal states
		i, isKnown := stateOf[key]
		if isKnown {
			states[i].isUnfit = states[i].isUnfit || candidate.isUnfit
		} else {
			i = len(states)
			stateOf[key] = i
			states = append(states, candidate)
		}
		byCount[c] = countState{i, gain}
	}
	return states, byCount
}

// levelStrides returns for each level by how much a leg at that level raises the number of a count vector, 0 for level 0. Count vectors are
// numbered in row-major sequence; boxSize is how many there are.
func levelStrides(levels countspace.Levels) (strides []int, boxSize int) {
	shape := levels.Shape()
	strides = make([]int, len(shape)+1)
	boxSize = 1
	for a := len(shape) - 1; a >= 0; a-- {
		strides[a+1] = boxSize
		boxSize *= shape[a]
	}
	return strides, boxSize
}

// reachableCounts returns, for k from 0 to the number of legs, the count vectors that the first k legs can have, ascending. A count vector
// has the number of legs at each level; levels.Of[k][x] is the level of leg k at value x. A count vector is written as one number below
// boxSize: every leg at a level raises the number by strides[level].
func reachableCounts(levels countspace.Levels, strides []int, boxSize int) [][]int {
	counts := [][]int{{0}}
	lastLayer := make([]int, boxSize) // by count vector: the last k for which it was listed, 0 for none
	for k, levelOf := range levels.Of {
		var nextCounts []int
		for _, count := range counts[k] {
			for _, level := range levelOf {
				nextCount := count + strides[level]
				if lastLayer[nextCount] != k+1 {
					lastLayer[nextCount] = k + 1
					nextCounts = append(nextCounts, nextCount)
				}
			}
		}
		slices.Sort(nextCounts)
		counts = append(counts, nextCounts)
	}
	return counts
}

// finalState returns the state of count vector c after the last leg, and its gain: the value of the terms α·S at c whose absolute value is
// the largest. A count vector tells how many legs are at each level; here it is written as one number. The state has these values divided
// by the gain. The gain is 0 if all terms are 0 at c.
func (s *symmetricSum) finalState(c int) (final state, gain scaled.Number) {
	values := make([]scaled.Number, len(s.terms))
	for i, t := range s.terms {
		values[i] = t.S.At(c).Mul(scaled.FromFloat(t.Alpha))
	}
	gain = largestValue(values)
	quotients, fits := quotientsBy(values, gain)
	return state{finalValues: quotients, isUnfit: !fits}, gain
}

// innerState returns the state of count vector c before leg k, and its gain. following has, by count vector, the state after leg k, and
// the gain of that state. At each level of leg k, c leads to one of these. The state of c has, by level, the number of the following state
// (nextState, −1 if S is 0 from there on), and a weight (stepWeight): the gain of the following state, divided by the largest of these
// gains. This largest gain is the gain of c; it is 0 if S is 0 whatever leg k and those after it are.
func (s *symmetricSum) innerState(k, c int, strides []int, following []countState) (inner state, gain scaled.Number) {
	inner = state{nextState: slices.Repeat([]int{-1}, s.levels.D)}
	gains := make([]scaled.Number, s.levels.D) // by level
	for _, level := range s.levels.Of[k] {
		after := following[c+strides[level]]
		inner.nextState[level] = after.state
		gains[level] = after.gain
	}

	gain = largestValue(gains)
	var fits bool
	inner.stepWeight, fits = quotientsBy(gains, gain)
	inner.isUnfit = !fits
	return inner, gain
}

// largestValue returns the number with the largest absolute value, with its sign: the first of several, or 0 for an empty list.
func largestValue(values []scaled.Number) scaled.Number {
	var largest scaled.Number
	for _, v := range values {
		if v.Abs().Cmp(largest.Abs()) > 0 {
			largest = v
		}
	}
	return largest
}

// quotientsBy returns values divided by gain, the largest of them, as float64. fits is false if a quotient is not 0 and its absolute value
// is below tiny: then ±tiny stands for it.
func quotientsBy(values []scaled.Number, gain scaled.Number) (quotients []float64, fits bool) {
	quotients = make([]float64, len(values))
	fits = true
	for i, v := range values {
		if v.IsZero() {
			continue
		}
		quotient := v.Div(gain)
		if quotient.Exp < -1000 { // below tiny, 2^−1000
			quotient = scaled.Make(math.Copysign(tiny, quotient.Mant), 0)
			fits = false
		}
		quotients[i] = quotient.Float64()
	}
	return quotients, fits
}

// key returns a string of bytes that two states of one layer share if and only if they have the same next states, weights and final values,
// to the bit.
func (s *state) key() string {
	b := make([]byte, 0, 12*len(s.nextState)+8*len(s.finalValues)) // 4 bytes a state, 8 a weight and a value
	for _, next := range s.nextState {
		b = binary.LittleEndian.AppendUint32(b, uint32(int32(next)))
	}
	for _, list := range [][]float64{s.stepWeight, s.finalValues} {
		for _, w := range list {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(w))
		}
	}
	return string(b)
}
