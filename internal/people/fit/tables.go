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

// cpt is a table P(x_c | the others of its scope) of a model.
type cpt struct {
	factor   int
	variable int       // x_c
	data     []float64 // the model's own
	values   int       // of x_c
	stride   int       // entries between two of its values
}

// rowSlack is the largest deviation from 1 of a row's sum in a file: the M step makes it 1.
const rowSlack = 1e-5

// tables finds, in a copy of a model, the variable that every table is of. Factors in other forms
// than tables stay as they are: their variables are those that are left. It returns their number.
func tables(m *factorgraph.Model) (of *factorgraph.Model, cpts []cpt, fixed int, err error) {
	copied := *m
	copied.Factors = slices.Clone(m.Factors)
	candidates := make([][]int, len(m.Factors)) // modes, the likeliest first
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
				candidates[f] = append(candidates[f], mode)
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

	owner := slices.Repeat([]int{-1}, len(m.Domains)) // by variable: the factor whose table is of it
	mode := make([]int, len(m.Factors))
	for f := range candidates {
		if candidates[f] != nil && !assign(&copied, candidates, owner, mode, f, make([]bool, len(m.Domains))) {
			return nil, nil, 0, fault.New(fault.BadInput,
				"factor %d: the variables that its rows sum to 1 over have tables of their own: only Bayesian networks are fitted", f)
		}
	}
	for v, f := range owner {
		if f < 0 {
			continue
		}
		t := copied.Factors[f].Table.(*tensor.Dense)
		k := slices.Index(copied.Factors[f].Scope, v)
		cpts = append(cpts, cpt{factor: f, variable: v, data: t.Data, values: t.Shape[k], stride: stride(t.Shape, k)})
	}
	if len(cpts) == 0 {
		return nil, nil, 0, fault.New(fault.BadInput, "the model has no conditional probability table to fit")
	}
	return &copied, cpts, fixed, nil
}

// assign gives table f a variable of its own, and moves others where it must.
func assign(m *factorgraph.Model, candidates [][]int, owner, mode []int, f int, seen []bool) bool {
	for _, k := range candidates[f] {
		v := m.Factors[f].Scope[k]
		if seen[v] {
			continue
		}
		seen[v] = true
		if owner[v] < 0 || assign(m, candidates, owner, mode, owner[v], seen) {
			owner[v], mode[f] = f, k
			return true
		}
	}
	return false
}

// stride is the number of entries between two values of a mode.
func stride(shape []int, mode int) int {
	s := 1
	for _, d := range shape[mode+1:] {
		s *= d
	}
	return s
}

// rows calls visit with the first entry of every row; value x of it is x·stride further.
func (c cpt) rows(visit func(from int)) {
	for block := 0; block < len(c.data); block += c.values * c.stride {
		for from := block; from < block+c.stride; from++ {
			visit(from)
		}
	}
}

// sumsToOne reports whether all rows do.
func (c cpt) sumsToOne() bool {
	all := true
	c.rows(func(from int) {
		sum := 0.0
		for x := range c.values {
			p := c.data[from+x*c.stride]
			all = all && p >= 0
			sum += p
		}
		all = all && math.Abs(sum-1) <= max(rowSlack, 1e-6*float64(c.values))
	})
	return all
}

// normalise makes every row from numbers that are at least 0, one per entry: shares of their sum, where that is above 0.
// Entries that are 0 stay 0.
// numbers may be the table itself.
func (c cpt) normalise(numbers []float64) {
	c.rows(func(from int) {
		sum := 0.0
		for x := range c.values {
			if at := from + x*c.stride; c.data[at] > 0 {
				sum += numbers[at]
			}
		}
		if !(sum > 0) {
			return // no case is like this: nothing is learned of it
		}
		for x := range c.values {
			if at := from + x*c.stride; c.data[at] > 0 {
				c.data[at] = numbers[at] / sum
			}
		}
	})
}

// draw fills every row with random numbers; entries that are 0 stay 0.
func (c cpt) draw(rng *rand.Rand) {
	numbers := make([]float64, len(c.data))
	for k := range numbers {
		numbers[k] = 0.1 + rng.Float64()
	}
	c.normalise(numbers)
}

// lnPrior is Σ aᵢ·ln θᵢ over the entries that are not 0.
func (c cpt) lnPrior(counts []float64) float64 {
	sum := 0.0
	for k, p := range c.data {
		if counts[k] > 0 && p > 0 {
			sum += counts[k] * math.Log(p)
		}
	}
	return sum
}

// expected is how often the cases have each entry, θ · ∂ ln-likelihood/∂θ.
func (c cpt) expected(gradient []float64) []float64 {
	counts := make([]float64, len(c.data))
	for k, p := range c.data {
		counts[k] = max(0, gradient[k]*p)
	}
	return counts
}

// parameters is the number of free numbers: in every row one less than its entries that are not 0.
func (c cpt) parameters() int {
	free := 0
	c.rows(func(from int) {
		possible := 0
		for x := range c.values {
			if c.data[from+x*c.stride] > 0 {
				possible++
			}
		}
		free += max(0, possible-1)
	})
	return free
}
