package closed

// Terms of both signs in closed forms:
// what cancels is measured by the same contraction without signs.

import (
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// judge fills Digits and Doubt of a component of a closed form that is exact on paper, and Doubt of a learned one whose value is
// nothing but rounding of its links' terms of both signs, which its residual does not know.
func (j form) judge(value *btn.Value, run func(form) (scaled.Number, error)) error {
	if j.closed && !j.signed() || !j.closed && !j.signedLinks() {
		return nil
	}

	positive := j.absolute()
	z, err := run(positive)
	if err != nil {
		return err
	}

	flops := 2 * float64(positive.Ops.MulAdds)

	// steps bounds the roundings along any one product.
	steps := float64(len(j.Net.Rounded)) + btn.ClosedFormRounding(j.whole) +
		float64(4*len(j.whole.Dims)+len(j.Net.Links))
	for _, d := range j.whole.Dims {
		steps += floats.SumRoundings(float64(d))
	}
	if n := len(j.s.Coef.Mant); n > 1 { // once a level of the tree of products
		steps += floats.SumRoundings(float64(n)) * float64(1+bits.Len(uint(len(j.whole.Dims))))
	}

	abs := z.Mul(j.Net.Scale.Abs())
	rounding := exact.Roundings(abs, steps)
	digits, doubt := exact.Cancelled(value.Z, abs, rounding)
	if j.closed {
		value.Flops += flops
		value.Digits, value.Rounding, value.Doubt = digits, rounding, doubt
	} else if math.Ldexp(steps, -53)*math.Pow(10, digits) >= 1 || value.Z.IsZero() {
		value.Doubt = doubt // no digit is known
	}
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

	return j.signedLinks()
}

// signedLinks reports whether a number of a link is below 0.
func (j form) signedLinks() bool {
	return slices.ContainsFunc(j.Net.Links, func(l btn.Link) bool { return tensor.Signed(l.T) })
}

// mixed reports whether a product over the links may have terms of both signs.
func (j form) mixed(weights []tensor.LegWeights) bool {
	return slices.ContainsFunc(j.s.Coef.Mant, below) || j.signedLinks() ||
		slices.ContainsFunc(weights, func(w tensor.LegWeights) bool { return slices.ContainsFunc(w, below) })
}

// absolute is the contraction with the absolute value of every number.
func (j form) absolute() form {
	net := *j.Net
	net.Links = slices.Clone(net.Links)
	for k := range net.Links {
		net.Links[k].T = contraction.Absolute(net.Links[k].T)
	}

	j.rotations = contraction.AbsoluteLists(j.rotations)
	j.s.Coef.Mant = linalg.Abs(j.s.Coef.Mant)
	j.r = contraction.AbsoluteLists(j.r)
	if j.cp != nil {
		j.cp = contraction.Absolute(j.cp).(*tensor.CP)
	}
	j.Net = &net
	j.M = nil
	ops := *j.Ops
	ops.MulAdds = 0
	j.Ops = &ops
	return j
}
