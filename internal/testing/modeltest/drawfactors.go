package modeltest

// Factors of every kind for Drawer. Their entries are never negative, also where their terms are.

import (
	"maps"
	"slices"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Factor draws a factor of any kind over the variables of scope; nil is the empty scope.
func (d *Drawer) Factor(m *factorgraph.Model, scope []int) factorgraph.Factor {
	dims := make([]int, len(scope))
	for i, v := range scope {
		dims[i] = m.Domains[v]
	}
	if scope == nil {
		scope = []int{}
	}
	return factorgraph.Factor{Scope: scope, Table: d.table(dims)}
}

// table draws the tensor of a factor whose variables have dims[i] values: dense, CP, symmetric, or symmetric times CP.
func (d *Drawer) table(dims []int) tensor.Tensor {
	switch d.Rand.IntN(7) {
	case 0, 1:
		return d.cp(dims)
	case 2:
		levels, box := d.levels(dims)
		return &tensor.Symmetric{Shape: dims, Levels: levels, Values: d.values(levels, box)}
	case 3:
		return d.symmetryCP(dims)
	}
	return &tensor.Dense{Shape: dims, Data: d.Numbers(product(dims))}
}

// cp draws a CP factor, that is a sum of rank terms Σ_r w_r Π_l v_l[r][x_l]: with random numbers in it, or (if all variables are binary) a
// clause, a parity or a noisy-or, or the difference of two terms.
func (d *Drawer) cp(dims []int) tensor.Tensor {
	isBinary := !slices.ContainsFunc(dims, func(n int) bool { return n != 2 })
	if isBinary && d.Chance(0.3) {
		return d.logicFactor(dims)
	}
	if d.Chance(0.25) {
		return d.difference(dims)
	}

	// The number of terms. Without terms the factor is 0, which is rare.
	rank := d.Rand.IntN(4)
	if rank == 0 && d.Chance(0.9) {
		rank = 2
	}
	if len(dims) > 0 && d.Chance(0.2) {
		rank = dims[0]
	}

	t := &tensor.CP{Shape: dims, Weights: d.Numbers(rank), Vectors: make([][]float64, len(dims))}
	for l, n := range dims {
		if n == rank && d.Chance(0.25) {
			continue // nil vectors are the identity matrix
		}
		t.Vectors[l] = d.Numbers(rank * n)
	}

	return t
}

// logicFactor draws a clause, a parity or a noisy-or over binary variables.
func (d *Drawer) logicFactor(dims []int) tensor.Tensor {
	n := len(dims)
	switch d.Rand.IntN(3) {
	case 0:
		positive := make([]bool, n)
		for i := range positive {
			positive[i] = d.Chance(0.5)
		}
		return factorgraph.Clause(positive...)
	case 1:
		t, err := factorgraph.Parity(n, d.Chance(0.5))
		panicOnError(err)
		return t
	}

	// A noisy-or has one effect and n − 1 causes.
	if n == 0 {
		return factorgraph.Clause()
	}
	strengths := make([]float64, n-1)
	for i := range strengths {
		strengths[i] = Pick(d.Rand, 0, 1, d.Rand.Float64(), d.Rand.Float64(), 1e-9)
	}
	leak := Pick(d.Rand, 0, 0, d.Rand.Float64(), 1e-12)
	t, err := factorgraph.NoisyOr(leak, strengths...)
	panicOnError(err)
	return t
}

// panicOnError panics if err is not nil. It is for constructors whose documentation allows the arguments that tests give them.
func panicOnError(err error) {
	if err != nil {
		panic(err)
	}
}

// difference draws a CP tensor u − v of two terms where 0 ≤ v ≤ u in every entry: the weight and each vector entry of v are those of u
// times a number from 0 to 1.
func (d *Drawer) difference(dims []int) tensor.Tensor {
	weight := d.Positive()
	t := &tensor.CP{
		Shape:   dims,
		Weights: []float64{weight, -weight * Pick(d.Rand, 0.5, 1, d.Rand.Float64())},
		Vectors: make([][]float64, len(dims)),
	}
	for l, n := range dims {
		u := d.Numbers(n)
		t.Vectors[l] = append(t.Vectors[l], u...)
		for _, x := range u {
			t.Vectors[l] = append(t.Vectors[l], x*Pick(d.Rand, 0, 0.5, 1, 1, d.Rand.Float64()))
		}
	}
	return t
}

// levels draws a level from 0 to D − 1 for each value of each variable of a symmetric tensor, whose entries depend only on how many
// variables have a value of each level. box is the number of count vectors that such a tensor has a value for.
func (d *Drawer) levels(dims []int) (levels countspace.Levels, box int) {
	l := countspace.Levels{D: 2, Of: make([][]uint8, len(dims))}
	style := d.Rand.IntN(3)
	if style > 0 {
		l.D = 1 + d.Rand.IntN(4)
	}
	for i, n := range dims {
		l.Of[i] = make([]uint8, n)
		for x := range n {
			switch style {
			case 0: // two levels, 0 and the rest
				l.Of[i][x] = uint8(min(x, 1))
			case 1: // level x for value x; the last level for all values from D − 1 on
				l.Of[i][x] = uint8(min(x, l.D-1))
			default:
				l.Of[i][x] = uint8(d.Rand.IntN(l.D))
			}
		}
	}

	return l, counts(l)
}

// values draws the entries of a symmetric tensor, one for each of its box count vectors, at times with exponents of 2. They are 0 or
// positive; only count vectors that no assignment has may get a negative one.
func (d *Drawer) values(l countspace.Levels, box int) scaled.Vector {
	v := scaled.Vector{Mant: d.Numbers(box)}

	// Now and then one count vector has 1 and all others 0, as "exactly k of n" does.
	if d.Chance(0.05) {
		clear(v.Mant)
		v.Mant[d.Rand.IntN(box)] = 1
	}

	if d.Chance(0.6) {
		v.Exp = make([]int64, box)
		for i := range v.Exp {
			v.Exp[i] = d.exponent()
		}
	}

	isReached := reachedCounts(l, box)
	for i := range isReached {
		if !isReached[i] && d.Chance(0.3) {
			v.Mant[i] = -d.Positive()
		}
	}
	return v
}

// reachedCounts marks the count vectors (n_1, …, n_{D−1}) that some assignment has, where n_a variables have a value of level a.
// A count vector is numbered row-major: Σ_a n_a · strides[a]. Level 0 is not counted, so strides[0] is 0.
func reachedCounts(l countspace.Levels, box int) []bool {
	strides, stride := make([]int, l.D), box
	for a, side := range l.Shape() {
		stride /= side
		strides[a+1] = stride
	}

	// After each variable, indices are the count vectors of the variables so far.
	indices := []int{0}
	for _, levels := range l.Of {
		next := map[int]bool{}
		for _, index := range indices {
			for _, a := range levels {
				next[index+strides[a]] = true
			}
		}
		indices = slices.Collect(maps.Keys(next))
	}

	isReached := make([]bool, box)
	for _, index := range indices {
		isReached[index] = true
	}
	return isReached
}

// symmetryCP draws a sum of up to three terms, each a positive number times a symmetric tensor S times a vector R of each variable.
// At times a last term takes away a part of the first one, so that entries stay at or above 0.
func (d *Drawer) symmetryCP(dims []int) tensor.Tensor {
	levels, box := d.levels(dims)
	t := &tensor.SymmetryCP{Shape: dims, Levels: levels}
	terms := 1 + d.Rand.IntN(3)
	if d.Chance(0.03) {
		terms = 0 // the factor 0
	}
	for range terms {
		term := tensor.SymmetryRankOne{
			Alpha: d.Positive(),
			S:     d.values(levels, box),
			R:     make([][]float64, len(dims)),
		}
		for l, n := range dims {
			if d.Chance(0.6) { // otherwise nil, which is all 1
				term.R[l] = d.Numbers(n)
			}
		}
		if d.Chance(0.1) {
			term.R = nil // all vectors are 1
		}
		t.Terms = append(t.Terms, term)
	}

	if terms > 0 && d.Chance(0.2) {
		t.Terms = append(t.Terms, d.negativePart(t.Terms[0]))
	}
	return t
}

// negativePart draws a term whose entries are minus a fraction, from 0 to 1, of those of the given term.
func (d *Drawer) negativePart(term tensor.SymmetryRankOne) tensor.SymmetryRankOne {
	p := tensor.SymmetryRankOne{Alpha: -term.Alpha * Pick(d.Rand, 1, 0.5, d.Rand.Float64()), R: term.R}
	p.S = scaled.Vector{Mant: slices.Clone(term.S.Mant), Exp: term.S.Exp}
	for i := range p.S.Mant {
		p.S.Mant[i] *= Pick(d.Rand, 0, 0.5, 1, d.Rand.Float64())
	}
	return p
}

// addStructure makes all variables binary and adds priors and factors of one typical structure, each over up to four variables: parities,
// clauses and noisy-ors, equalities, or any factors beside one symmetric factor over all variables.
func (d *Drawer) addStructure(m *factorgraph.Model) {
	n := len(m.Domains)
	for i := range m.Domains {
		m.Domains[i] = 2
	}
	if n == 0 {
		return
	}

	// Priors of most variables.
	for v := range n {
		if d.Chance(0.7) {
			m.Factors = append(m.Factors, factorgraph.Factor{
				Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: d.Numbers(2)},
			})
		}
	}

	const (
		parities = iota
		logicFactors
		equalities
		anyBesideCount // any factors, beside one that counts all variables
	)
	kind := d.Rand.IntN(4)
	if kind == anyBesideCount {
		levels := countspace.TwoLevels(m.Domains)
		t := &tensor.Symmetric{Shape: m.Domains, Levels: levels, Values: d.values(levels, n+1)}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: UpTo(n), Table: t})
	}

	for range 1 + d.Rand.IntN(2*n) {
		scope := d.Shuffled(UpTo(n))[:min(n, 1+d.Rand.IntN(4))]
		dims := make([]int, len(scope))
		for i := range dims {
			dims[i] = 2
		}
		var t tensor.Tensor
		var err error
		switch kind {
		case parities:
			t, err = factorgraph.Parity(len(scope), d.Chance(0.5))
		case logicFactors:
			t = d.logicFactor(dims)
		case equalities:
			t, err = factorgraph.Equality(len(scope), 2)
		default:
			t = d.table(dims)
		}

		panicOnError(err)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
}
