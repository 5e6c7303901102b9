package scaled

import (
	"math/bits"
)

// Exact sums of few numbers of similar size, in 128 bits.

const (
	nearSpan  = 64  // largest distance of two exponents
	nearTerms = 256 // largest number of terms: 53 bits of a mantissa, 64 of the distance and 8 of the terms are 125, and there is a sign
)

// sumNear returns the correctly rounded sum of finite numbers, by integers of 128 bits. ok is false if there are too many numbers, or if
// their exponents are too far apart for that.
func sumNear(xs []Number) (sum Number, ok bool) {
	if len(xs) == 0 {
		return Number{}, true
	}
	if len(xs) > nearTerms {
		return Number{}, false
	}

	low, high := xs[0].Exp, xs[0].Exp
	for _, x := range xs[1:] {
		low, high = min(low, x.Exp), max(high, x.Exp)
	}
	if uint64(high-low) > nearSpan { // as unsigned, since the difference may overflow
		return Number{}, false
	}

	// The sum in units of 2^(low−mantissaBits), in two's complement over two words.
	var hi, lo, carry uint64
	for _, x := range xs {
		mantissa := int64(x.Mant * (1 << mantissaBits))
		shift := uint64(x.Exp - low)
		lo, carry = bits.Add64(lo, uint64(mantissa)<<shift, 0)
		hi, _ = bits.Add64(hi, uint64(mantissa>>(64-shift)), carry) // the bits that are shifted out of lo, or the sign
	}

	sign := 1.0
	if int64(hi) < 0 { // negate
		sign = -1
		lo, carry = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, carry)
	}
	kept, dropped := roundTo53Bits(hi, lo)
	return Make(sign*kept, low+dropped-mantissaBits), true
}

// roundTo53Bits returns the integer hi·2^64 + lo as kept·2^dropped, rounded to nearest, ties to even. dropped is the number of bits that
// are not kept. mantissaBits is 52, the bits of a mantissa behind its first.
func roundTo53Bits(hi, lo uint64) (kept float64, dropped int64) {
	length := bits.Len64(lo)
	if hi != 0 {
		length = 64 + bits.Len64(hi)
	}
	dropped = int64(length - mantissaBits - 1)
	if dropped <= 0 {
		return float64(lo), 0
	}

	// Shifts by 64 and more, or by less than 0 as an unsigned number, give 0.
	d := uint64(dropped)
	integer := lo>>d | hi<<(64-d) | hi>>(d-64)
	firstDropped := lo >> (d - 1) & 1 // the highest bit that is dropped
	hasLower := lo<<(65-d) != 0       // another dropped bit is 1
	if d > 64 {                       // all of lo is dropped
		firstDropped = hi >> (d - 65) & 1
		hasLower = lo != 0 || hi<<(129-d) != 0
	}

	isTie := firstDropped == 1 && !hasLower
	isOdd := integer&1 == 1
	if firstDropped == 1 && (!isTie || isOdd) {
		integer++
	}
	return float64(integer), dropped
}
