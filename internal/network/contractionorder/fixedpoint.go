package contractionorder

// Logarithms in fixed point: the search compares the same numbers on every machine.

import (
	"math"
	"math/bits"
)

// logs is log2 of a size in units of 2^−16.
// A sum over 10^5 indices of dimension 2^30 is far below overflow.
type logs = int64

const (
	fraction = 16                  // binary digits after the point
	oneBit   = logs(1) << fraction // log2 of 2
)

// log2 returns log2 x, rounded down to the unit, for x ≥ 1. It finds the binary digits of the logarithm by repeated squaring: the digit is
// 1 if the square of the mantissa is 2 or more.
func log2(x uint64) logs {
	whole := bits.Len64(x) - 1
	mantissa := x << (63 - whole) // in [1, 2) with 63 binary digits
	digits := logs(whole)
	for range fraction {
		square, _ := bits.Mul64(mantissa, mantissa) // in [1, 4) with 62 digits
		digits <<= 1
		if square>>63 != 0 {
			digits |= 1
			mantissa = square
		} else {
			mantissa = square << 1
		}
	}
	return digits
}

// pow2Coarse[k] = 2^(k/256) and pow2Fine[k] = 2^(k/65536). They are computed by square roots, which IEEE 754 rounds correctly.
var pow2Coarse, pow2Fine = pow2Tables()

// pow2Tables computes both tables from the 16 roots 2^(2^b/65536).
func pow2Tables() (coarse, fine [256]float64) {
	var root [fraction]float64 // root[b] = 2^(2^b/65536)
	x := 2.0
	for b := fraction - 1; b >= 0; b-- {
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

// pow2 returns 2^x. It returns 2^1000 if x is 1000 bits or more, and 0 if x is below −1000 bits.
func pow2(x logs) float64 {
	e := x >> fraction
	if e >= 1000 {
		return 0x1p1000
	}
	if e < -1000 {
		return 0
	}
	f := x & (oneBit - 1)
	return float64(pow2Coarse[f>>8] * pow2Fine[f&255] * math.Float64frombits(uint64(e+1023)<<52))
}

// log2Float returns log2 of x ≥ 2^−1000 with an error of about 2^−12, by the leading 12 digits of its mantissa.
func log2Float(x float64) logs {
	b := math.Float64bits(x)
	return (logs(b>>52)-1023)<<fraction + mantissaLog[b>>40&0xfff]
}

// mantissaLog[k] = log2(1 + (k+½)/4096).
var mantissaLog = func() (table [4096]logs) {
	for k := range table {
		table[k] = log2(uint64(2*4096+2*k+1)) - 13*oneBit
	}
	return table
}()

// log1p[k] = log2(1 + 2^−(k+½)/256).
var log1p = func() (table [fraction << 8]logs) {
	for k := range table {
		table[k] = log2(uint64((1+pow2(-logs(k)<<8-128))*0x1p62)) - 62*oneBit
	}
	return table
}()

// logAdd returns log2(2^a + 2^b) with an error of about 2^−10.
func logAdd(a, b logs) logs {
	if a < b {
		a, b = b, a
	}
	step := (a - b) >> 8
	if step >= logs(len(log1p)) {
		return a
	}
	return a + log1p[step] // log2(2^a + 2^b) = a + log2(1 + 2^(b−a))
}

// log2Quick returns log2 of x ≥ 1 with an error of about 2^−12, by its leading 13 digits.
func log2Quick(x uint64) logs {
	whole := bits.Len64(x) - 1
	return logs(whole)<<fraction + mantissaLog[x<<(63-whole)>>51&0xfff]
}
