// Package generate draws the models of btn generate: Ising models on graphs, random tables, constraints, friends and smokers, symmetric
// factors, and plain tables with hidden structure. Every model follows from its seed.
package generate

// Dense factors of one model in a few arrays: a million tables without a million allocations.

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrOptions reports options outside their bounds.
var ErrOptions = errors.New("generate: options")

// Bounds that are checked before anything is allocated.
const (
	maxDim     = 64
	maxTable   = 1 << 22     // entries of a table
	maxEntries = 100_000_000 // of all tables of a model
)

// builder collects dense factors over variables with these domains.
type builder struct {
	domains         []int                // per variable, the number of its values
	factors         []factorgraph.Factor // so far
	dense           []tensor.Dense       // the tables of the factors
	data            []float64            // the entries of all tables, one table behind another
	scopesAndShapes []int                // per factor, its scope, then its shape
}

// newBuilder returns a builder with memory for the given numbers of factors, of entries of their tables, and of variables in their scopes.
// It grows if more are added.
func newBuilder(domains []int, factors, entries, scopes int) builder {
	return builder{
		domains:         domains,
		factors:         make([]factorgraph.Factor, 0, factors),
		dense:           make([]tensor.Dense, 0, factors),
		data:            make([]float64, 0, entries),
		scopesAndShapes: make([]int, 0, 2*scopes), // a shape is as long as its scope
	}
}

// addTable appends a factor over a copy of the scope, its last variable fastest, and returns its entries, all of them
// 0.
func (b *builder) addTable(scope ...int) []float64 {
	n, first := len(scope), len(b.scopesAndShapes)
	b.scopesAndShapes = append(b.scopesAndShapes, scope...)
	size := 1
	for _, v := range scope {
		b.scopesAndShapes = append(b.scopesAndShapes, b.domains[v])
		size *= b.domains[v]
	}
	scopeAndShape, start := b.scopesAndShapes[first:], len(b.data)
	if start+size <= cap(b.data) {
		b.data = b.data[:start+size] // memory that newBuilder has made, which is 0
	} else {
		b.data = append(b.data, make([]float64, size)...)
	}
	entries := b.data[start : start+size : start+size]
	b.dense = append(b.dense, tensor.Dense{Shape: scopeAndShape[n : 2*n : 2*n], Data: entries})
	table := &b.dense[len(b.dense)-1] // stays where it is, even if dense grows and moves
	b.factors = append(b.factors, factorgraph.Factor{Scope: scopeAndShape[:n:n], Table: table})
	return entries
}

// addFactor appends a factor with these entries.
func (b *builder) addFactor(scope []int, entries ...float64) { copy(b.addTable(scope...), entries) }

// addRandom appends a factor and returns its entries. ln of each is drawn from U(−strength, strength).
func (b *builder) addRandom(rng *rand.Rand, strength float64, scope ...int) []float64 {
	entries := b.addTable(scope...)
	for k := range entries {
		entries[k] = math.Exp(uniform(rng, strength))
	}
	return entries
}

// addField appends the factor exp(h x) of spin i, where value 0 is x = −1 and value 1 is x = 1. It appends none if h is
// 0.
func (b *builder) addField(i int, h float64) {
	if h != 0 {
		b.addFactor([]int{i}, math.Exp(-h), math.Exp(h))
	}
}

// addCoupling appends the factor exp(coupling · x y) of the spins x and y of variables i and j, which are −1 for value
// 0 and 1 for value 1.
func (b *builder) addCoupling(i, j int, coupling float64) {
	equal, opposite := math.Exp(coupling), math.Exp(-coupling)
	b.addFactor([]int{i, j}, equal, opposite, opposite, equal)
}

// model returns the model of all factors so far.
func (b *builder) model() *factorgraph.Model {
	return &factorgraph.Model{Domains: b.domains, Factors: b.factors}
}

// newSpins returns a builder over n binary variables.
func newSpins(n int) builder { return builder{domains: slices.Repeat([]int{2}, n)} }

// firstNumbers returns 0, 1, …, n − 1.
func firstNumbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// weak is the largest field of models that have one to break ties.
const weakField = 0.1

// uniform draws from U(−a, a).
func uniform(r *rand.Rand, a float64) float64 { return a * (2*r.Float64() - 1) }
