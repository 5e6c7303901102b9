package contract

// Terms of both signs in closed forms:
// what cancels is measured by the same contraction without signs.

import (
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// judge fills Digits and Doubt of a component of a closed form that is exact on paper.
func (j form) judge(value *btn.Value, run func(form) (scaled.Number, error)) error {
	if !j.closed || !j.signed() {
		return nil
	}

	positive := j.absolute()
	z, err := run(positive)
	if err != nil {
		return err
	}

	value.Flops += 2 * float64(positive.ops.MulAdds)

	// steps bounds the roundings along any one product.
	steps := float64(len(j.net.Rounded)) + btn.ClosedFormRounding(j.net) +
		float64(4*len(j.net.Dims)+len(j.net.Links))
	for _, d := range j.net.Dims {
		steps += scaled.SumRoundings(float64(d))
	}
	if n := len(j.s.Coef.Mant); n > 1 { // once a level of the tree of products
		steps += scaled.SumRoundings(float64(n)) * float64(1+bits.Len(uint(len(j.net.Dims))))
	}

	value.Digits, value.Doubt = exact.Cancelled(value.Z, z.Mul(j.net.Scale.Abs()), steps)
	return nil
}

// below reports whether a number is below 0.
func below(x float64) bool { return x < 0 }

// signed reports whether a number of the component or of a link is below 0.
func (j form) signed() bool {
	any := func(lists ...[]float64) bool {
		return slices.ContainsFunc(lists,
			func(list []float64) bool { return slices.ContainsFunc(list, below) })
	}
	if any(j.s.Coef.Mant) || any(j.r...) || any(j.rotations...) {
		return true
	}
	if j.cp != nil && tensor.Signed(j.cp) {
		return true
	}

	return slices.ContainsFunc(j.net.Links, func(l btn.Link) bool { return tensor.Signed(l.T) })
}

// absolute is the contraction with the absolute value of every number.
func (j form) absolute() form {
	net := *j.net
	net.Links = slices.Clone(net.Links)
	for k := range net.Links {
		net.Links[k].T = absolute(net.Links[k].T)
	}

	j.rotations = absoluteLists(j.rotations)
	j.s.Coef.Mant = absoluteList(j.s.Coef.Mant)
	j.r = absoluteLists(j.r)
	if j.cp != nil {
		j.cp = absolute(j.cp).(*tensor.CP)
	}
	j.net = &net
	j.m = nil
	ops := *j.ops
	ops.MulAdds = 0
	j.ops = &ops
	return j
}

// absolute returns a tensor whose parameters are the absolute values of t's.
func absolute(t tensor.Tensor) tensor.Tensor {
	switch t := t.(type) {
	case *tensor.Dense:
		return &tensor.Dense{Shape: t.Shape, Data: absoluteList(t.Data)}
	case *tensor.CP:
		return &tensor.CP{
			Shape:   t.Shape,
			Weights: absoluteList(t.Weights),
			Vectors: absoluteLists(t.Vectors),
		}
	case *tensor.Symmetric:
		return &tensor.Symmetric{
			Shape:  t.Shape,
			Levels: t.Levels,
			Values: scaled.Vector{Mant: absoluteList(t.Values.Mant), Exp: t.Values.Exp},
		}
	case *tensor.SymmetryCP:
		out := &tensor.SymmetryCP{Shape: t.Shape, Levels: t.Levels}
		for _, term := range t.Terms {
			s := scaled.Vector{Mant: absoluteList(term.S.Mant), Exp: term.S.Exp}
			out.Terms = append(out.Terms, tensor.SymmetryRankOne{
				Alpha: math.Abs(term.Alpha),
				S:     s,
				R:     absoluteLists(term.R),
			})
		}
		return out
	}
	return t
}

// absoluteLists is absoluteList for each of several lists;
// nil lists, which stand for ones, stay nil.
func absoluteLists(lists [][]float64) [][]float64 {
	if lists == nil {
		return nil
	}
	out := make([][]float64, len(lists))
	for k, list := range lists {
		out[k] = absoluteList(list)
	}
	return out
}

// absoluteList returns |x| of every entry.
func absoluteList(list []float64) []float64 {
	if list == nil {
		return nil
	}
	out := make([]float64, len(list))
	for k, x := range list {
		out[k] = math.Abs(x)
	}
	return out
}
