package preprocess

// What rounding may do to entries, and when two numbers are taken for equal.

import "math"

const (
	// tiny is below every entry that products of entries may have: they would lose digits or vanish.
	tiny = 0x1p-1000
	// rounding bounds the relative difference of an entry from the product it is compared with: a
	// few roundings, so that a thousand splits cannot be seen in Z.
	rounding = 4 * 0x1p-52
	// rounds is rounding in units of 2^-53: a factorisation's contribution to the error of the
	// entries.
	rounds = rounding * 0x1p53
)

// equals reports whether an entry agrees with its factorisation, the product of a and b. A zero is
// one exactly, and no product that is tiny is compared: it has lost digits, or is 0 and should not
// be.
func equals(entry, a, b float64) bool {
	if a == 0 || b == 0 {
		return entry == 0
	}
	p := float64(a * b)
	return math.Abs(entry-p) <= rounding*math.Abs(entry) &&
		(math.Abs(p) >= tiny || entry == p && (a == 1 || b == 1))
}

// factorised is the error of each of a table's factors. Powers of two have quotients
// that are not rounded.
func (t *table) factorised(factors int) float64 {
	if t.err == 0 && plain(t.data) {
		return 0
	}
	return (t.err + rounds*float64(factors)) / float64(factors)
}

// plain reports whether all entries are 0 or ± a power of two.
func plain(data []float64) bool {
	for _, x := range data {
		if m, _ := math.Frexp(x); m != 0 && m != 0.5 && m != -0.5 {
			return false
		}
	}
	return true
}

// largest returns the place of the first entry of the largest absolute value.
func largest(data []float64) int {
	best := 0
	for k, x := range data {
		if math.Abs(x) > math.Abs(data[best]) {
			best = k
		}
	}
	return best
}
