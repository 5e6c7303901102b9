// Package modeltest draws models at random for tests and for the laboratory: small ones of every kind of factor, ones with numbers from the
// whole range of float64, and the families that estimates are judged on. Every model follows from its seed.
package modeltest

import (
	"hash/fnv"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// weakField is the largest field of models that have one to break ties.
const weakField = 0.1

// builder is a model that gets its dense factors one after the other.
type builder struct{ factorgraph.Model }

// newBuilder returns a builder of a model with n variables, each with this number of values, and no factors yet.
func newBuilder(n, values int) *builder {
	return &builder{factorgraph.Model{Domains: slices.Repeat([]int{values}, n)}}
}

// addTable appends a dense factor over the variables of scope, all entries 0, and returns its entries for the caller to fill.
// They are row-major: the value of the last variable of scope changes fastest.
func (b *builder) addTable(scope ...int) []float64 {
	shape := make([]int, len(scope))
	for k, v := range scope {
		shape[k] = b.Domains[v]
	}
	t := &tensor.Dense{Shape: shape, Data: make([]float64, product(shape))}
	b.Factors = append(b.Factors, factorgraph.Factor{Scope: slices.Clone(scope), Table: t})
	return t.Data
}

// addFactor appends a dense factor over the variables of scope with these entries, row-major.
func (b *builder) addFactor(scope []int, entries ...float64) { copy(b.addTable(scope...), entries) }

// addField appends the factor exp(h x_i) of variable i as a spin: its value 0 is x_i = −1, its value 1 is x_i = +1.
// No factor is appended if h = 0.
func (b *builder) addField(i int, h float64) {
	if h != 0 {
		b.addFactor([]int{i}, math.Exp(-h), math.Exp(h))
	}
}

// addCoupling appends the factor exp(J x_i x_j) of two spins x = ±1, where J is the coupling.
func (b *builder) addCoupling(i, j int, coupling float64) {
	equal, opposite := math.Exp(coupling), math.Exp(-coupling)
	b.addFactor([]int{i, j}, equal, opposite, opposite, equal)
}

// addEqualityFactor appends a factor over variables i and j with the entry equal where their values are the same, and the entry
// different elsewhere. Both variables have the same number of values d, so the diagonal entries are 0, d+1, 2(d+1), …
func (b *builder) addEqualityFactor(i, j int, equal, different float64) {
	entries := b.addTable(i, j)
	for k := range entries {
		isDiagonal := k%(b.Domains[j]+1) == 0
		entries[k] = different
		if isDiagonal {
			entries[k] = equal
		}
	}
}

// addCountFactor appends a factor over binary variables: 1 if the number of them with value 1 is allowed, and 0 otherwise.
// Entry x of it is for the values that are the bits of x.
func (b *builder) addCountFactor(scope []int, allowed func(count int) bool) {
	entries := b.addTable(scope...)
	for x := range entries {
		if allowed(bits.OnesCount(uint(x))) {
			entries[x] = 1
		}
	}
}

// UpTo returns the list 0, 1, …, n − 1.
func UpTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// product returns the product of dims: the number of assignments of variables with these numbers of values.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// uniform draws a number uniformly from (−a, a).
func uniform(r *rand.Rand, a float64) float64 { return a * (2*r.Float64() - 1) }

// newStream returns the generator of random numbers for a seed and a kind of model: two kinds draw different numbers from one seed.
func newStream(seed uint64, kind string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(kind))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
