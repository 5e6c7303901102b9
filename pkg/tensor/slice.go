// Slices, multiples and reorderings.

package tensor

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Fix returns the slice of t at value of a mode: a tensor of one mode fewer, in the form of t (a CP whose vectors are
// the identity keeps one term; symmetric values move by the level of value). t is not changed. Weights of CP terms are
// multiplied in float64; symmetric values carry exponents.
// It panics, like a slice, if mode or value is out of range. Cost O(size of t).
func Fix(t Tensor, mode, value int) Tensor {
	switch t := t.(type) {
	case *Dense:
		return t.fix(mode, value)
	case *CP:
		return t.fix(mode, value)
	case *Symmetric:
		levels, move := fixLevels(t.Levels, mode, value)
		return &Symmetric{Shape: without(t.Shape, mode), Levels: levels, Values: move(t.Values)}
	case *SymmetryCP:
		levels, move := fixLevels(t.Levels, mode, value)
		out := &SymmetryCP{Shape: without(t.Shape, mode), Levels: levels}
		for _, term := range t.Terms {
			f := SymmetryRankOne{Alpha: term.Alpha, S: move(term.S)}
			if term.R != nil {
				f.R = without(term.R, mode)
				if v := term.R[mode]; v != nil {
					f.S = times(f.S, v[value])
				}
			}
			out.Terms = append(out.Terms, f)
		}
		return out
	}
	panic("tensor: unknown form")
}

func (t *Dense) fix(mode, value int) *Dense {
	step := strides(t.Shape)[mode]
	d := t.Shape[mode]
	out := &Dense{Shape: without(t.Shape, mode), Data: make([]float64, 0, len(t.Data)/d)}
	for at := value * step; at < len(t.Data); at += d * step {
		out.Data = append(out.Data, t.Data[at:at+step]...)
	}
	return out
}

func (t *CP) fix(mode, value int) *CP {
	out := &CP{Shape: without(t.Shape, mode), Vectors: without(t.Vectors, mode)}
	v, d := t.Vectors[mode], t.Shape[mode]
	if v == nil {
		return out.keepTerm(t.Weights[value], value)
	}
	for i, w := range t.Weights {
		out.Weights = append(out.Weights, w*v[i*d+value])
	}
	return out
}

// keepTerm leaves only term i of the vectors, with a weight.
func (t *CP) keepTerm(weight float64, i int) *CP {
	t.Weights = []float64{weight}
	for mode, d := range t.Shape {
		t.Vectors[mode] = t.vector(i, mode, d)
	}
	return t
}

// fixLevels returns the levels without a leg, and how values over their box follow from those with the leg at value.
func fixLevels(l countspace.Levels, mode, value int) (countspace.Levels, func(scaled.Vector) scaled.Vector) {
	less := countspace.Levels{D: l.D, Of: without(l.Of, mode)}
	wide, narrow := l.Shape(), less.Shape()
	at := embed(narrow, wide)
	shift := levelSteps(l)[l.Of[mode][value]]
	return less, func(s scaled.Vector) scaled.Vector {
		out := countspace.New(narrow)
		for i, from := range at {
			set(out, i, s.At(from+shift))
		}
		return out.Coef
	}
}

// times returns f·s.
func times(s scaled.Vector, f float64) scaled.Vector {
	out := scaled.Vector{Mant: make([]float64, len(s.Mant)), Exp: make([]int64, len(s.Mant))}
	for i := range s.Mant {
		v := s.At(i).Mul(scaled.FromFloat(f))
		out.Mant[i], out.Exp[i] = v.Mant, v.Exp
	}
	return out
}

// Scale returns f·t in the form of t. Entries of a table are rounded once and may leave the range of float64; the other
// forms keep their vectors and scale weights or values.
func Scale(t Tensor, f float64) Tensor {
	switch t := t.(type) {
	case *Dense:
		return &Dense{Shape: t.Shape, Data: scaledBy(t.Data, f)}
	case *CP:
		return &CP{Shape: t.Shape, Weights: scaledBy(t.Weights, f), Vectors: t.Vectors}
	case *Symmetric:
		return &Symmetric{Shape: t.Shape, Levels: t.Levels, Values: times(t.Values, f)}
	case *SymmetryCP:
		out := &SymmetryCP{Shape: t.Shape, Levels: t.Levels}
		for _, term := range t.Terms {
			out.Terms = append(out.Terms, SymmetryRankOne{Alpha: term.Alpha, S: times(term.S, f), R: term.R})
		}
		return out
	}
	panic("tensor: unknown form")
}

func scaledBy(list []float64, f float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = x * f
	}
	return out
}

// Permute returns the table whose mode i is mode order[i] of t. It returns ErrShape if order is not a permutation.
func (t *Dense) Permute(order []int) (*Dense, error) {
	seen := make([]bool, len(t.Shape))
	for _, mode := range order {
		if len(order) != len(seen) || mode < 0 || mode >= len(seen) || seen[mode] {
			return nil, fmt.Errorf("%w: %v is not a permutation of %d modes", ErrShape, order, len(seen))
		}
		seen[mode] = true
	}
	if len(order) != len(seen) {
		return nil, fmt.Errorf("%w: %v is not a permutation of %d modes", ErrShape, order, len(seen))
	}
	step := strides(t.Shape)
	out := &Dense{Shape: make([]int, len(order)), Data: make([]float64, len(t.Data))}
	moved := make([]int, len(order))
	for i, mode := range order {
		out.Shape[i], moved[i] = t.Shape[mode], step[mode]
	}
	x := make([]int, len(order))
	for i := range out.Data {
		at := 0
		for mode, s := range moved {
			at += x[mode] * s
		}
		out.Data[i] = t.Data[at]
		advance(x, out.Shape)
	}
	return out, nil
}

// MaxAbs returns the largest |entry| of a table.
func (t *Dense) MaxAbs() float64 { return maxAbs(t.Data) }
