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
	domains []int
	factors []factorgraph.Factor
	dense   []tensor.Dense
	data    []float64
	places  []int // scopes and shapes
}

// room is a builder for the given number of factors, entries and variables in scopes; more are possible.
func room(domains []int, factors, entries, scopes int) builder {
	return builder{
		domains: domains,
		factors: make([]factorgraph.Factor, 0, factors),
		dense:   make([]tensor.Dense, 0, factors),
		data:    make([]float64, 0, entries),
		places:  make([]int, 0, 2*scopes),
	}
}

// table appends a factor over a copy of the scope, its last variable fastest, and returns its entries, all 0.
func (b *builder) table(scope ...int) []float64 {
	n, first := len(scope), len(b.places)
	b.places = append(b.places, scope...)
	size := 1
	for _, v := range scope {
		b.places = append(b.places, b.domains[v])
		size *= b.domains[v]
	}
	places, from := b.places[first:], len(b.data)
	if from+size <= cap(b.data) {
		b.data = b.data[:from+size]
	} else {
		b.data = append(b.data, make([]float64, size)...)
	}
	entries := b.data[from : from+size : from+size]
	b.dense = append(b.dense, tensor.Dense{Shape: places[n : 2*n : 2*n], Data: entries})
	b.factors = append(b.factors, factorgraph.Factor{Scope: places[:n:n], Table: &b.dense[len(b.dense)-1]})
	return entries
}

// add appends a factor with these entries.
func (b *builder) add(scope []int, entries ...float64) { copy(b.table(scope...), entries) }

// random appends a factor, ln of its entries from U(−strength, strength), and returns the entries.
func (b *builder) random(rng *rand.Rand, strength float64, scope ...int) []float64 {
	entries := b.table(scope...)
	for k := range entries {
		entries[k] = math.Exp(uniform(rng, strength))
	}
	return entries
}

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

func (b *builder) model() *factorgraph.Model {
	return &factorgraph.Model{Domains: b.domains, Factors: b.factors}
}

// spins is a builder over n binary variables.
func spins(n int) builder { return builder{domains: slices.Repeat([]int{2}, n)} }

// upTo lists 0 to n − 1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// weak is the largest field of models that have one to break ties.
const weak = 0.1

// uniform draws from U(−a, a).
func uniform(r *rand.Rand, a float64) float64 { return a * (2*r.Float64() - 1) }
