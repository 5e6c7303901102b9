package bp

// Chains of counters for symmetry-CP factors of several terms. The state of a chain is a term and a count, so that the tables form a tree.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// termChain is a chain under construction, with tables for the first legs of a tensor. A count vector tells how many of these legs are at
// each level. It is represented by a number, as in countspace: its position in row-major order among all count vectors.
type termChain struct {
	factors      *factors
	tensor       *tensor.SymmetryCP
	strides      []int // by level: by how much a leg at that level raises the number of a count vector
	countNumbers []int // the count vectors that the legs so far can have, ascending
	stateIndex   int   // the index over (term, count vector) after the legs so far; −1 before the first leg
}

// addTermChain adds a factor Σ_i α_i S^(i) ∘ R^(i) as a chain of tables. S^(i) depends only on how many legs are at each level, and R^(i)
// is a product of one vector per leg. A state of the chain is a term i and a count vector, which tells how many legs so far are at each
// level. There is one table per leg, over (state before, value, state after), and one over the last state, which is α_i S^(i). It sets the
// incidences of the factor. If the tables have more than maxChainEntries entries, it returns false and adds nothing.
func (fs *factors) addTermChain(incidences []incidence, scope []int, t *tensor.SymmetryCP) bool {
	// Before the first leg there is one count vector, number 0, and no index of states.
	chain := &termChain{factors: fs, tensor: t, strides: []int{0}, countNumbers: []int{0}, stateIndex: -1}
	stride := 1
	// From the last level to level 1; level 0 has the stride 0. A level may have countSize different counts, 0 included.
	for _, countSize := range slices.Backward(t.Levels.Shape()) {
		chain.strides = slices.Insert(chain.strides, 1, stride)
		stride *= countSize
	}

	// Count the entries.
	entries, counts := 0.0, chain.countNumbers
	for k := range scope {
		nextCounts := chain.countsAfter(k, counts)
		entries += float64(len(t.Terms)*len(counts)) * float64(t.Shape[k]*len(t.Terms)*len(nextCounts))
		if entries > maxChainEntries {
			return false
		}
		counts = nextCounts
	}

	// Add the tables of the legs, then the table over the last state.
	for k, i := range scope {
		incidences[k] = chain.addLeg(k, i)
	}
	values := make([]scaled.Number, 0, len(t.Terms)*len(chain.countNumbers))
	for _, term := range t.Terms {
		for _, count := range chain.countNumbers {
			values = append(values, term.S.At(count).Mul(scaled.FromFloat(term.Alpha)))
		}
	}
	data, exp := withCommonExponent(values)
	fs.expression.Scale = fs.expression.Scale.Mul(scaled.Make(1, exp))
	fs.addTable([]int{chain.stateIndex}, data)
	return true
}

// countsAfter returns the count vectors that follow the given ones if leg k is added at the level of any of its values, ascending. Count
// vectors are numbers; a leg at a level raises the number by the stride of the level.
func (c *termChain) countsAfter(k int, counts []int) []int {
	isListed := map[int]bool{}
	var nextCounts []int
	for _, count := range counts {
		for _, level := range c.tensor.Levels.Of[k] {
			nextCount := count + c.strides[level]
			if !isListed[nextCount] {
				isListed[nextCount] = true
				nextCounts = append(nextCounts, nextCount)
			}
		}
	}
	slices.Sort(nextCounts)
	return nextCounts
}

// addLeg adds the table of leg k, which is variable i, and returns the leg's incidence. The table is over (state before, value, state
// after); that of the first leg is over (value, state after). A state is a pair of a term and a count vector.
func (c *termChain) addLeg(k, i int) incidence {
	nextCounts := c.countsAfter(k, c.countNumbers)
	data := c.legEntries(k, nextCounts)
	nextState := c.factors.addIndex(len(c.tensor.Terms) * len(nextCounts))
	scope, positionOfVariable := []int{c.stateIndex, i, nextState}, 1
	if isFirst := c.stateIndex < 0; isFirst {
		scope, positionOfVariable = scope[1:], 0
	}
	c.stateIndex, c.countNumbers = nextState, nextCounts
	return incidence{table: c.factors.addTable(scope, data), scopePosition: positionOfVariable}
}

// legEntries returns the entries of the table of leg k, over (state before, value, state after) in row-major order; the term is the slower
// part of a state. An entry is 0 unless the terms before and after are the same and the level of the value leads from the one count vector
// to the other; then it is R's entry of the term for the value, or 1 without R. Before the first leg there is one state, of all terms.
func (c *termChain) legEntries(k int, nextCounts []int) []float64 {
	terms, d := len(c.tensor.Terms), c.tensor.Shape[k]
	rows, columns := terms*len(c.countNumbers), terms*len(nextCounts) // states before and after
	isFirst := c.stateIndex < 0
	if isFirst {
		rows = 1
	}
	data := make([]float64, rows*d*columns)
	for z, term := range c.tensor.Terms {
		for n, count := range c.countNumbers {
			row := z*len(c.countNumbers) + n
			if isFirst {
				row = 0
			}
			for x, level := range c.tensor.Levels.Of[k] {
				next, _ := slices.BinarySearch(nextCounts, count+c.strides[level]) // it is always found
				column := z*len(nextCounts) + next
				value := 1.0
				if term.R != nil && term.R[k] != nil {
					value = term.R[k][x]
				}
				data[(row*d+x)*columns+column] = value
			}
		}
	}
	return data
}

// withCommonExponent returns data and exp such that xs[i] is data[i]·2^exp. The largest absolute value in data is in [1, 2); numbers far
// below it may become 0. If all of xs are 0, data is 0.
func withCommonExponent(xs []scaled.Number) (data []float64, exp int64) {
	largest := scaled.Number{}
	for _, x := range xs {
		if x.Abs().Cmp(largest) > 0 {
			largest = x.Abs()
		}
	}
	data = make([]float64, len(xs))
	for i, x := range xs {
		data[i] = scaled.Number{Mant: x.Mant, Exp: x.Exp - largest.Exp}.Float64()
	}
	return data, largest.Exp
}
