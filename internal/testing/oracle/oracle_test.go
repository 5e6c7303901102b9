// The oracle against sums that can be done by hand, and its generator against validation.

package oracle

import (
	"math"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestEntryOfEveryForm: one entry of a tensor of each form is what its definition gives by hand.
func TestEntryOfEveryForm(t *testing.T) {
	// Of[i][x] is the level of value x of variable i. Level 1 is on variable 0 only, level 2 on both, so counts of the two levels are
	// stored in an array of 2 × 3. The values (1, 0) have the levels 1 and 2: counts (1, 1), index 4, entry 5·2^1.
	levels := countspace.Levels{D: 3, Of: [][]uint8{{0, 1, 2}, {2, 0}}}
	values := scaled.Vector{Mant: []float64{1, 2, 3, 4, 5, 6}, Exp: []int64{0, 0, 0, 0, 1, 0}}
	for _, c := range []struct {
		name string
		t    tensor.Tensor
		x    []int
		want float64
	}{
		{"dense", &tensor.Dense{Shape: []int{2, 3}, Data: []float64{1, 2, 3, 4, 5, 6}}, []int{1, 2}, 6},
		{"dense order 0", &tensor.Dense{Data: []float64{7}}, nil, 7},
		{"cp", &tensor.CP{Shape: []int{2, 2}, Weights: []float64{2, 3},
			Vectors: [][]float64{nil, {1, 5, 7, 11}}}, []int{1, 0}, 21},
		{"symmetric", &tensor.Symmetric{Shape: []int{3, 2}, Levels: levels, Values: values}, []int{1, 0}, 10},
		{"symmetry-cp", &tensor.SymmetryCP{Shape: []int{3, 2}, Levels: levels, Terms: []tensor.SymmetryRankOne{
			{Alpha: -1, S: values, R: [][]float64{{1, 3, 1}, nil}}, {Alpha: 2, S: values}}}, []int{1, 0}, -30 + 20},
	} {
		if got, _ := Entry(c.t, c.x).Float64(); got != c.want {
			t.Errorf("%s: entry %v = %v, want %v", c.name, c.x, got, c.want)
		}
	}
}

// TestZByHand checks Z under evidence and the marginals of the model (1 + x0)·(1 + x1)·2, where x0 has two values and x1 three:
// Z = 2·(1 + 2)·(1 + 2 + 3) = 36.
func TestZByHand(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 3}, Factors: []factorgraph.Factor{
		{Scope: []int{1, 0}, Table: &tensor.Dense{Shape: []int{3, 2}, Data: []float64{1, 2, 2, 4, 3, 6}}},
		{Scope: nil, Table: &tensor.Dense{Data: []float64{2}}},
	}}
	for _, c := range []struct {
		ev   factorgraph.Evidence
		want float64
	}{
		{factorgraph.Evidence{}, 36},
		{factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1, Value: 2}}}, 18},
		{factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{1, 0.5}}}}, 24},
		{factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{0, 0}}}}, 0},
	} {
		if got, _ := Z(m, c.ev).Float64(); got != c.want {
			t.Errorf("Z under %+v = %v, want %v", c.ev, got, c.want)
		}
	}
	marginals := Marginals(m, factorgraph.Evidence{})
	for i, want := range [][]float64{{1. / 3, 2. / 3}, {1. / 6, 2. / 6, 3. / 6}} {
		for x := range want {
			if math.Abs(marginals[i][x]-want[x]) > 1e-15 {
				t.Errorf("marginal of %d: %v, want %v", i, marginals[i], want)
			}
		}
	}
	if Z(&factorgraph.Model{}, factorgraph.Evidence{}).Cmp(big.NewFloat(1)) != 0 {
		t.Error("the empty model has Z = 1")
	}
}

// TestZBeyondFloat64: Z = 4·2^5000 of a table of two binary variables whose entries are all 2^5000.
func TestZBeyondFloat64(t *testing.T) {
	s := &tensor.Symmetric{Shape: []int{2, 2}, Levels: countspace.TwoLevels([]int{2, 2}),
		Values: scaled.Vector{Mant: []float64{1, 1, 1}, Exp: []int64{5000, 5000, 5000}}}
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{{Scope: []int{0, 1}, Table: s}}}
	got, sign := LogZ(m, factorgraph.Evidence{})
	if want := 5002 * math.Ln2; math.Abs(got-want) > 1e-9 || sign != 1 {
		t.Errorf("ln Z = %v (sign %d), want %v", got, sign, want)
	}
	if e := RelativeError(1, 5002, Z(m, factorgraph.Evidence{})); e != 0 {
		t.Errorf("relative error %v of the exact value", e)
	}
}

// TestGuardOnSize: the oracle panics for a model of 60 binary variables.
func TestGuardOnSize(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("2^60 assignments were not refused")
		}
	}()
	Z(&factorgraph.Model{Domains: slices.Repeat([]int{2}, 60)}, factorgraph.Evidence{})
}

// TestSumByHand checks Z, the sum of absolute terms, the parts and the marginals of an expression with tables of two, one and no indices,
// entries of both signs, exponents and a scale.
func TestSumByHand(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 3, 1}, Scale: scaled.FromFloat(2), Tables: []sumproduct.Table{
		{Scope: []int{1, 0}, Data: []float64{1, 2, 3, 4, 5, -6}}, {Scope: []int{1}, Data: []float64{1, 0, 1}}, {Data: []float64{10}},
		{Scope: []int{0, 2}, Data: []float64{1, 1}, Exp: []int64{0, 1}},
	}}

	// The terms for x_0 = 0, 1 are 1, 2·2 if x_1 = 0 and 5, −6·2 if x_1 = 2, all times 20.
	z, terms, parts := Sum(e, 0).Float64()
	if z != -40 || terms != 440 || !reflect.DeepEqual(parts, [][]float64{{120, -160}, {100, 0, -140}, {-40}}) {
		t.Errorf("Z = %v of %v, parts %v", z, terms, parts)
	}
	if m := Sum(e, 0).Marginals(); m[1][0] != -2.5 || m[2][0] != 1 {
		t.Errorf("marginals %v", m)
	}
	if scaledError := ScaledError(-41, 0, big.NewFloat(-40), big.NewFloat(10)); scaledError != 0.1 {
		t.Errorf("off by %v", scaledError)
	}
	e.Tables[2].Data[0] = 0
	if s := Sum(e, 0); s.Z.Sign() != 0 || s.Marginals() != nil || ScaledError(0, 0, s.Z, s.Terms) != 0 {
		t.Errorf("Z = %v", s.Z)
	}
}
