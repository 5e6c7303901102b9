package contraction

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Tensors without signs.

// Absolute returns a tensor of the same form as t whose parameters, the entries, weights, vectors and coefficients, are the absolute values
// of those of t.
func Absolute(t tensor.Tensor) tensor.Tensor {
	switch t := t.(type) {
	case *tensor.Dense:
		return &tensor.Dense{Shape: t.Shape, Data: linalg.Abs(t.Data)}
	case *tensor.CP:
		return &tensor.CP{
			Shape:   t.Shape,
			Weights: linalg.Abs(t.Weights),
			Vectors: AbsoluteLists(t.Vectors),
		}
	case *tensor.Symmetric:
		return &tensor.Symmetric{
			Shape:  t.Shape,
			Levels: t.Levels,
			Values: scaled.Vector{Mant: linalg.Abs(t.Values.Mant), Exp: t.Values.Exp},
		}
	case *tensor.SymmetryCP:
		absolute := &tensor.SymmetryCP{Shape: t.Shape, Levels: t.Levels}
		for _, term := range t.Terms {
			s := scaled.Vector{Mant: linalg.Abs(term.S.Mant), Exp: term.S.Exp}
			absolute.Terms = append(absolute.Terms, tensor.SymmetryRankOne{
				Alpha: math.Abs(term.Alpha),
				S:     s,
				R:     AbsoluteLists(term.R),
			})
		}
		return absolute
	}
	return t
}

// AbsoluteLists returns the lists with the absolute value of every number. A nil list, which stands for ones, stays nil.
func AbsoluteLists(lists [][]float64) [][]float64 {
	if lists == nil {
		return nil
	}
	absolute := make([][]float64, len(lists))
	for k, list := range lists {
		absolute[k] = linalg.Abs(list)
	}
	return absolute
}
