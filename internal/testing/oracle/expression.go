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

// Sum adds up all terms of an expression, assignment by assignment, index after index: a table is multiplied in once the last of its
// indices has a value. Numbers have so many bits; 0 stands for 160. It panics above MaxStates assignments.
func Sum(e *sumproduct.Expression, bits uint) Sums {
	if bits == 0 {
		bits = precision
	}
	states(e.Dims)
	s := summer{e: e, bits: bits, ready: make([][]int, len(e.Dims)), x: make([]int, len(e.Dims))}
	s.Parts = make([][]*big.Float, len(e.Dims))
	for i, d := range e.Dims {
		for range d {
			s.Parts[i] = append(s.Parts[i], s.number(0, 0))
		}
	}
	s.read = s.number(0, 0)
	for range len(e.Dims) + 1 {
		s.levels = append(s.levels, level{s.number(0, 0), s.number(0, 0), s.number(0, 0)})
	}
	first := s.number(e.Scale.Mant, e.Scale.Exp)
	for t, table := range e.Tables {
		last := -1
		for _, i := range table.Scope {
			last = max(last, i)
		}
		if last < 0 {
			first.Mul(first, s.entry(t))
		} else {
			s.ready[last] = append(s.ready[last], t)
		}
	}
	s.Z, s.Terms = s.from(0, first)
	return s.Sums
}

type summer struct {
	Sums
	e     *sumproduct.Expression
	bits  uint
	ready [][]int // by index: tables whose last index it is
	x     []int

	levels []level
	read   *big.Float // the result of entry
}

func (s *summer) number(mant float64, exp int64) *big.Float {
	f := new(big.Float).SetPrec(s.bits).SetFloat64(mant)
	return f.SetMantExp(f, int(exp))
}

// entry is table t at x, until the next call.
func (s *summer) entry(t int) *big.Float {
	table, at := &s.e.Tables[t], 0
	for _, i := range table.Scope {
		at = at*s.e.Dims[i] + s.x[i]
	}
	if table.Exp != nil {
		return s.number(table.Data[at], table.Exp[at])
	}
	return s.read.SetFloat64(table.Data[at])
}

// level is room for the numbers of one index.
type level struct{ product, z, terms *big.Float }

// from sums over the indices from i on, p the product of the tables before. Its results are overwritten by the next call.
func (s *summer) from(i int, p *big.Float) (z, terms *big.Float) {
	l := &s.levels[i]
	if i == len(s.e.Dims) {
		return p, l.terms.Abs(p)
	}
	l.z.SetInt64(0)
	l.terms.SetInt64(0)
	for v := range s.e.Dims[i] {
		s.x[i] = v
		l.product.Set(p)
		for _, t := range s.ready[i] {
			l.product.Mul(l.product, s.entry(t))
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
