// Single entries of a tensor, in any form, of any range.

package tensor

import (
	"math"
	"math/big"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// At returns entry x of a valid tensor. Cost: O(1) dense, O(rank·n) CP, O(terms·n) symmetric forms.
// It panics, like a slice, if x is outside the shape.
func At(t Tensor, x []int) scaled.Number {
	switch t := t.(type) {
	case *Dense:
		i := 0
		for mode, d := range t.Shape {
			i = i*d + x[mode]
		}
		return scaled.FromFloat(t.Data[i])
	case *CP:
		terms := make([][]scaled.Number, len(t.Weights))
		for i := range terms {
			terms[i] = t.termAt(i, x)
		}
		return sumOfProducts(terms)
	case *Symmetric:
		return t.Values.At(countIndex(t.Levels, x))
	case *SymmetryCP:
		c := countIndex(t.Levels, x)
		terms := make([][]scaled.Number, len(t.Terms))
		for i, term := range t.Terms {
			terms[i] = []scaled.Number{scaled.FromFloat(term.Alpha), term.S.At(c)}
			for mode, v := range term.R {
				if v != nil {
					terms[i] = append(terms[i], scaled.FromFloat(v[x[mode]]))
				}
			}
		}
		return sumOfProducts(terms)
	}
	panic("tensor: unknown form")
}

// termAt returns the factors of Weights[i] Π_ℓ Vectors[ℓ][i, x_ℓ].
func (t *CP) termAt(i int, x []int) []scaled.Number {
	p := []scaled.Number{scaled.FromFloat(t.Weights[i])}
	for mode, v := range t.Vectors {
		if v != nil {
			p = append(p, scaled.FromFloat(v[i*t.Shape[mode]+x[mode]]))
		} else if x[mode] != i {
			return []scaled.Number{{}}
		}
	}
	return p
}

// The precision of an entry whose terms have both signs is the difference of their exponents plus entryBits: nothing is
// lost up to maxEntryBits.
const (
	entryBits    = 2100
	maxEntryBits = 1 << 20
)

// sumOfProducts returns Σ_i Π_k terms[i][k]. Terms of one sign are multiplied
// and added with a rounding each; where both signs meet, in entryBits.
func sumOfProducts(terms [][]scaled.Number) scaled.Number {
	var sum scaled.Number
	above, below := false, false // terms of both signs
	low := int64(math.MaxInt64)
	high := int64(math.MinInt64)

	for _, factors := range terms {
		p := scaled.One
		for _, f := range factors {
			p = p.Mul(f)
		}
		above = above || p.Sign() > 0
		below = below || p.Sign() < 0
		if !p.IsZero() {
			low = min(low, p.Exp)
			high = max(high, p.Exp)
		}
		sum = sum.Add(p)
	}

	if !above || !below || !sum.IsFinite() {
		return sum
	}

	bits := uint(min(high-low+entryBits, maxEntryBits))
	exact := new(big.Float).SetPrec(bits)
	for _, factors := range terms {
		p := new(big.Float).SetPrec(bits).SetInt64(1)
		for _, f := range factors {
			p.Mul(p, f.Wide().Big(bits))
		}
		exact.Add(exact, p)
	}

	return scaled.FromBig(exact)
}

// asSymmetryCP views t as a symmetry-CP tensor of one term.
func (t *Symmetric) asSymmetryCP() *SymmetryCP {
	return &SymmetryCP{
		Shape:  t.Shape,
		Levels: t.Levels,
		Terms:  []SymmetryRankOne{{Alpha: 1, S: t.Values}},
	}
}

// countIndex returns the index of count(x) in the box of the levels.
func countIndex(l countspace.Levels, x []int) int {
	step := levelSteps(l)
	i := 0
	for mode, of := range l.Of {
		i += step[of[x[mode]]]
	}
	return i
}

// levelSteps returns per level the step of one leg at that level in the index of the count vector; 0 for level 0.
func levelSteps(l countspace.Levels) []int {
	return append([]int{0}, strides(l.Shape())...)
}
