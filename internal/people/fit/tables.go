package fit

// The conditional probability tables of a Bayesian network.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// cpt is a table P(x_c | the other variables of its scope) of a model. A row of it is the probabilities of all values
// of x_c for one assignment of the others.
type cpt struct {
	factor   int       // index of its factor in the model
	variable int       // x_c, the variable that the table is of
	data     []float64 // the entries of the model's table, shared with it
	values   int       // number of values of x_c
	stride   int       // distance in data between two values of x_c
}

// rowSlack is the largest deviation from 1 of a row's sum in a file: the M step makes it 1.
const rowSlack = 1e-5

// conditionalTables returns a copy of a model with the conditional probability tables of that copy. Each table is the
// conditional distribution of one variable: one over whose values the table's rows sum to 1, and that no other table is
// of. Factors in other forms than tables stay as they are; fixed is their number.
func conditionalTables(m *factorgraph.Model) (model *factorgraph.Model, cpts []cpt, fixed int, err error) {
	copied, candidates, fixed, err := copyTables(m)
	if err != nil {
		return nil, nil, 0, err
	}

	// Match the tables with their candidates, so that each has a variable that no other has.
	owner := slices.Repeat([]int{-1}, len(m.Domains)) // by variable: the factor whose table is of it
	for f := range candidates {
		if candidates[f] != nil && !assignVariable(candidates, owner, f, make([]bool, len(m.Domains))) {
			return nil, nil, 0, fault.New(fault.BadInput,
				"factor %d: the variables that its rows sum to 1 over have tables of their own: only Bayesian networks are fitted", f)
		}
	}

	// Describe the tables in the order of their variables.
	for v, f := range owner {
		if f < 0 {
			continue // v has no table
		}
		t := copied.Factors[f].Table.(*tensor.Dense)
		mode := slices.Index(copied.Factors[f].Scope, v)
		cpts = append(cpts, cpt{factor: f, variable: v, data: t.Data, values: t.Shape[mode], stride: stride(t.Shape, mode)})
	}
	if len(cpts) == 0 {
		return nil, nil, 0, fault.New(fault.BadInput, "the model has no conditional probability table to fit")
	}
	return copied, cpts, fixed, nil
}

// copyTables returns a copy of a model with its own tables, and for each of its factors the candidates: the variables over whose values the
// rows of its table sum to 1, so that it may be their conditional distribution. The last variable of a scope comes first, as it is the
// likeliest. A factor in another form than a table has no candidates; fixed is the number of these factors. A table without candidates is
// an error.
func copyTables(m *factorgraph.Model) (copied *factorgraph.Model, candidates [][]int, fixed int, err error) {
	copied = new(factorgraph.Model)
	*copied = *m
	copied.Factors = slices.Clone(m.Factors)
	candidates = make([][]int, len(m.Factors))
	for f := range copied.Factors {
		t, ok := copied.Factors[f].Table.(*tensor.Dense)
		if !ok {
			fixed++
			continue
		}
		t = &tensor.Dense{Shape: t.Shape, Data: slices.Clone(t.Data)}
		copied.Factors[f].Table = t
		for mode := len(t.Shape) - 1; mode >= 0; mode-- {
			if (cpt{data: t.Data, values: t.Shape[mode], stride: stride(t.Shape, mode)}).sumsToOne() {
				candidates[f] = append(candidates[f], m.Factors[f].Scope[mode])
			}
		}
		if wrong := m.WrongRow(); candidates[f] == nil && wrong != "" {
			return nil, nil, 0, fault.New(fault.BadInput, "%s: only Bayesian networks whose rows sum to 1 are fitted", wrong)
		}
		if candidates[f] == nil {
			return nil, nil, 0, fault.New(fault.BadInput,
				"factor %d is no conditional probability table: over no variable of its scope do its rows sum to 1, "+
					"and only Bayesian networks are fitted", f)
		}
	}
	return copied, candidates, fixed, nil
}

// assignVariable assigns to table f one of its candidates and reports whether it could: it looks for an augmenting path of the bipartite
// matching of tables and variables. If another table has the variable, that table is moved to another of its candidates, recursively.
// owner[v] is the table that has variable v, -1 for none; isTried[v] is set if v has been looked at.
func assignVariable(candidates [][]int, owner []int, f int, isTried []bool) bool {
	for _, v := range candidates[f] {
		if isTried[v] {
			continue
		}
		isTried[v] = true
		if owner[v] < 0 || assignVariable(candidates, owner, owner[v], isTried) {
			owner[v] = f
			return true
		}
	}
	return false
}

// stride returns the distance in a table's entries between two values of a mode: the product of the sizes of the modes
// behind it.
func stride(shape []int, mode int) int {
	s := 1
	for _, d := range shape[mode+1:] {
		s *= d
	}
	return s
}

// forEachRow calls visit for every row with the index of its first entry. The entry of value x is x·stride further.
func (c cpt) forEachRow(visit func(first int)) {
	for blockStart := 0; blockStart < len(c.data); blockStart += c.values * c.stride {
		for first := blockStart; first < blockStart+c.stride; first++ {
			visit(first)
		}
	}
}

// sumsToOne reports whether the entries are at least 0 and every row sums to 1, up to rowSlack or the rounding of a file.
func (c cpt) sumsToOne() bool {
	isStochastic := true
	c.forEachRow(func(first int) {
		sum := 0.0
		for x := range c.values {
			p := c.data[first+x*c.stride]
			isStochastic = isStochastic && p >= 0
			sum += p
		}
		isStochastic = isStochastic && math.Abs(sum-1) <= max(rowSlack, 1e-6*float64(c.values)) // files have six digits of each entry
	})
	return isStochastic
}

// normalise makes each row proportional to numbers, which has a number of at least 0 for each entry of the table, so that
// the row sums to 1. Entries that are 0 stay 0, and a row stays as it is if the numbers of its other entries are all 0.
// numbers may be the table's own data.
func (c cpt) normalise(numbers []float64) {
	c.forEachRow(func(first int) {
		sum := 0.0
		for x := range c.values {
			if entry := first + x*c.stride; c.data[entry] > 0 {
				sum += numbers[entry]
			}
		}
		if !(sum > 0) {
			return // no case is like this: nothing is learned of it
		}
		for x := range c.values {
			if entry := first + x*c.stride; c.data[entry] > 0 {
				c.data[entry] = numbers[entry] / sum
			}
		}
	})
}

// drawRows fills every row with random probabilities. Entries that are 0 stay 0.
func (c cpt) drawRows(rng *rand.Rand) {
	numbers := make([]float64, len(c.data))
	for k := range numbers {
		numbers[k] = 0.1 + rng.Float64()
	}
	c.normalise(numbers)
}

// lnPrior returns Σ aᵢ·ln θᵢ over the entries θᵢ that are not 0, with counts aᵢ: the logarithm of a Dirichlet density,
// up to a constant.
func (c cpt) lnPrior(counts []float64) float64 {
	sum := 0.0
	for k, p := range c.data {
		if counts[k] > 0 && p > 0 {
			sum += counts[k] * math.Log(p)
		}
	}
	return sum
}

// expectedCounts returns how often the cases are expected to have each entry θ: θ · ∂ ln-likelihood/∂θ. gradient has
// these derivatives.
func (c cpt) expectedCounts(gradient []float64) []float64 {
	counts := make([]float64, len(c.data))
	for k, p := range c.data {
		counts[k] = max(0, gradient[k]*p)
	}
	return counts
}

// freeParameters returns the number of free parameters: in every row the number of entries that are not 0, less one.
func (c cpt) freeParameters() int {
	free := 0
	c.forEachRow(func(first int) {
		possible := 0
		for x := range c.values {
			if c.data[first+x*c.stride] > 0 {
				possible++
			}
		}
		free += max(0, possible-1)
	})
	return free
}
