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

// keepDigits computes again, in more than float64, the entries of a table whose terms cancelled.
// Cost of the terms once more, and of At per such entry; nothing where all terms have one sign.
func keepDigits(t Tensor, table *Dense) {
	size := absolute(t)
	if size == nil {
		return
	}

	sums := &Dense{Shape: table.Shape, Data: make([]float64, len(table.Data))}
	sumTerms(size, sums)
	x := make([]int, len(table.Shape))
	for i, v := range table.Data {
		if math.Abs(v) < lostShare*sums.Data[i] {
			table.Data[i] = At(t, x).Float64()
		}
		advance(x, table.Shape)
	}
}

// Signed reports whether a number of t is below 0:
// terms of its entries, or of sums of them, may cancel. Linear time.
func Signed(t Tensor) bool {
	any := func(lists ...[]float64) bool {
		return slices.ContainsFunc(lists, func(list []float64) bool {
			return slices.ContainsFunc(list, func(x float64) bool { return x < 0 })
		})
	}
	switch t := t.(type) {
	case *Dense:
		return any(t.Data)
	case *CP:
		return any(t.Weights) || any(t.Vectors...) && slices.ContainsFunc(t.Vectors, func(list []float64) bool {
			d := len(list) / max(1, len(t.Weights))
			for i, w := range t.Weights { // a term of weight 0 has no sign
				if w != 0 && any(list[min(i*d, len(list)):min((i+1)*d, len(list))]) {
					return true
				}
			}
			return false
		})
	case *Symmetric:
		return any(t.Values.Mant)
	case *SymmetryCP:
		return slices.ContainsFunc(t.Terms, func(term SymmetryRankOne) bool {
			return term.Alpha < 0 || any(term.S.Mant) || any(term.R...)
		})
	}
	return false
}

// absolute returns t with all its numbers made positive;
// nil where none is negative, and for a table, whose entries are no sums.
func absolute(t Tensor) Tensor {
	any := false
	abs := func(list []float64) []float64 {
		if !slices.ContainsFunc(list, func(x float64) bool { return x < 0 }) {
			return list
		}
		any = true
		out := make([]float64, len(list))
		for i, x := range list {
			out[i] = math.Abs(x)
		}
		return out
	}

	var out Tensor
	switch t := t.(type) {
	case *CP:
		c := &CP{
			Shape:   t.Shape,
			Weights: abs(t.Weights),
			Vectors: make([][]float64, len(t.Vectors)),
		}
		for mode, v := range t.Vectors {
			if c.Vectors[mode] = v; v != nil {
				c.Vectors[mode] = abs(v)
			}
		}
		out = c
	case *SymmetryCP:
		s := &SymmetryCP{Shape: t.Shape, Levels: t.Levels, Terms: slices.Clone(t.Terms)}
		for i := range s.Terms {
			term := &s.Terms[i]
			any = any || term.Alpha < 0
			term.Alpha = math.Abs(term.Alpha)
			term.S = scaled.Vector{Mant: abs(term.S.Mant), Exp: term.S.Exp}
			term.R = slices.Clone(term.R)
			for leg, v := range term.R {
				if v != nil {
					term.R[leg] = abs(v)
				}
			}
		}
		out = s
	}

	if !any {
		return nil
	}
	return out
}
