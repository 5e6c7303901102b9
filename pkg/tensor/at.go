// Single entries of a tensor, in any form, of any range.

package tensor

import (
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
		var sum scaled.Number
		for i := range t.Weights {
			sum = sum.Add(t.termAt(i, x))
		}
		return sum
	case *Symmetric:
		return t.Values.At(countIndex(t.Levels, x))
	case *SymmetryCP:
		c := countIndex(t.Levels, x)
		var sum scaled.Number
		for _, term := range t.Terms {
			p := scaled.FromFloat(term.Alpha).Mul(term.S.At(c))
			for mode, v := range term.R {
				if v != nil {
					p = p.Mul(scaled.FromFloat(v[x[mode]]))
				}
			}
			sum = sum.Add(p)
		}
		return sum
	}
	panic("tensor: unknown form")
}

// termAt returns Weights[i] Π_ℓ Vectors[ℓ][i, x_ℓ].
func (t *CP) termAt(i int, x []int) scaled.Number {
	p := scaled.FromFloat(t.Weights[i])
	for mode, v := range t.Vectors {
		if v != nil {
			p = p.Mul(scaled.FromFloat(v[i*t.Shape[mode]+x[mode]]))
		} else if x[mode] != i {
			return scaled.Number{}
		}
	}
	return p
}

// asSymmetryCP views t as a symmetry-CP tensor of one term.
func (t *Symmetric) asSymmetryCP() *SymmetryCP {
	return &SymmetryCP{Shape: t.Shape, Levels: t.Levels, Terms: []SymmetryRankOne{{Alpha: 1, S: t.Values}}}
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

// levelSteps returns per level what one leg at that level adds to the index of the count vector; 0 for level 0.
func levelSteps(l countspace.Levels) []int {
	return append([]int{0}, strides(l.Shape())...)
}
