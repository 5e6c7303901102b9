// The constructors against the meaning of their names, entry by entry.

package factorgraph_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// entryTolerance allows for the rounding of a product of at most six factors.
const entryTolerance = 1e-15

// same checks a tensor against a function of the assignment.
func same(t *testing.T, name string, got tensor.Tensor, err error, want func(x []int) float64) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	oracle.Each(got.Dims(), func(x []int) {
		if v, _ := oracle.Entry(got, x).Float64(); math.Abs(v-want(x)) > entryTolerance {
			t.Errorf("%s: entry %v is %v, want %v", name, x, v, want(x))
		}
	})
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func nonZeros(x []int) int {
	c := 0
	for _, v := range x {
		if v != 0 {
			c++
		}
	}
	return c
}

func TestConstructorsMeanWhatTheySay(t *testing.T) {
	p := []float64{0.3, 0.8, 1}
	noisy, err := factorgraph.NoisyOr(0.1, p...)
	same(t, "noisy-or", noisy, err, func(x []int) float64 {
		off := 0.9
		for i := range p {
			if x[i] == 1 {
				off *= 1 - p[i]
			}
		}
		if x[3] == 0 {
			return off
		}
		return 1 - off
	})
	same(t, "leak only", must(factorgraph.NoisyOr(0.25)), nil, func(x []int) float64 {
		return []float64{0.75, 0.25}[x[0]]
	})

	same(t, "clause", factorgraph.Clause(true, false, true), nil, func(x []int) float64 {
		return indicator(x[0] == 1 || x[1] == 0 || x[2] == 1)
	})
	same(t, "empty clause", factorgraph.Clause(), nil, func([]int) float64 { return 0 })

	for _, odd := range []bool{true, false} {
		parity, err := factorgraph.Parity(4, odd)
		same(t, "parity", parity, err, func(x []int) float64 { return indicator((nonZeros(x)%2 == 1) == odd) })
	}
	equal, err := factorgraph.Equality(3, 4)
	same(t, "equality", equal, err, func(x []int) float64 { return indicator(x[0] == x[1] && x[1] == x[2]) })

	exactly, err := factorgraph.Exactly(5, 2)
	same(t, "exactly", exactly, err, func(x []int) float64 { return indicator(nonZeros(x) == 2) })
	atMost, err := factorgraph.AtMost(5, 2)
	same(t, "at most", atMost, err, func(x []int) float64 { return indicator(nonZeros(x) <= 2) })
	atLeast, err := factorgraph.AtLeast(5, 2)
	same(t, "at least", atLeast, err, func(x []int) float64 { return indicator(nonZeros(x) >= 2) })

	values := []float64{3, -1, 0.5, 7}
	card, err := factorgraph.Cardinality([]int{2, 3, 1, 4}, values) // the variable of domain 1 is never counted
	same(t, "cardinality", card, err, func(x []int) float64 { return values[nonZeros(x)] })

	logCard, err := factorgraph.CardinalityLog([]int{2, 2}, []float64{0, math.Inf(-1), math.Log(3)})
	same(t, "log cardinality", logCard, err, func(x []int) float64 { return []float64{1, 0, 3}[nonZeros(x)] })

	weights := [][]float64{{1, 2}, nil, {3, 5, 7}}
	weighted, err := factorgraph.WeightedCardinality(values, weights)
	same(t, "weighted cardinality", weighted, err, func(x []int) float64 {
		return values[nonZeros(x)] * weights[0][x[0]] * weights[2][x[2]]
	})

	table, err := factorgraph.Table([]int{2, 3}, []float64{0, 1, 2, 3, 4, 5})
	same(t, "table", table, err, func(x []int) float64 { return float64(3*x[0] + x[1]) })
}

func TestCardinalityBeyondFloat64(t *testing.T) {
	s, err := factorgraph.CardinalityLog([]int{2, 2}, []float64{-5000, 0, 5000})
	if err != nil {
		t.Fatal(err)
	}
	for c, want := range []float64{-5000, 0, 5000} {
		x := []int{min(c, 1), c / 2}
		if got := oracle.Ln(oracle.Entry(s, x)); math.Abs(got-want) > 1e-11 {
			t.Errorf("ln of value %d: %v, want %v", c, got, want)
		}
	}
}

func TestConstructorsRefuse(t *testing.T) {
	second := func(_ any, err error) error { return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{second(factorgraph.NoisyOr(1.5)), "invalid model: noisy-or: leak 1.5 is not in [0, 1]"},
		{
			second(factorgraph.NoisyOr(0, 0.5, math.NaN())),
			"invalid model: noisy-or: probability NaN of cause 1 is not in [0, 1]",
		},
		{second(factorgraph.Parity(-1, true)), "invalid model: parity of -1 variables"},
		{
			second(factorgraph.Equality(0, 2)),
			"invalid model: equality of 0 variables of domain 2, at least 1 of each is needed",
		},
		{second(factorgraph.Exactly(3, 4)), "invalid model: cardinality: counts 4 to 4 of 3 variables"},
		{second(factorgraph.AtMost(3, -1)), "invalid model: cardinality: counts 0 to -1 of 3 variables"},
		{
			second(factorgraph.Cardinality([]int{2, 2}, []float64{1, 2})),
			"invalid model: cardinality: 2 values, counts run from 0 to 2",
		},
		{
			second(factorgraph.Cardinality([]int{2, 0}, []float64{1, 2})),
			"invalid model: cardinality: dimension 0 of variable 1",
		},
		{
			second(factorgraph.CardinalityLog([]int{2}, []float64{0, math.Inf(1)})),
			"invalid model: cardinality: ln of value 1 is +Inf",
		},
		{second(factorgraph.Cardinality([]int{2}, []float64{0, math.Inf(1)})), "invalid model: cardinality: …"},
		{
			second(factorgraph.WeightedCardinality([]float64{1, 1}, [][]float64{{1, math.NaN()}})),
			"invalid model: weighted cardinality: …",
		},
		{second(factorgraph.Table([]int{2, 2}, []float64{1})), "invalid model: …"},
	} {
		check(t, c.err, c.want, factorgraph.ErrModel)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
