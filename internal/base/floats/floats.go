// Package floats keeps lists of float64s in range: the exponents of their entries, the power of two that they share,
// the losses in products and sums of them, and sums that keep their rounding errors.
package floats

import (
	"math"
	"math/bits"

	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// Infinity is the bits of +Inf; NaNs have larger bits, finite absolute values smaller ones.
	Infinity = uint64(0x7ff) << 52
	// Lowest is the exponent down to which products of floats keep all their digits:
	// 2^Lowest is a normal float64.
	Lowest = -1020

	sign = uint64(1) << 63
)

// LargestBits returns the bits of the largest absolute value of a list, 0 for an empty list. The order of bits is the order of values, with
// infinity above all finite numbers and NaN above infinity.
func LargestBits(data []float64) uint64 {
	var t0, t1, t2, t3 uint64 // four running maxima hide the latency of the comparisons
	for len(data) >= 4 {
		t0 = max(t0, math.Float64bits(data[0])&^sign)
		t1 = max(t1, math.Float64bits(data[1])&^sign)
		t2 = max(t2, math.Float64bits(data[2])&^sign)
		t3 = max(t3, math.Float64bits(data[3])&^sign)
		data = data[4:]
	}
	for _, x := range data {
		t0 = max(t0, math.Float64bits(x)&^sign)
	}
	return max(t0, t1, t2, t3)
}

// Extent returns the binary exponents of the largest and of the smallest absolute value in data, zeros left out: 2^low ≤ |x| < 2^(top+1)
// for every x but 0. It also returns whether an entry is below 0. If all entries are 0, both exponents are 0. If an entry is infinite or
// NaN, top is 1024. Exponents of subnormal entries are exact, too.
func Extent(data []float64) (top, low int, hasNegative bool) {
	var largest, signs uint64 // bits of the largest absolute value; the union of all bits
	smallest := ^uint64(0)    // bits of the smallest absolute value that is not 0, less one
	for _, x := range data {
		b := math.Float64bits(x)
		if b == sign { // −0 is no negative number
			b = 0
		}
		signs |= b
		b &^= sign
		largest = max(largest, b)
		smallest = min(smallest, b-1) // 0 wraps around to the largest number
	}

	if largest == 0 {
		return 0, 0, false
	}
	return Exponent(largest), Exponent(smallest + 1), signs&sign != 0
}

// Exponent returns floor(log2 x) of a positive float64 x given by its bits. x may be subnormal.
func Exponent(bitsOfX uint64) int {
	if biased := int(bitsOfX >> 52); biased > 0 {
		return biased - 1023
	}
	return bits.Len64(bitsOfX) - 1075
}

// Normalise divides data in place by the power of two that puts its largest entry in [1, 2), and returns that power. It leaves data as it
// is, and returns 1, if all entries are 0 or one is not finite. Entries that come out below 2^-1022 lose digits: see Extent. Subnormal
// entries that are scaled up lose none.
func Normalise(data []float64) scaled.Number {
	top := LargestBits(data)
	if top == 0 || top >= Infinity {
		return scaled.One
	}
	return Rescale(data, top)
}

// Rescale is Normalise for a list whose largest absolute value is known by its bits,
// neither 0 nor infinite.
func Rescale(data []float64, top uint64) scaled.Number {
	exp := Exponent(top)
	if exp != 0 {
		Shift(data, -exp)
	}
	return scaled.Make(1, int64(exp))
}

// Shift multiplies data in place by 2^exp, |exp| ≤ 2100.
func Shift(data []float64, exp int) {
	if exp >= -1000 && exp <= 1000 {
		factor := math.Ldexp(1, exp)
		for i := range data {
			data[i] *= factor
		}
		return
	}

	// Two factors, because 2^exp may be out of range. With exp below 0, the first product cannot underflow if the second does not.
	half := exp / 2
	first := math.Ldexp(1, half)
	second := math.Ldexp(1, exp-half)
	for i := range data {
		data[i] = data[i] * first * second
	}
}

// SumRoundings bounds by how many roundings the error of a sum of n terms grows, added one after the other. There are n − 1 of them.
// Since they have both signs, those of many terms add up to at most 8·√n, but for a chance of 1e-13.
func SumRoundings(n float64) float64 { return min(n-1, 8*math.Sqrt(n)) }

// Sum adds with compensation (Neumaier): the error is nearly one rounding of the result.
type Sum struct{ High, Low float64 }

// Add adds x to High, and the rounding error of that addition to Low.
func (s *Sum) Add(x float64) {
	high := s.High + x
	// What the rounded sum lacks of the smaller number, which is exact.
	if math.Abs(s.High) >= math.Abs(x) {
		s.Low += s.High - high + x
	} else {
		s.Low += x - high + s.High
	}
	s.High = high
}

// Plus adds another sum.
func (s *Sum) Plus(o Sum) {
	s.Add(o.High)
	s.Add(o.Low)
}

// Value returns the sum, rounded once.
func (s Sum) Value() float64 { return s.High + s.Low }

// Ln returns the natural logarithm of x, which may be subnormal: math.Log takes such numbers for 2^-1023 on amd64.
func Ln(x float64) float64 {
	if x < 0x1p-1022 && x > 0 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// LnSum returns ln Σ_i e^(x_i), relative to the largest x_i so that nothing overflows. It is −Inf for an empty list, and if all x_i are.
func LnSum(x []float64) float64 {
	top := math.Inf(-1)
	for _, y := range x {
		top = max(top, y)
	}
	if math.IsInf(top, 0) {
		return top
	}
	sum := 0.0
	for _, y := range x {
		sum += math.Exp(y - top)
	}
	return top + math.Log(sum)
}
