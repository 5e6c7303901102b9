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

// LargestBits returns the bits of the largest absolute value of a list: for finite numbers the order of
// bits is the order of values. 0 for an empty list. Four running maxima hide the latency of the
// comparisons.
func LargestBits(data []float64) uint64 {
	var t0, t1, t2, t3 uint64
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

// Extent returns the exponents of the largest and the smallest absolute value that is not 0, 2^low
// ≤ |x| < 2^(top+1), and whether an entry is below 0. Subnormal entries count bit by bit; top is
// 1024 for an infinite one or NaN. Where all entries are 0 both are 0.
func Extent(data []float64) (top, low int, signed bool) {
	var most, negative uint64
	least := ^uint64(0)
	for _, x := range data {
		b := math.Float64bits(x)
		if b == sign { // −0 is no negative number
			b = 0
		}
		negative |= b
		b &^= sign
		most = max(most, b)
		least = min(least, b-1) // 0 becomes the largest
	}

	if most == 0 {
		return 0, 0, false
	}
	return Exponent(most), Exponent(least + 1), negative&sign != 0
}

// Exponent is floor(log2) of a positive float64 given as bits, subnormal ones included.
func Exponent(b uint64) int {
	if e := int(b >> 52); e > 0 {
		return e - 1023
	}
	return bits.Len64(b) - 1075
}

// Normalise divides data by the power of two that puts its largest entry in [1, 2), and returns
// that power; 1 for zeros. Entries that end below 2^-1022 lose digits: see Extent. Subnormal
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

// Shift multiplies data by 2^by, |by| ≤ 2100, in place.
func Shift(data []float64, by int) {
	if by >= -1000 && by <= 1000 {
		f := math.Ldexp(1, by)
		for i := range data {
			data[i] *= f
		}
		return
	}

	// Two factors: one alone is out of range.
	// Down, the first cannot underflow where the product does not.
	half := by / 2
	f := math.Ldexp(1, half)
	g := math.Ldexp(1, by-half)
	for i := range data {
		data[i] = data[i] * f * g
	}
}

// SumRoundings bounds the roundings that a term goes through in a sum of n, one after the other:
// n − 1 at most. Errors of both signs make no more than 8·√n of many, but for a chance of 1e-13.
func SumRoundings(n float64) float64 { return min(n-1, 8*math.Sqrt(n)) }

// Sum adds with compensation (Neumaier): the error is nearly one rounding of the result.
type Sum struct{ High, Low float64 }

// Add adds a number and keeps its rounding error.
func (s *Sum) Add(x float64) {
	high := s.High + x
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

// Value is the sum, rounded once.
func (s Sum) Value() float64 { return s.High + s.Low }

// Ln is the natural logarithm of a float64, of subnormal ones too: math.Log takes those for 2^-1023 on amd64.
func Ln(x float64) float64 {
	if x < 0x1p-1022 && x > 0 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// LnSum is ln Σ e^x, −Inf where every term is 0.
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
