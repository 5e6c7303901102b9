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

// weak is the largest field of models that have one to break ties.
const weak = 0.1

// builder is a model that gets its dense factors one after the other.
type builder struct{ factorgraph.Model }

// variables is a builder over n variables with so many values each.
func variables(n, values int) *builder {
	return &builder{factorgraph.Model{Domains: slices.Repeat([]int{values}, n)}}
}

// table appends a factor, its last variable fastest, and returns its entries, all 0.
func (b *builder) table(scope ...int) []float64 {
	shape := make([]int, len(scope))
	for k, v := range scope {
		shape[k] = b.Domains[v]
	}
	t := &tensor.Dense{Shape: shape, Data: make([]float64, product(shape))}
	b.Factors = append(b.Factors, factorgraph.Factor{Scope: slices.Clone(scope), Table: t})
	return t.Data
}

// add appends a factor with these entries.
func (b *builder) add(scope []int, entries ...float64) { copy(b.table(scope...), entries) }

// field adds exp(h x_i) of a spin x = ±1, value 0 being −1; nothing for h = 0.
func (b *builder) field(i int, h float64) {
	if h != 0 {
		b.add([]int{i}, math.Exp(-h), math.Exp(h))
	}
}

// couple adds exp(J x_i x_j) of two spins.
func (b *builder) couple(i, j int, coupling float64) {
	same, other := math.Exp(coupling), math.Exp(-coupling)
	b.add([]int{i, j}, same, other, other, same)
}

// pair adds a weight for two variables of equal values, and one for two of different values.
func (b *builder) pair(i, j int, equal, different float64) {
	entries := b.table(i, j)
	for k := range entries {
		entries[k] = different
		if k%(b.Domains[j]+1) == 0 {
			entries[k] = equal
		}
	}
}

// ones adds 1 where the number of binary variables with value 1 is allowed, else 0.
func (b *builder) ones(scope []int, allowed func(count int) bool) {
	entries := b.table(scope...)
	for x := range entries {
		if allowed(bits.OnesCount(uint(x))) {
			entries[x] = 1
		}
	}
}

// UpTo lists 0 to n − 1.
func UpTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// product is the number of assignments of variables with these domains.
func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// uniform draws from U(−a, a).
func uniform(r *rand.Rand, a float64) float64 { return a * (2*r.Float64() - 1) }

// random is the stream of a seed, different for every kind of model.
func random(seed uint64, kind string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(kind))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
