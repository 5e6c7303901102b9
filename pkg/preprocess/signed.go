package preprocess

// Sums of terms of both signs.

import "math"

// digitsKept is how far terms of both signs may cancel in a sum that was rounded: three digits of sixteen.
const digitsKept = 0x1p-10

// signed watches one sum. The zero value is an empty sum.
type signed struct {
	size    float64 // Σ|terms|
	rounded bool    // a product or an addition was
}

// add takes the product of factors at some places, rounded to p, which is added to total.
func (s *signed) add(factors [][]float64, at []int, total, p float64) {
	s.size += math.Abs(p)
	if s.rounded {
		return
	}
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

// keeps says whether the digits of the sum are there: few have cancelled, or nothing was rounded.
func (s *signed) keeps(total float64) bool {
	return !s.rounded || math.Abs(total) >= digitsKept*s.size
}
