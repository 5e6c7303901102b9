package closed

// Terms of both signs in closed forms: what cancels is measured by the same contraction without signs.

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

// judgeCancellation states in a value how much of it cancels, by the same contraction without signs. If a closed form has negative numbers,
// it sets Digits, Rounding and Doubt. If a learned component meets links with negative numbers, it sets Doubt if no digit of the value is
// known; the component's residual does not show that. Otherwise nothing cancels, and it does nothing.
func (j form) judgeCancellation(value *btn.Value, run func(form) (scaled.Number, error)) error {
	canCancel := j.hasSignedLinks()
	if j.isClosedForm {
		canCancel = j.isSigned()
	}
	if !canCancel {
		return nil
	}

	positive := j.absolute()
	z, err := run(positive)
	if err != nil {
		return err
	}
	flops := 2 * float64(positive.Ops.MulAdds)

	// Bound the roundings of any one term, in 2^−53 of it: one for each rounded input and each link, and 4 for each leg.
	roundings := float64(len(j.Net.Rounded)) + btn.ClosedFormRounding(j.fullNetwork) +
		float64(4*len(j.fullNetwork.Dims)+len(j.Net.Links))
	for _, d := range j.fullNetwork.Dims {
		roundings += floats.SumRoundings(float64(d))
	}
	if n := len(j.symmetricPoly.Coef.Mant); n > 1 { // once for each level of the product tree
		roundings += floats.SumRoundings(float64(n)) * float64(1+bits.Len(uint(len(j.fullNetwork.Dims))))
	}

	// Compare the value with that without signs.
	abs := z.Mul(j.Net.Scale.Abs())
	rounding := exact.RoundingBound(abs, roundings)
	digits, doubt := exact.CancelledDigits(value.Z, abs, rounding)
	if j.isClosedForm {
		value.Flops += flops
		value.Digits, value.Rounding, value.Doubt = digits, rounding, doubt
	} else if math.Ldexp(roundings, -53)*math.Pow(10, digits) >= 1 || value.Z.IsZero() {
		value.Doubt = doubt // the rounding times 10^digits, the factor that cancels, is the value or more: no digit is known
	}
	return nil
}

// isNegative reports whether a number is below 0.
func isNegative(x float64) bool { return x < 0 }

// isSigned reports whether a number of the component or of a link is below 0.
func (j form) isSigned() bool {
	hasNegative := func(lists ...[]float64) bool {
		return slices.ContainsFunc(lists,
			func(list []float64) bool { return slices.ContainsFunc(list, isNegative) })
	}
	if hasNegative(j.symmetricPoly.Coef.Mant) || hasNegative(j.vectors...) || hasNegative(j.rotations...) {
		return true
	}
	if j.cp != nil && tensor.Signed(j.cp) {
		return true
	}

	return j.hasSignedLinks()
}

// hasSignedLinks reports whether a number of a link is below 0.
func (j form) hasSignedLinks() bool {
	return slices.ContainsFunc(j.Net.Links, func(l btn.Link) bool { return tensor.Signed(l.T) })
}

// mayCancel reports whether a product over the links may have terms of both signs: whether a number of S, of a link or of the leg weights
// is below 0.
func (j form) mayCancel(weights []tensor.LegWeights) bool {
	return slices.ContainsFunc(j.symmetricPoly.Coef.Mant, isNegative) || j.hasSignedLinks() ||
		slices.ContainsFunc(weights, func(w tensor.LegWeights) bool { return slices.ContainsFunc(w, isNegative) })
}

// absolute returns the same contraction with the absolute value of every number, without marginals, and with a count of multiply-adds of
// its own. j is a copy, which it changes and returns.
func (j form) absolute() form {
	net := *j.Net
	net.Links = slices.Clone(net.Links)
	for k := range net.Links {
		net.Links[k].T = contraction.Absolute(net.Links[k].T)
	}

	j.rotations = contraction.AbsoluteLists(j.rotations)
	j.symmetricPoly.Coef.Mant = linalg.Abs(j.symmetricPoly.Coef.Mant)
	j.vectors = contraction.AbsoluteLists(j.vectors)
	if j.cp != nil {
		j.cp = contraction.Absolute(j.cp).(*tensor.CP)
	}
	j.Net = &net
	j.Marginals = nil
	ops := *j.Ops
	ops.MulAdds = 0
	j.Ops = &ops
	return j
}
