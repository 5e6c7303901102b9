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
			terms[i] = t.factorsAt(i, x)
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

// factorsAt returns the factors of term i at the index x: Weights[i] and the entries Vectors[ℓ][i, x_ℓ]. If a vector that is the identity
// has 0 there, the only factor is 0.
func (t *CP) factorsAt(i int, x []int) []scaled.Number {
	factors := []scaled.Number{scaled.FromFloat(t.Weights[i])}
	for mode, v := range t.Vectors {
		if v != nil {
			factors = append(factors, scaled.FromFloat(v[i*t.Shape[mode]+x[mode]]))
		} else if x[mode] != i {
			return []scaled.Number{{}} // 0
		}
	}
	return factors
}

// The precision of an entry whose terms have both signs is the difference of their exponents plus entryBits: nothing is
// lost up to maxEntryBits.
const (
	entryBits    = 2100
	maxEntryBits = 1 << 20
)

// sumOfProducts returns Σ_i Π_k terms[i][k]. If all products have one sign, each product and each addition is rounded, which costs few
// bits of the sum. If there are both signs, so that products may cancel, the sum is computed again with entryBits bits and as many more
// as the products' exponents differ by.
func sumOfProducts(terms [][]scaled.Number) scaled.Number {
	var sum scaled.Number
	hasPositive, hasNegative := false, false
	low := int64(math.MaxInt64) // exponents of the smallest and the largest product
	high := int64(math.MinInt64)

	for _, factors := range terms {
		product := scaled.One
		for _, f := range factors {
			product = product.Mul(f)
		}
		hasPositive = hasPositive || product.Sign() > 0
		hasNegative = hasNegative || product.Sign() < 0
		if !product.IsZero() {
			low = min(low, product.Exp)
			high = max(high, product.Exp)
		}
		sum = sum.Add(product)
	}

	hasBothSigns := hasPositive && hasNegative
	if !hasBothSigns || !sum.IsFinite() {
		return sum
	}

	bits := uint(min(high-low+entryBits, maxEntryBits))
	exact := new(big.Float).SetPrec(bits)
	for _, factors := range terms {
		product := new(big.Float).SetPrec(bits).SetInt64(1)
		for _, f := range factors {
			product.Mul(product, f.Wide().Big(bits))
		}
		exact.Add(exact, product)
	}
	return scaled.FromBig(exact)
}

// asSymmetryCP returns t as a symmetry-CP tensor of one term, which shares its values.
func (t *Symmetric) asSymmetryCP() *SymmetryCP {
	return &SymmetryCP{
		Shape:  t.Shape,
		Levels: t.Levels,
		Terms:  []SymmetryRankOne{{Alpha: 1, S: t.Values}},
	}
}

// countIndex returns the index of the count vector of x in the box of the levels.
func countIndex(l countspace.Levels, x []int) int {
	step := levelSteps(l)
	i := 0
	for mode, levels := range l.Of {
		i += step[levels[x[mode]]]
	}
	return i
}

// levelSteps returns, for each level, by how much one leg at that level increases the index of a count vector: its stride, 0 for level 0.
func levelSteps(l countspace.Levels) []int {
	return append([]int{0}, strides(l.Shape())...)
}
