package preprocess

// Loss of digits in sums of terms of both signs.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// digitsKept bounds the cancellation of terms of both signs in a sum that was
	// rounded: three digits of sixteen.
	digitsKept = 0x1p-10
	// errorKept is the error, in units of 2^-53, above which nothing more may cancel:
	// sums of sums lose three digits each.
	errorKept = 1 << 16
	// harmless is the factor of cancellation that is always allowed.
	harmless = 1.5
	// maxExactFactors bounds exactSum, whose cost doubles with every factor.
	maxExactFactors = 4
)

// termSum watches the terms of one sum. The zero value is an empty sum.
type termSum struct {
	size    float64 // Σ|terms|
	rounded bool    // a factor, a product or an addition was
}

// add takes the product of factors at some places, rounded to p, which is added to total.
func (s *termSum) add(factors [][]float64, places []int, total, p float64) {
	s.size += math.Abs(p)
	if s.rounded {
		return
	}

	// A product is exact if the fused multiplication leaves no rest,
	// a sum if the two-sum does not.
	product := 1.0
	for k, f := range factors {
		next := float64(product * f[places[k]])
		s.rounded = s.rounded || math.FMA(product, f[places[k]], -next) != 0
		product = next
	}

	sum := total + p
	v := sum - total
	s.rounded = s.rounded || (total-(sum-v))+(p-v) != 0
}

// cancels reports whether digits are gone which the exact sum of the terms may have.
func (s *termSum) cancels(total float64) bool {
	return s.rounded && math.Abs(total)*harmless < s.size
}

// sumErrors bounds the error of a table whose entries are sums.
type sumErrors struct {
	factors   float64 // error of the factors together, in units of 2^-53
	roundings float64 // of one sum
	signed    bool    // terms may be of both signs
	condition float64 // Σ|terms| over |Σ terms| of a sum that was rounded, at most
}

// admit takes a sum in. It reports whether its digits are there: few have cancelled, or nothing was rounded.
func (s *sumErrors) admit(terms *termSum, total float64) bool {
	switch {
	case !s.signed:
		s.condition = 1
	case !terms.rounded || terms.size == 0:
	case math.Abs(total) < digitsKept*terms.size:
		return false
	default:
		s.condition = max(s.condition, terms.size/math.Abs(total))
	}
	return s.condition <= harmless || s.bound() <= errorKept
}

// bound is the error of the table's entries.
func (s *sumErrors) bound() float64 { return (s.factors + s.roundings) * s.condition }

// exactSum returns the sum of the products of factors at the next n values, correctly rounded from the
// exact one: every product is written as a sum of numbers that are exact. The result may be beyond
// float64: ±Inf, or too small.
func exactSum(walk *sumproduct.Walk, factors [][]float64, n int) float64 {
	var terms []scaled.Number
	for range n {
		first := len(terms)
		terms = append(terms, scaled.One)
		for k, f := range factors {
			x := scaled.FromFloat(f[walk.At[k]])
			for t, y := range terms[first:] { // a product, and its rounding loss
				high := float64(x.Mant * y.Mant)
				terms[first+t] = scaled.Make(high, x.Exp+y.Exp)
				terms = append(terms, scaled.Make(math.FMA(x.Mant, y.Mant, -high), x.Exp+y.Exp))
			}
		}
		walk.Next()
	}
	return scaled.Sum(terms).Float64()
}
