package generate

// Factors of one model in a few arrays: a million tables without a million allocations.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tables holds dense factors; the capacities are known before the first one.
type tables struct {
	factors []factorgraph.Factor
	dense   []tensor.Dense
	data    []float64
	scopes  []int
}

// newTables has room for so many factors with so many entries and variables of scopes in all.
func newTables(factors, entries, scopes int) *tables {
	return &tables{
		factors: make([]factorgraph.Factor, 0, factors), dense: make([]tensor.Dense, 0, factors),
		data: make([]float64, 0, entries), scopes: make([]int, 0, scopes),
	}
}

// add appends a factor of this shape, which is kept; its entries are to follow.
func (t *tables) add(shape []int, scope ...int) {
	size, from, at := 1, len(t.data), len(t.scopes)
	for _, d := range shape {
		size *= d
	}
	t.scopes = append(t.scopes, scope...)
	t.dense = append(t.dense, tensor.Dense{Shape: shape, Data: t.data[from : from+size : from+size]})
	t.factors = append(t.factors, factorgraph.Factor{
		Scope: t.scopes[at:len(t.scopes):len(t.scopes)],
		Table: &t.dense[len(t.dense)-1],
	})
}

// numbers are the entries of the factor added last.
func (t *tables) numbers(x ...float64) { t.data = append(t.data, x...) }

// random draws the entries of the factor added last, their logarithms from U(−strength, strength).
func (t *tables) random(rng *rand.Rand, strength float64) {
	for range t.dense[len(t.dense)-1].Data {
		t.data = append(t.data, math.Exp(strength*(2*rng.Float64()-1)))
	}
}

// repeat is a list of n equal numbers.
func repeat(x, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = x
	}
	return list
}
