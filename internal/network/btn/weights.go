package btn

// Weights of a variable as float64s with one exponent taken out.

import (
	"errors"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrRange states that the weights of one variable differ by more than float64s with a common exponent can hold.
var ErrRange = errors.New("btn: weights out of range")

const (
	moderateExp = 100   // a largest weight within 2^±moderateExp is left as it is
	minExp      = -1000 // no non-zero weight may lie below 2^minExp, where digits are lost
	maxExp      = 400   // nor above 2^maxExp once shifted, so that squares stay finite
)

// FitWeights returns numbers as weights w and an exponent exp, such that numbers[x] is w[x]·2^exp, exactly, and w[x] is of moderate size.
// exp is 0 if all numbers are moderate already: none is above 2^100 (moderateExp) or below 2^−1000 (minExp), and the largest is not below
// 2^−100. Zeros stay zeros. The error wraps ErrRange if the non-zero numbers span more than 2^1400, so that no exponent fits all: to lose
// the small ones silently would be wrong as soon as evidence excludes the large ones.
func FitWeights(numbers []scaled.Number) (w []float64, exp int64, err error) {
	w = make([]float64, len(numbers))
	low, high, err := exponentRange(numbers)
	if err != nil {
		return nil, 0, err
	}
	if areAllZero := low > high; areAllZero {
		return w, 0, nil
	}

	// Choose exp.
	if high > moderateExp || high < -moderateExp || low < minExp {
		// The largest number goes to 2^0, or as far above 2^0 as keeps the smallest one at 2^minExp.
		shiftedHigh := max(0, high-low+minExp)
		if shiftedHigh > maxExp {
			return nil, 0, fmt.Errorf("%w: they span a factor of 2^%d, at most 2^%d is supported",
				ErrRange, high-low, maxExp-minExp)
		}
		exp = high - shiftedHigh
	}

	for x, a := range numbers {
		if !a.IsZero() {
			w[x] = math.Ldexp(a.Mant, int(a.Exp-exp))
		}
	}
	return w, exp, nil
}

// exponentRange returns the binary exponents of the smallest and of the largest number that is not 0; low is above high if all are 0. The
// error, for a number that is not finite, wraps ErrRange.
func exponentRange(numbers []scaled.Number) (low, high int64, err error) {
	low, high = math.MaxInt64, math.MinInt64
	for x, a := range numbers {
		if !a.IsFinite() {
			return 0, 0, fmt.Errorf("%w: weight of value %d is %v", ErrRange, x, a.Mant)
		}
		if !a.IsZero() {
			low, high = min(low, a.Exp), max(high, a.Exp)
		}
	}
	return low, high, nil
}
