// Sums of an expression by enumeration.

package oracle

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Sums are the value of an expression and its parts, not normalised.
type Sums struct {
	Z     *big.Float     // Scale · Σ_x Π_t T_t[x]
	Terms *big.Float     // the same over absolute values: the scale of rounding errors
	Parts [][]*big.Float // Parts[i][v] is the part of Z in which index i has value v
}

// Sum adds up all terms of an expression. Numbers have so many bits; 0 stands for 160. It panics above MaxStates assignments.
func Sum(e *sumproduct.Expression, bits uint) Sums {
	if bits == 0 {
		bits = precision
	}
	number := func(mant float64, exp int64) *big.Float {
		f := new(big.Float).SetPrec(bits).SetFloat64(mant)
		return f.SetMantExp(f, int(exp))
	}
	s := newSummer(e.Dims)
	for _, t := range e.Tables {
		s.multiply(t.Scope, func(x []int) *big.Float {
			at := position(x, t.Scope, e.Dims)
			if t.Exp != nil {
				return number(t.Data[at], t.Exp[at])
			}
			return number(t.Data[at], 0)
		})
	}
	return s.sum(number(e.Scale.Mant, e.Scale.Exp))
}

// position is the place of an entry in a table, given the values of its scope, the last one fastest.
func position(x, scope, dims []int) (at int) {
	for k, i := range scope {
		at = at*dims[i] + x[k]
	}
	return at
}

// summer adds up products of factors, assignment by assignment, index after index: a factor is multiplied in once the last index of its
// scope has a value, and a product of zero ends its branch.
type summer struct {
	Sums
	dims    []int
	allowed [][]int     // values by index
	factors [][]*factor // by the last index of their scopes, those without one in front
	x       []int
	levels  []level
}

// level is room for the numbers of one index.
type level struct{ product, z, terms *big.Float }

func newSummer(dims []int) *summer {
	s := &summer{dims: dims, allowed: make([][]int, len(dims)), factors: make([][]*factor, len(dims)+1), x: make([]int, len(dims))}
	for i, d := range dims {
		for v := range d {
			s.allowed[i] = append(s.allowed[i], v)
		}
	}
	return s
}

// factor is one of a product: its entries are each worked out once.
type factor struct {
	scope []int
	entry func(x []int) *big.Float // given the values of the scope
	known []*big.Float             // by position; empty above mostKnown
	local []int
}

// mostKnown bounds the entries that are kept of a factor.
const mostKnown = 1 << 16

// multiply adds a factor.
func (s *summer) multiply(scope []int, entry func(x []int) *big.Float) {
	f, size, last := &factor{scope: scope, entry: entry, local: make([]int, len(scope))}, 1, -1
	for _, i := range scope {
		size, last = min(size*s.dims[i], mostKnown+1), max(last, i)
	}
	if size <= mostKnown {
		f.known = make([]*big.Float, size)
	}
	s.factors[last+1] = append(s.factors[last+1], f)
}

// at is the entry at an assignment, which is not to be changed.
func (f *factor) at(assignment, dims []int) *big.Float {
	for k, i := range f.scope {
		f.local[k] = assignment[i]
	}
	if len(f.known) == 0 {
		return f.entry(f.local)
	}
	place := &f.known[position(f.local, f.scope, dims)]
	if *place == nil {
		*place = f.entry(f.local)
	}
	return *place
}

// sum adds up all products times the first number, in its precision.
func (s *summer) sum(first *big.Float) Sums {
	free := make([]int, len(s.dims))
	zero := func() *big.Float { return new(big.Float).SetPrec(first.Prec()) }
	s.Parts = make([][]*big.Float, len(s.dims))
	for i, d := range s.dims {
		free[i] = len(s.allowed[i])
		for range d {
			s.Parts[i] = append(s.Parts[i], zero())
		}
	}
	states(free)
	for range len(s.dims) + 1 {
		s.levels = append(s.levels, level{zero(), zero(), zero()})
	}
	for _, f := range s.factors[0] {
		first.Mul(first, f.at(nil, s.dims))
	}
	s.Z, s.Terms = s.from(0, first)
	return s.Sums
}

// from sums over the indices from i on, p the product of the factors before. Its results are overwritten by the next call.
func (s *summer) from(i int, p *big.Float) (z, terms *big.Float) {
	l := &s.levels[i]
	if i == len(s.dims) {
		return p, l.terms.Abs(p)
	}
	l.z.SetInt64(0)
	l.terms.SetInt64(0)
	for _, v := range s.allowed[i] {
		s.x[i] = v
		l.product.Set(p)
		for _, f := range s.factors[i+1] {
			l.product.Mul(l.product, f.at(s.x, s.dims))
		}
		if l.product.Sign() == 0 {
			continue
		}
		part, size := s.from(i+1, l.product)
		s.Parts[i][v].Add(s.Parts[i][v], part)
		l.z.Add(l.z, part)
		l.terms.Add(l.terms, size)
	}
	return l.z, l.terms
}

// Marginals returns Parts over Z, nil where Z is 0.
func (s Sums) Marginals() [][]float64 {
	if s.Z.Sign() == 0 {
		return nil
	}
	out := make([][]float64, len(s.Parts))
	for i, row := range s.Parts {
		for _, part := range row {
			p, _ := new(big.Float).Quo(part, s.Z).Float64()
			out[i] = append(out[i], p)
		}
	}
	return out
}

// Off returns |got − want| / size for got = mant·2^exp; 0 where got is want, for any size.
func Off(mant float64, exp int64, want, size *big.Float) float64 {
	if mant-mant != 0 {
		return math.Inf(1)
	}
	got := new(big.Float).SetPrec(max(want.Prec(), 64)).SetFloat64(mant)
	got.SetMantExp(got, int(exp))
	got.Sub(got, want)
	if got.Sign() == 0 {
		return 0
	}
	if size.Sign() == 0 {
		return math.Inf(1)
	}
	off, _ := got.Quo(got, size).Float64()
	return math.Abs(off)
}

// Float64 returns the sums as float64s, for expressions whose sums are some.
func (s Sums) Float64() (z, terms float64, parts [][]float64) {
	z, _ = s.Z.Float64()
	terms, _ = s.Terms.Float64()
	for _, row := range s.Parts {
		list := make([]float64, len(row))
		for v, part := range row {
			list[v], _ = part.Float64()
		}
		parts = append(parts, list)
	}
	return z, terms, parts
}
