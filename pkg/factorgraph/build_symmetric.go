// Factors that depend on their variables through a count: at most k, exactly k, any cardinality, weighted cardinality.

package factorgraph

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Cardinality returns the factor f(x) = values[c], c the number of variables whose value is not 0. The domains may
// differ (two levels: 0 and the rest). Variables with one value are never counted, so there are 1 + #{d ≥ 2} values;
// another number of them, or one that is not finite, is ErrModel.
func Cardinality(dims []int, values []float64) (*tensor.Symmetric, error) {
	t := &tensor.Symmetric{Shape: dims, Levels: countspace.TwoLevels(dims), Values: scaled.Vector{Mant: values}}
	if err := checkCardinality(t); err != nil {
		return nil, err
	}
	return t, nil
}

// CardinalityLog is Cardinality with ln f in nats, for values beyond the range of float64; −Inf is the value 0.
func CardinalityLog(dims []int, logValues []float64) (*tensor.Symmetric, error) {
	v := scaled.Vector{Mant: make([]float64, len(logValues)), Exp: make([]int64, len(logValues))}
	for c, l := range logValues {
		if math.IsNaN(l) || math.IsInf(l, 1) {
			return nil, modelError("cardinality: ln of value %d is %v", c, l)
		}
		n := scaled.FromLog(l)
		v.Mant[c], v.Exp[c] = n.Mant, n.Exp
	}
	t := &tensor.Symmetric{Shape: dims, Levels: countspace.TwoLevels(dims), Values: v}
	if err := checkCardinality(t); err != nil {
		return nil, err
	}
	return t, nil
}

// checkCardinality returns ErrModel if a dimension is below 1, if t does not have a value for each count of variables that are not 0, or if
// a value is not finite.
func checkCardinality(t *tensor.Symmetric) error {
	for i, d := range t.Shape {
		if d < 1 {
			return modelError("cardinality: dimension %d of variable %d", d, i)
		}
	}
	if want := t.Levels.Shape()[0]; t.Values.Len() != want { // of two levels the one above 0 is counted
		return modelError("cardinality: %d values, counts run from 0 to %d", t.Values.Len(), want-1)
	}
	if err := tensor.Validate(t); err != nil {
		return modelError("cardinality: %w", err)
	}
	return nil
}

// Exactly returns the factor that is 1 where exactly k of n binary variables are 1, and 0 elsewhere.
func Exactly(n, k int) (*tensor.Symmetric, error) {
	return countBetween(n, k, k)
}

// AtMost returns the factor that is 1 where at most k of n binary variables are 1, and 0 elsewhere.
func AtMost(n, k int) (*tensor.Symmetric, error) {
	return countBetween(n, 0, k)
}

// AtLeast returns the factor that is 1 where at least k of n binary variables are 1, and 0 elsewhere.
func AtLeast(n, k int) (*tensor.Symmetric, error) {
	return countBetween(n, k, n)
}

// countBetween returns the factor of n binary variables that is 1 if from low to high of them are 1, and 0 if not. A bound outside 0 … n
// is refused: it is a mistake more often than a wish for the factor 0 or 1.
func countBetween(n, low, high int) (*tensor.Symmetric, error) {
	if n < 0 || low < 0 || high > n || low > high {
		return nil, modelError("cardinality: counts %d to %d of %d variables", low, high, n)
	}
	values := make([]float64, n+1)
	for c := low; c <= high; c++ {
		values[c] = 1
	}
	return Cardinality(binary(n), values)
}

// WeightedCardinality returns f(x) = values[c] · Π_i weights[i][x_i], c as in Cardinality: the
// symmetry-rank-one tensor S ∘ R as a symmetry-CP of one term. weights[i] has one entry per value of variable
// i; nil means all ones, and then the variable is binary.
func WeightedCardinality(values []float64, weights [][]float64) (*tensor.SymmetryCP, error) {
	dims := make([]int, len(weights))
	for i, w := range weights {
		dims[i] = 2
		if w != nil {
			dims[i] = len(w)
		}
	}
	s, err := Cardinality(dims, values)
	if err != nil {
		return nil, err
	}
	t := &tensor.SymmetryCP{Shape: dims, Levels: s.Levels,
		Terms: []tensor.SymmetryRankOne{{Alpha: 1, S: s.Values, R: weights}}}
	if err := tensor.Validate(t); err != nil {
		return nil, modelError("weighted cardinality: %w", err)
	}
	return t, nil
}
