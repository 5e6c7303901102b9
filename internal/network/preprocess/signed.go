package preprocess

// Loss of digits in sums of terms of both signs.

import (
	"math"
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
)

// signed watches one sum. The zero value is an empty sum.
type signed struct {
	size    float64 // Σ|terms|
	rounded bool    // a factor, a product or an addition was
}

// add takes the product of factors at some places, rounded to p, which is added to total.
func (s *signed) add(factors [][]float64, at []int, total, p float64) {
	s.size += math.Abs(p)
	if s.rounded {
		return
	}

	// A product is exact where the fused multiplication leaves no rest,
	// a sum where the two-sum does not.
	product := 1.0
	for k, f := range factors {
		next := float64(product * f[at[k]])
		s.rounded = s.rounded || math.FMA(product, f[at[k]], -next) != 0
		product = next
	}

	sum := total + p
	v := sum - total
	s.rounded = s.rounded || (total-(sum-v))+(p-v) != 0
}

// cancels says that digits are gone which the exact sum of the terms may have.
func (s *signed) cancels(total float64) bool {
	return s.rounded && math.Abs(total)*harmless < s.size
}

// sums watches the sums that make a table.
type sums struct {
	given     float64 // error of the factors together, in units of 2^-53
	roundings float64 // of one sum
	signed    bool
	worst     float64 // Σ|terms| over |Σ terms| of a sum that was rounded, at most
}

// take says whether the digits of a sum are there: few have cancelled, or nothing was rounded.
func (s *sums) take(one *signed, total float64) bool {
	switch {
	case !s.signed:
		s.worst = 1
	case !one.rounded || one.size == 0:
	case math.Abs(total) < digitsKept*one.size:
		return false
	default:
		s.worst = max(s.worst, one.size/math.Abs(total))
	}
	return s.worst <= harmless || s.err() <= errorKept
}

// err is the error of the table's entries.
func (s *sums) err() float64 { return (s.given + s.roundings) * s.worst }

// plain reports whether all entries are 0 or ± a power of two.
func plain(data []float64) bool {
	for _, x := range data {
		if m, _ := math.Frexp(x); m != 0 && m != 0.5 && m != -0.5 {
			return false
		}
	}
	return true
}
