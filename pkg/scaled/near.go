package scaled

import (
	"math/bits"
)

// Exact sums of few numbers of similar size, in 128 bits.

const (
	nearSpan  = 64  // exponents may be that far apart
	nearTerms = 256 // and so many numbers be added: 53 + 64 + 8 bits, and a sign
)

// sumNear is sumDescending, in any order, for numbers that fit 128 bits;
// it returns false for others.
func sumNear(xs []Number) (Number, bool) {
	if len(xs) == 0 || len(xs) > nearTerms {
		return Number{}, len(xs) == 0
	}

	low, high := xs[0].Exp, xs[0].Exp
	for _, x := range xs[1:] {
		low, high = min(low, x.Exp), max(high, x.Exp)
	}
	if uint64(high-low) > nearSpan {
		return Number{}, false
	}

	// Two's complement over two words.
	var hi, lo, carry uint64
	for _, x := range xs {
		m := int64(x.Mant * (1 << mantissaBits))
		shift := uint64(x.Exp - low)
		lo, carry = bits.Add64(lo, uint64(m)<<shift, 0)
		hi, _ = bits.Add64(hi, uint64(m>>(64-shift)), carry)
	}

	sign := 1.0
	if int64(hi) < 0 {
		sign = -1
		lo, carry = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, carry)
	}
	return Make(sign*nearest(hi, lo, &low), low-mantissaBits), true
}

// nearest returns an integer of 128 bits rounded to nearest even,
// divided by the power of two that it adds to *exp.
func nearest(hi, lo uint64, exp *int64) float64 {
	drop := bits.Len64(lo) - mantissaBits - 1
	if hi != 0 {
		drop = 64 + bits.Len64(hi) - mantissaBits - 1
	}
	if drop <= 0 {
		return float64(lo)
	}

	*exp += int64(drop)
	d := uint64(drop)
	// shifts by 64 and more, or by less than 0 as an unsigned number, give 0
	kept := lo>>d | hi<<(64-d) | hi>>(d-64)
	half := lo >> (d - 1) & 1 // the first bit dropped
	rest := lo<<(65-d) != 0   // and whether another one is 1
	if d > 64 {
		half = hi >> (d - 65) & 1
		rest = lo != 0 || hi<<(129-d) != 0
	}

	if half == 1 && (rest || kept&1 == 1) {
		kept++
	}
	return float64(kept)
}
