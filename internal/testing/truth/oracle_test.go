package truth

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestFactorsByHand compares all entries of a factor of every kind with entries that were worked out on paper.
func TestFactorsByHand(t *testing.T) {
	// Of[i][x] is the level of value x of variable i. Both variables have values of levels 1 and 2, so the entries of a symmetric tensor
	// are stored by the counts of these levels in an array of 3 × 3.
	three := countspace.Levels{D: 3, Of: [][]uint8{{0, 1, 2}, {1, 2}}}
	countValues := make([]float64, 9)
	for i := range countValues {
		countValues[i] = float64(i)
	}
	noisy, err := factorgraph.NoisyOr(0.5, 0.75)
	panicOnError(err)
	parity, err := factorgraph.Parity(2, true)
	panicOnError(err)
	for name, c := range map[string]struct {
		table tensor.Tensor
		want  []float64
	}{
		"dense": {&tensor.Dense{
			Shape: []int{2, 3},
			Data:  []float64{1, 2, 3, 4, 5, 6},
		}, []float64{1, 2, 3, 4, 5, 6}},
		"constant": {&tensor.Dense{Shape: []int{}, Data: []float64{7}}, []float64{7}},
		"cp": {&tensor.CP{
			Shape:   []int{2, 2},
			Weights: []float64{2, 3},
			Vectors: [][]float64{nil, {1, 10, 100, 1000}},
		}, []float64{2, 20, 300, 3000}},
		"no terms": {&tensor.CP{Shape: []int{2}, Vectors: [][]float64{{}}}, []float64{0, 0}},
		"noisy-or": {noisy, []float64{0.5, 0.5, 0.125, 0.875}},
		"parity":   {parity, []float64{0, 1, 1, 0}},
		"clause":   {factorgraph.Clause(true, false), []float64{1, 0, 1, 1}},
		"symmetric": {&tensor.Symmetric{
			Shape:  []int{3, 2},
			Levels: three,
			Values: scaled.Vector{Mant: countValues},
		}, []float64{3, 1, 6, 4, 4, 2}},
		"exponents": {&tensor.Symmetric{Shape: []int{2}, Levels: countspace.TwoLevels([]int{2}),
			Values: scaled.Vector{Mant: []float64{3, 5}, Exp: []int64{1, -1}}}, []float64{6, 2.5}},
		"symmetry-cp": {&tensor.SymmetryCP{Shape: []int{2, 2}, Levels: countspace.TwoLevels([]int{2, 2}),
			Terms: []tensor.SymmetryRankOne{
				{Alpha: 2, S: scaled.Vector{Mant: []float64{1, 2, 3}}, R: [][]float64{{1, 10}, nil}},
				{Alpha: -1, S: scaled.Vector{Mant: []float64{0, 1, 0}}},
			}}, []float64{2, 3, 39, 60}},
	} {
		got := oracle.ExactEntries(c.table)
		for i, want := range c.want {
			if got[i].Float64() != want {
				t.Errorf("%s: entry %d is %v, want %v", name, i, got[i].Float64(), want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %d entries", name, len(got))
		}
	}
}

// TestSolveByHand checks Z, marginals, a joint marginal and a ratio of a model of four assignments, with a likelihood and an observation.
func TestSolveByHand(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{1, 0}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}}},
		{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 10}}},
	}}
	given := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 1, Weights: []float64{1, 0.5}}}}
	event := given
	event.Hard = []factorgraph.Observation{{Var: 0, Value: 1}}
	got := Solve(m, []query.Query{
		{Marginals: true, Joint: []int{1, 0}},
		{Evidence: given},
		{Evidence: event, Over: 2},
	})

	// Weights of (x_0, x_1) = (0, 0), (0, 1), (1, 0), (1, 1): 1, 3, 20, 40.
	if z := got[0].Z.Float64(); z != 64 {
		t.Errorf("Z = %v, want 64", z)
	}
	if p := got[0].Marginals; p[0][1] != 60./64 || p[1][0] != 21./64 {
		t.Errorf("marginals %v", p)
	}
	if p := got[0].Joint; p[0] != 1./64 || p[1] != 20./64 || p[2] != 3./64 || p[3] != 40./64 {
		t.Errorf("joint %v", p)
	}

	// Under the likelihood of x_1 they are 1, 1.5, 20, 20, and the event is x_0 = 1.
	if r := got[2]; !r.Event || !r.HasRatio || math.Abs(r.LnRatio-math.Log(40/42.5)) > 1e-15 {
		t.Errorf("ratio %+v", r)
	}
}
