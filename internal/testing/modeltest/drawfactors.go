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

// Factor draws a factor of any kind over a scope.
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

// cp draws a CP factor: of terms above 0, a clause, a parity, a noisy-or, or the difference of two
// terms.
func (d *Drawer) cp(dims []int) tensor.Tensor {
	if !slices.ContainsFunc(dims, func(n int) bool { return n != 2 }) && d.Chance(0.3) {
		return d.known(dims)
	}
	if d.Chance(0.25) {
		return d.difference(dims)
	}

	rank := d.Rand.IntN(4)
	if rank == 0 && d.Chance(0.9) { // no terms are the factor 0
		rank = 2
	}
	if len(dims) > 0 && d.Chance(0.2) {
		rank = dims[0]
	}
	t := &tensor.CP{Shape: dims, Weights: d.Numbers(rank), Vectors: make([][]float64, len(dims))}
	for l, n := range dims {
		if n == rank && d.Chance(0.25) {
			continue // the identity
		}
		t.Vectors[l] = d.Numbers(rank * n)
	}

	return t
}

// known draws a clause, a parity or a noisy-or.
func (d *Drawer) known(dims []int) tensor.Tensor {
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
		must(err)
		return t
	}

	if n == 0 {
		return factorgraph.Clause()
	}
	p := make([]float64, n-1)
	for i := range p {
		p[i] = Pick(d.Rand, 0, 1, d.Rand.Float64(), d.Rand.Float64(), 1e-9)
	}

	t, err := factorgraph.NoisyOr(Pick(d.Rand, 0, 0, d.Rand.Float64(), 1e-12), p...)
	must(err)
	return t
}

// must panics where a constructor of the product refuses arguments that its documentation allows.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// difference is u − v with v at most u, entry by entry, as a CP of rank 2.
func (d *Drawer) difference(dims []int) tensor.Tensor {
	w := d.Positive()
	t := &tensor.CP{
		Shape:   dims,
		Weights: []float64{w, -w * Pick(d.Rand, 0.5, 1, d.Rand.Float64())},
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

// levels draws the counted levels, and returns the number of count vectors.
func (d *Drawer) levels(dims []int) (countspace.Levels, int) {
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
			case 1: // the value, as far as levels go
				l.Of[i][x] = uint8(min(x, l.D-1))
			default:
				l.Of[i][x] = uint8(d.Rand.IntN(l.D))
			}
		}
	}

	return l, counts(l)
}

// values draws the values of count vectors; those that no assignment has may be anything.
func (d *Drawer) values(l countspace.Levels, box int) scaled.Vector {
	v := scaled.Vector{Mant: d.Numbers(box)}
	if d.Chance(0.05) { // exactly k, and the like
		clear(v.Mant)
		v.Mant[d.Rand.IntN(box)] = 1
	}
	if d.Chance(0.6) {
		v.Exp = make([]int64, box)
		for i := range v.Exp {
			v.Exp[i] = d.exponent()
		}
	}

	reached := reached(l, box)
	for i := range reached {
		if !reached[i] && d.Chance(0.3) {
			v.Mant[i] = -d.Positive()
		}
	}
	return v
}

// reached marks the count vectors of some assignment.
func reached(l countspace.Levels, box int) []bool {
	list, places, stride := make([]bool, box), []int{0}, box
	strides := make([]int, l.D)
	for a, side := range l.Shape() {
		stride /= side
		strides[a+1] = stride
	}
	for _, levels := range l.Of {
		set := map[int]bool{}
		for _, from := range places {
			for _, a := range levels {
				set[from+strides[a]] = true
			}
		}
		places = slices.Collect(maps.Keys(set))
	}
	for _, i := range places {
		list[i] = true
	}
	return list
}

// symmetryCP draws terms above 0, or a term less a part of it.
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
			if d.Chance(0.6) {
				term.R[l] = d.Numbers(n)
			}
		}
		if d.Chance(0.1) {
			term.R = nil
		}
		t.Terms = append(t.Terms, term)
	}

	if terms > 0 && d.Chance(0.2) {
		t.Terms = append(t.Terms, d.part(t.Terms[0]))
	}
	return t
}

// part is minus some part of a term.
func (d *Drawer) part(term tensor.SymmetryRankOne) tensor.SymmetryRankOne {
	p := tensor.SymmetryRankOne{Alpha: -term.Alpha * Pick(d.Rand, 1, 0.5, d.Rand.Float64()), R: term.R}
	p.S = scaled.Vector{Mant: slices.Clone(term.S.Mant), Exp: term.S.Exp}
	for i := range p.S.Mant {
		p.S.Mant[i] *= Pick(d.Rand, 0, 0.5, 1, d.Rand.Float64())
	}
	return p
}

// structured adds typical structures: parities, clauses, one count over everything, a chain of
// equalities, a noisy-or network.
func (d *Drawer) structured(m *factorgraph.Model) {
	n := len(m.Domains)
	for i := range m.Domains {
		m.Domains[i] = 2
	}
	if n == 0 {
		return
	}

	for v := range n { // priors
		if d.Chance(0.7) {
			m.Factors = append(m.Factors, factorgraph.Factor{
				Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: d.Numbers(2)},
			})
		}
	}

	kind := d.Rand.IntN(4)
	if kind == 3 {
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
		case 0:
			t, err = factorgraph.Parity(len(scope), d.Chance(0.5))
		case 1:
			t = d.known(dims)
		case 2:
			t, err = factorgraph.Equality(len(scope), 2)
		default:
			t = d.table(dims)
		}

		must(err)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
}
