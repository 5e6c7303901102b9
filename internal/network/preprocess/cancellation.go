package preprocess

// Loss of digits in sums of terms of both signs.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// leastSumRatio is the smallest |Σ terms| / Σ|terms| that a rounded sum may have: 2^-10 loses three of sixteen decimal digits.
	leastSumRatio = 0x1p-10
	// maxError is the error, in units of 2^-53, above which nothing more may cancel: sums of sums lose three digits each.
	maxError = 1 << 16
	// harmless is the Σ|terms| / |Σ terms| that is always allowed, whatever the error is.
	harmless = 1.5
	// maxExactFactors bounds exactSum, whose cost doubles with every factor.
	maxExactFactors = 4
)

// termSum records what the terms of one sum lose by rounding and cancellation. The zero value is an empty sum.
type termSum struct {
	absoluteSum float64 // Σ|terms|
	isRounded   bool    // a factor, a product or an addition was rounded
}

// addTerm records that a term is added to a sum that was total before. The term is Π_k factors[k][positions[k]], and p is its rounded
// value. isRounded becomes true if the product or the addition is rounded; it stays true then.
func (s *termSum) addTerm(factors [][]float64, positions []int, total, p float64) {
	s.absoluteSum += math.Abs(p)
	if s.isRounded {
		return
	}

	// A product is exact if its rounding error, which the fused multiplication gives, is 0.
	product := 1.0
	for k, f := range factors {
		next := float64(product * f[positions[k]])
		s.isRounded = s.isRounded || math.FMA(product, f[positions[k]], -next) != 0
		product = next
	}

	// An addition is exact if its rounding error, by Knuth's two-sum, is 0.
	sum := total + p
	addend := sum - total
	roundingError := (total - (sum - addend)) + (p - addend)
	s.isRounded = s.isRounded || roundingError != 0
}

// hasCancelled reports whether the rounded sum, total, may lack digits that the exact sum of the terms has: something was rounded, and
// terms of both signs cancel.
func (s *termSum) hasCancelled(total float64) bool {
	return s.isRounded && math.Abs(total)*harmless < s.absoluteSum
}

// sumErrors bounds the relative error of the entries of a table, each of which is a sum of products.
type sumErrors struct {
	factorErr float64 // error of the factors together, in units of 2^-53
	roundings float64 // of one sum
	isSigned  bool    // terms may be of both signs
	condition float64 // Σ|terms| over |Σ terms| of a sum that was rounded, at most
}

// addSum records that an entry of the table is total, the sum of terms. It reports whether the entries so far have enough correct digits.
// condition is the factor by which cancellation enlarges errors: the largest Σ|terms| / |Σ terms| of the entries with rounded terms. One
// of two limits must hold: condition is at most harmless, so that next to nothing has cancelled, or the bound of the relative error, in
// units of 2^-53, is at most maxError. A single entry may not lose more than three digits.
func (s *sumErrors) addSum(terms *termSum, total float64) bool {
	switch {
	case !s.isSigned:
		s.condition = 1
	case !terms.isRounded || terms.absoluteSum == 0: // the sum is exact: condition stays
	case math.Abs(total) < leastSumRatio*terms.absoluteSum: // more than three digits have cancelled
		return false
	default:
		s.condition = max(s.condition, terms.absoluteSum/math.Abs(total))
	}
	return s.condition <= harmless || s.errorBound() <= maxError
}

// errorBound returns a bound of the relative error of the table's entries, in units of 2^-53: the errors of the factors and the roundings
// of a sum, enlarged by cancellation.
func (s *sumErrors) errorBound() float64 { return (s.factorErr + s.roundings) * s.condition }

// exactSum returns Σ Π_k factors[k], a sum over the next n values of walk, rounded once from the exact sum. walk.Position[k] is the
// position in factors[k]. Every product is written as an exact sum of floating-point numbers. Each further factor doubles how many these
// are: a product of two numbers is its rounded value plus its rounding error. The result may be beyond float64: ±Inf, or too small.
func exactSum(walk *sumproduct.Walk, factors [][]float64, n int) float64 {
	var terms []scaled.Number
	for range n {
		first := len(terms) // terms[first:] add up to the product of the factors so far, which is 1 at first
		terms = append(terms, scaled.One)
		for k, f := range factors {
			x := scaled.FromFloat(f[walk.Position[k]])
			for t, y := range terms[first:] { // x·y is the rounded product plus its rounding error
				rounded := float64(x.Mant * y.Mant)
				roundingError := math.FMA(x.Mant, y.Mant, -rounded)
				terms[first+t] = scaled.Make(rounded, x.Exp+y.Exp)
				terms = append(terms, scaled.Make(roundingError, x.Exp+y.Exp))
			}
		}
		walk.Next()
	}
	return scaled.Sum(terms).Float64()
}
