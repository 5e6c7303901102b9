package preprocess

// What rounding may do to entries, and when two numbers are taken for equal.

import "math"

const (
	// tiny is below every entry that products of entries may have: they would lose digits or vanish.
	tiny = 0x1p-1000
	// rounding bounds the relative difference of an entry from the product it is compared with: a
	// few roundings, so that a thousand splits cannot be seen in Z.
	rounding = 4 * 0x1p-52
	// factorisationError is rounding in units of 2^-53: a factorisation's contribution to the error of the
	// entries.
	factorisationError = rounding * 0x1p53
)

// equals reports whether an entry is the product of a and b within rounding. If a or b is 0, the entry must be 0. A tiny product, which has
// lost digits, counts as equal only if one of a and b is 1 and the other is the entry.
func equals(entry, a, b float64) bool {
	if a == 0 || b == 0 {
		return entry == 0
	}
	product := float64(a * b)
	isClose := math.Abs(entry-product) <= rounding*math.Abs(entry)
	isCopy := entry == product && (a == 1 || b == 1)
	return isClose && (math.Abs(product) >= tiny || isCopy)
}

// factorError returns the bound err for each table that t is split into: the relative error of an entry, in units of 2^-53. factors is
// their number; together they have the error of t and that of the quotients. Quotients of powers of two are not rounded.
func (t *table) factorError(factors int) float64 {
	if t.err == 0 && arePowersOfTwo(t.data) {
		return 0
	}
	return (t.err + factorisationError*float64(factors)) / float64(factors)
}

// arePowersOfTwo reports whether all entries are 0 or ± a power of two.
func arePowersOfTwo(data []float64) bool {
	for _, x := range data {
		if mantissa, _ := math.Frexp(x); mantissa != 0 && mantissa != 0.5 && mantissa != -0.5 {
			return false
		}
	}
	return true
}

// indexOfLargest returns the position of the entry with the largest absolute value, the first one of several.
func indexOfLargest(data []float64) int {
	best := 0
	for k, x := range data {
		if math.Abs(x) > math.Abs(data[best]) {
			best = k
		}
	}
	return best
}
