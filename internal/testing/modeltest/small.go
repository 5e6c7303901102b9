package modeltest

// Small models for property tests: every kind of factor, mixed domains, zeros and signs.

import (
	"cmp"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Kind is a form of tensor.
type Kind int

// The four forms of factors.
const (
	Dense Kind = iota
	CP
	Symmetric
	SymmetryCP
)

// AllKinds lists the four forms.
var AllKinds = []Kind{Dense, CP, Symmetric, SymmetryCP}

// SmallOptions describe small models. The zero value of a field is its default.
type SmallOptions struct {
	Variables int     // default 6
	Factors   int     // default 6; of order 1 to MaxArity
	MinDomain int     // default 2
	MaxDomain int     // default 3
	MaxArity  int     // default 3
	MaxStates int     // domains shrink to MinDomain once the product of all would exceed it; default 1 << 12
	Zeros     float64 // probability that a number is 0; default 0
	Negative  bool    // numbers of either sign
	Constant  bool    // one more factor, of order 0
	Kinds     []Kind  // drawn from uniformly; default AllKinds
}

// withDefaults returns the options with defaults in place of the fields that are zero.
func (o SmallOptions) withDefaults() SmallOptions {
	o.Variables, o.Factors, o.MaxArity = cmp.Or(o.Variables, 6), cmp.Or(o.Factors, 6), cmp.Or(o.MaxArity, 3)
	o.MinDomain, o.MaxStates = cmp.Or(o.MinDomain, 2), cmp.Or(o.MaxStates, 1<<12)
	o.MaxDomain = cmp.Or(o.MaxDomain, max(3, o.MinDomain))
	if o.Kinds == nil {
		o.Kinds = AllKinds
	}
	return o
}

// Small draws a valid small model: opts give its numbers of variables and factors, and the forms and numbers in the factors.
func Small(rng *rand.Rand, opts SmallOptions) *factorgraph.Model {
	o := opts.withDefaults()
	m := &factorgraph.Model{Domains: make([]int, o.Variables)}
	states := 1 // assignments of the variables so far
	for i := range m.Domains {
		d := o.MinDomain + rng.IntN(o.MaxDomain-o.MinDomain+1)
		if states*d > o.MaxStates {
			d = o.MinDomain
		}
		states *= d
		m.Domains[i] = d
	}

	for range o.Factors {
		arity := 1 + rng.IntN(min(o.MaxArity, o.Variables))
		scope := rng.Perm(o.Variables)[:arity]
		dims := make([]int, arity)
		for pos, v := range scope {
			dims[pos] = m.Domains[v]
		}
		kind := o.Kinds[rng.IntN(len(o.Kinds))]
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: Tensor(rng, kind, dims, opts)})
	}

	if o.Constant {
		t := &tensor.Dense{Shape: []int{}, Data: []float64{0.5 + rng.Float64()}}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{}, Table: t})
	}
	return m
}

// Tensor draws a tensor of this form whose modes have dims[i] values. Of opts it uses Zeros and Negative only.
func Tensor(rng *rand.Rand, kind Kind, dims []int, opts SmallOptions) tensor.Tensor {
	switch kind {
	case CP:
		return randomCP(rng, dims, opts)
	case Symmetric:
		l := Levels(rng, dims)
		return &tensor.Symmetric{Shape: dims, Levels: l, Values: scaled.Vector{Mant: entries(rng, counts(l), opts)}}
	case SymmetryCP:
		t := &tensor.SymmetryCP{Shape: dims, Levels: Levels(rng, dims)}
		for range 1 + rng.IntN(3) {
			t.Terms = append(t.Terms, randomTerm(rng, t, opts))
		}
		return t
	}
	return &tensor.Dense{Shape: dims, Data: entries(rng, product(dims), opts)}
}

// randomCP draws a CP tensor of one to three terms, Σ_r w_r Π_mode v_mode[r][x_mode].
func randomCP(rng *rand.Rand, dims []int, opts SmallOptions) *tensor.CP {
	rank := 1 + rng.IntN(3)
	t := &tensor.CP{Shape: dims, Weights: entries(rng, rank, opts), Vectors: make([][]float64, len(dims))}
	for mode, d := range dims {
		if d == rank && rng.IntN(3) == 0 {
			continue // nil vectors are the identity matrix
		}
		t.Vectors[mode] = entries(rng, rank*d, opts)
	}
	return t
}

// randomTerm draws one term α · S ∘ R for t: a number, times a symmetric tensor, times a vector for each mode, many of them all 1. Half of
// the terms have exponents of 2 in S, within ±8 so that no term is negligible beside the others.
func randomTerm(rng *rand.Rand, t *tensor.SymmetryCP, opts SmallOptions) tensor.SymmetryRankOne {
	s := scaled.Vector{Mant: entries(rng, counts(t.Levels), opts)}
	if rng.IntN(2) == 0 {
		s.Exp = make([]int64, len(s.Mant))
		for i := range s.Exp {
			if s.Mant[i] != 0 {
				s.Exp[i] = rng.Int64N(17) - 8
			}
		}
	}
	term := tensor.SymmetryRankOne{Alpha: entries(rng, 1, SmallOptions{Negative: opts.Negative})[0], S: s}
	if rng.IntN(4) == 0 {
		return term // all vectors are 1
	}
	term.R = make([][]float64, len(t.Shape))
	for mode, d := range t.Shape {
		if rng.IntN(4) != 0 {
			term.R[mode] = entries(rng, d, opts)
		}
	}
	return term
}

// Levels draws the levels of a symmetric tensor, two or three of them: for each leg, a level of each of its dims[leg] values.
func Levels(rng *rand.Rand, dims []int) countspace.Levels {
	l := countspace.Levels{D: 2 + rng.IntN(2), Of: make([][]uint8, len(dims))}
	for leg, d := range dims {
		l.Of[leg] = make([]uint8, d)
		for x := range d {
			l.Of[leg][x] = uint8(rng.IntN(l.D))
		}
	}
	return l
}

// counts returns the number of entries that a symmetric tensor with these levels stores: one for each vector of counts of the levels.
func counts(l countspace.Levels) int { return product(l.Shape()) }

// entries draws n numbers from (0.1, 2). Each is 0 with probability opts.Zeros; half of them are negative if opts.Negative.
func entries(rng *rand.Rand, n int, opts SmallOptions) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 0.1 + 1.9*rng.Float64()
		if opts.Negative && rng.IntN(2) == 0 {
			out[i] = -out[i]
		}
		if rng.Float64() < opts.Zeros {
			out[i] = 0
		}
	}
	return out
}

// Evidence draws evidence for a model: a third of the variables is observed and a third gets soft evidence, on average and independently.
func Evidence(rng *rand.Rand, m *factorgraph.Model) factorgraph.Evidence {
	var e factorgraph.Evidence
	for i, d := range m.Domains {
		if rng.IntN(3) == 0 {
			e.Hard = append(e.Hard, factorgraph.Observation{Var: i, Value: rng.IntN(d)})
		}
		if rng.IntN(3) == 0 {
			e.Soft = append(e.Soft, factorgraph.Likelihood{Var: i, Weights: entries(rng, d, SmallOptions{})})
		}
	}
	return e
}
