package generate

// Symmetric factors of several levels, that overlap, and over the leaves of a tree.

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Potts describes overlapping groups of variables. Each group is a Curie–Potts model over Size neighbours in the
// sequence of all variables, and shares Shared of them with the next group:
//
//	P(x) ∝ Π_g exp(Coupling/Size · Σ_a c_ga²) · Π_v w_v(x_v)
//
// with c_ga the number of variables of group g that have value a, and ln w ~ N(0, Field²). With two values these are
// Curie–Weiss models.
type Potts struct {
	Size, Values   int
	Groups, Shared int
	Coupling       float64
	Field          float64 // 0: no unary factors
	Seed           uint64
}

// Bounds of the options.
const (
	mostCounted  = 100_000 // variables
	mostCounts   = 1 << 22 // count vectors of a factor
	mostFields   = 100     // standard deviation of ln w
	mostCoupling = 1000
)

// Model returns the model. Cost: linear in the variables and the count vectors. Errors: ErrOptions.
func (o Potts) Model() (*factorgraph.Model, error) {
	n, err := o.variables()
	if err != nil {
		return nil, err
	}

	// the fields
	m := &factorgraph.Model{Domains: make([]int, n)}
	rng := rand.New(rand.NewPCG(o.Seed, 0x706f747473)) // "potts"
	for v := range m.Domains {
		m.Domains[v] = o.Values
		if o.Field == 0 {
			continue
		}
		w := make([]float64, o.Values)
		for x := range w {
			w[x] = math.Exp(o.Field * rng.NormFloat64())
		}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{o.Values}, Data: w}})
	}

	// the groups: the next one begins where the variables that it does not share with its predecessor end
	table, err := o.groupTable()
	if err != nil {
		return nil, err
	}
	for g := range o.Groups {
		scope := firstNumbers(o.Size)
		for k := range scope {
			scope[k] += g * (o.Size - o.Shared)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: table})
	}
	return m, nil
}

// variables returns the number of variables, or ErrOptions if the options are wrong. It computes in float64, where products of the options
// do not overflow.
func (o Potts) variables() (int, error) {
	if o.Size < 1 || o.Values < 2 || o.Groups < 1 || o.Shared < 0 || o.Shared >= o.Size {
		return 0, fmt.Errorf("%w: %d groups of %d variables of %d values that share %d", ErrOptions, o.Groups, o.Size, o.Values, o.Shared)
	}
	n := float64(o.Groups)*float64(o.Size-o.Shared) + float64(o.Shared)
	counts := math.Pow(float64(o.Size)+1, float64(o.Values-1)) // entries of a group's table: see groupTable
	if n > mostCounted || counts > mostCounts {
		return 0, fmt.Errorf("%w: %.0f variables and %.3g count vectors, at most %d and %d are possible", ErrOptions, n, counts,
			mostCounted, mostCounts)
	}
	if !(o.Field >= 0 && o.Field <= mostFields && math.Abs(o.Coupling) <= mostCoupling) {
		return 0, fmt.Errorf("%w: fields %v and coupling %v, at most %d and %d are possible", ErrOptions, o.Field, o.Coupling,
			mostFields, mostCoupling)
	}
	return int(n), nil
}

// groupTable returns the factor of a group, exp(Coupling/Size · Σ_a c_a²), by the counts c_a of the values.
func (o Potts) groupTable() (*tensor.Symmetric, error) {
	dims := make([]int, o.Size)
	for k := range dims {
		dims[k] = o.Values
	}
	levels, err := countspace.Identity(dims) // each value is counted by itself
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	size, err := levels.Size()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}

	// the digits of an index to the base Size + 1 are the counts of all values but the first, whose count is what remains
	values := scaled.NewVector(size)
	for i := range size {
		digits, firstCount, squares := i, o.Size, 0
		for range o.Values - 1 {
			count := digits % (o.Size + 1)
			digits /= o.Size + 1
			firstCount -= count
			squares += count * count
		}
		if firstCount >= 0 { // else the counts are impossible
			values.Set(i, scaled.FromLog(o.Coupling/float64(o.Size)*float64(squares+firstCount*firstCount)))
		}
	}
	return &tensor.Symmetric{Shape: dims, Levels: levels, Values: values}, nil
}

// Leaves returns a model on a balanced binary tree with n ≥ 2 leaves, its variables in heap order. Each edge has a
// random table, ln of its entries N(0, 1/4). One more factor demands that at least n/3 and at most n/2 of the leaves,
// the last n variables, have value 1. Errors: ErrOptions.
func Leaves(n int, seed uint64) (*factorgraph.Model, error) {
	if n < 2 || n > mostCounted/2 {
		return nil, fmt.Errorf("%w: %d leaves, 2 to %d are possible", ErrOptions, n, mostCounted/2)
	}

	// the tree: the parent of variable v is (v−1)/2
	m := &factorgraph.Model{Domains: make([]int, 2*n-1)}
	rng := rand.New(rand.NewPCG(seed, 0x6c6561766573)) // "leaves"
	for v := range m.Domains {
		m.Domains[v] = 2
		if v == 0 {
			continue
		}
		w := make([]float64, 4)
		for x := range w {
			w[x] = math.Exp(0.5 * rng.NormFloat64()) // 0.5 is the root of the variance 1/4
		}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{(v - 1) / 2, v}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: w}})
	}

	// the factor of the leaves
	values := make([]float64, n+1) // by the number of leaves with value 1
	for c := n / 3; c <= n/2; c++ {
		values[c] = 1
	}
	s, err := factorgraph.Cardinality(m.Domains[n-1:], values)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	scope := firstNumbers(n)
	for k := range scope {
		scope[k] += n - 1 // the inner vertices come first
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s})
	return m, nil
}
