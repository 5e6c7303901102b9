package contractionorder

// Logarithms in fixed point: the search compares the same numbers on every machine.

import (
	"math"
	"math/bits"
)

// log2Fixed is log2 of a size or a price in fixed point: an integer in units of 2^−16.
// A sum over 10^5 indices of dimension 2^30 is far below overflow.
type log2Fixed = int64

const (
	fractionBits = 16                           // binary digits after the point
	oneBit       = log2Fixed(1) << fractionBits // log2 of 2
)

// log2 returns log2 x for x ≥ 1 in fixed point, rounded down to a multiple of 2^−fractionBits. It writes x as 2^whole times a mantissa m
// in [1, 2). It finds the binary digits of log2 m by repeated squaring: log2 m² = 2·log2 m, so the next digit is 1 if m² ≥ 2, and then
// m²/2 is the next mantissa.
func log2(x uint64) log2Fixed {
	whole := bits.Len64(x) - 1
	mantissa := x << (63 - whole) // in [1, 2) with 63 binary digits after the point
	digits := log2Fixed(whole)
	for range fractionBits {
		square, _ := bits.Mul64(mantissa, mantissa) // in [1, 4) with 62 digits after the point
		digits <<= 1
		if square>>63 != 0 {
			digits |= 1
			mantissa = square // m²/2, with 63 digits after the point
		} else {
			mantissa = square << 1 // m², with 63 digits after the point
		}
	}
	return digits
}

// pow2Coarse[k] = 2^(k/256) and pow2Fine[k] = 2^(k/65536). They are computed by square roots, which IEEE 754 rounds correctly.
var pow2Coarse, pow2Fine = pow2Tables()

// pow2Tables returns the tables coarse[k] = 2^(k/256) and fine[k] = 2^(k/65536). It computes the 16 roots 2^(2^b/65536) by repeated square
// roots of 2. An entry is the product of the roots for those bits b of k that are set; for coarse, bit b stands for bit b+8.
func pow2Tables() (coarse, fine [256]float64) {
	var root [fractionBits]float64 // root[b] = 2^(2^b/65536)
	x := 2.0
	for b := fractionBits - 1; b >= 0; b-- {
		x = math.Sqrt(x)
		root[b] = x
	}

	for k := range 256 {
		coarse[k], fine[k] = 1, 1
		for b := range 8 {
			if k>>b&1 != 0 {
				fine[k] *= root[b]
				coarse[k] *= root[b+8]
			}
		}
	}
	return coarse, fine
}

// pow2 returns 2^x for x in fixed point, with 16 binary digits after the point. It returns 2^1000 if x ≥ 1000, and 0 if x < −1000. It
// multiplies 2^whole, made from its bits, by the powers of the upper and the lower 8 digits after the point, which are in tables.
func pow2(x log2Fixed) float64 {
	whole := x >> fractionBits
	if whole >= 1000 {
		return 0x1p1000
	}
	if whole < -1000 {
		return 0
	}
	digits := x & (oneBit - 1)                              // after the point
	power := math.Float64frombits(uint64(whole+1023) << 52) // 2^whole: the exponent of a float64 has the bias 1023, above 52 bits
	return float64(pow2Coarse[digits>>8] * pow2Fine[digits&255] * power)
}

// log2Float returns log2 of x ≥ 2^−1000 in fixed point, with an error of about 2^−12. The exponent of x is the whole part; a table has log2
// of the mantissa by its leading 12 digits.
func log2Float(x float64) log2Fixed {
	floatBits := math.Float64bits(x)
	return (log2Fixed(floatBits>>52)-1023)<<fractionBits + mantissaLog[floatBits>>40&0xfff]
}

// mantissaLog[k] = log2(1 + (k+½)/4096).
var mantissaLog = func() (table [4096]log2Fixed) {
	for k := range table {
		table[k] = log2(uint64(2*4096+2*k+1)) - 13*oneBit
	}
	return table
}()

// log1p[k] = log2(1 + 2^−(k+½)/256).
var log1p = func() (table [fractionBits << 8]log2Fixed) {
	for k := range table {
		table[k] = log2(uint64((1+pow2(-log2Fixed(k)<<8-128))*0x1p62)) - 62*oneBit
	}
	return table
}()

// logAdd returns log2(2^a + 2^b) with an error of about 2^−10. a, b and the result are in fixed point, in units of 2^−16. log1p[k] is
// log2(1 + 2^−d) for differences d = a − b between k/256 and (k+1)/256; beyond the end of the list it is about 0.
func logAdd(a, b log2Fixed) log2Fixed {
	if a < b {
		a, b = b, a
	}
	k := (a - b) >> 8 // from units of 2^−16 to units of 1/256
	if k >= log2Fixed(len(log1p)) {
		return a
	}
	return a + log1p[k] // log2(2^a + 2^b) = a + log2(1 + 2^(b−a))
}

// log2Quick returns log2 of x ≥ 1 in fixed point, with an error of about 2^−12. The position of the leading digit of x is the whole part; a
// table has log2 of the mantissa by the 12 digits after it.
func log2Quick(x uint64) log2Fixed {
	whole := bits.Len64(x) - 1
	return log2Fixed(whole)<<fractionBits + mantissaLog[x<<(63-whole)>>51&0xfff]
}
