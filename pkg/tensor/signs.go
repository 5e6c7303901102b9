package tensor

// Terms of both signs: the digits of a sum that float64 keeps, and the recovery of the others.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// lostShare is the least share of Σ|terms| that an entry added in float64 may be:
// 2^−43 of it is right then.
const lostShare = 0x1p-10

// recomputeCancelled computes again, in more than float64, the entries of a table of t that are far smaller than the sum of their absolute
// terms. Cost: that of the terms once more, and of At for each such entry; nothing if all terms have one sign.
func recomputeCancelled(t Tensor, table *Dense) {
	absoluteTerms := absolute(t)
	if absoluteTerms == nil {
		return
	}

	sums := &Dense{Shape: table.Shape, Data: make([]float64, len(table.Data))}
	sumTerms(absoluteTerms, sums)
	x := make([]int, len(table.Shape))
	for i, v := range table.Data {
		if math.Abs(v) < lostShare*sums.Data[i] {
			table.Data[i] = At(t, x).Float64()
		}
		advance(x, table.Shape)
	}
}

// isNegative reports whether x is below 0.
func isNegative(x float64) bool { return x < 0 }

// haveNegative reports whether a number in the lists is below 0.
func haveNegative(lists ...[]float64) bool {
	return slices.ContainsFunc(lists, func(list []float64) bool { return slices.ContainsFunc(list, isNegative) })
}

// Signed reports whether a number of t is below 0, so that terms of its entries, or of sums of them, may cancel. Terms of a CP tensor whose
// weight is 0 do not count. Linear time.
func Signed(t Tensor) bool {
	switch t := t.(type) {
	case *Dense:
		return haveNegative(t.Data)
	case *CP:
		if haveNegative(t.Weights) {
			return true
		}
		if !haveNegative(t.Vectors...) {
			return false
		}
		for _, list := range t.Vectors {
			d := len(list) / max(1, len(t.Weights)) // 0 for nil vectors, the identity; the slice below is empty then
			for i, w := range t.Weights {
				if w != 0 && haveNegative(list[min(i*d, len(list)):min((i+1)*d, len(list))]) {
					return true
				}
			}
		}
		return false
	case *Symmetric:
		return haveNegative(t.Values.Mant)
	case *SymmetryCP:
		return slices.ContainsFunc(t.Terms, func(term SymmetryRankOne) bool {
			return term.Alpha < 0 || haveNegative(term.S.Mant) || haveNegative(term.R...)
		})
	}
	return false
}

// absolute returns t with the absolute values of all its numbers: its entries are the sums of the absolute terms of t's. It returns nil if
// no number is below 0, and for a Dense or a Symmetric, whose entries are no sums. The result shares lists without negative numbers with t.
func absolute(t Tensor) Tensor {
	var a absoluteValues
	var result Tensor
	switch t := t.(type) {
	case *CP:
		c := &CP{
			Shape:   t.Shape,
			Weights: a.of(t.Weights),
			Vectors: make([][]float64, len(t.Vectors)),
		}
		for mode, v := range t.Vectors {
			c.Vectors[mode] = a.of(v)
		}
		result = c
	case *SymmetryCP:
		s := &SymmetryCP{Shape: t.Shape, Levels: t.Levels, Terms: slices.Clone(t.Terms)}
		for i := range s.Terms {
			term := &s.Terms[i]
			a.hasNegative = a.hasNegative || term.Alpha < 0
			term.Alpha = math.Abs(term.Alpha)
			term.S = scaled.Vector{Mant: a.of(term.S.Mant), Exp: term.S.Exp}
			term.R = slices.Clone(term.R)
			for leg, v := range term.R {
				term.R[leg] = a.of(v)
			}
		}
		result = s
	}

	if !a.hasNegative {
		return nil
	}
	return result
}

// absoluteValues notes whether a number of the lists that it was given is below 0.
type absoluteValues struct{ hasNegative bool }

// of returns the absolute values of a list: the list itself, nil for nil, if none of its numbers is below 0.
func (a *absoluteValues) of(list []float64) []float64 {
	if !slices.ContainsFunc(list, isNegative) {
		return list
	}
	a.hasNegative = true
	values := make([]float64, len(list))
	for i, x := range list {
		values[i] = math.Abs(x)
	}
	return values
}
