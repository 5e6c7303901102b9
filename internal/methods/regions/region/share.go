package region

// Shares of a family: which of its regions a component has, before their number is known.

// shareBits: a share bound is a position in a family, from 0 at its beginning to 2^shareBits at its end. The number of regions is not
// known before the evidence of a slice is.
const shareBits = 20

// ShareBound returns the bound between part k−1 and part k if a family is divided into n equal parts, in units of 2^−20 of the family.
func ShareBound(k, n int) int64 { return int64(k) << shareBits / int64(n) }

// RegionsBetween returns the range from ≤ r < to of the regions, out of n, that lie between two bounds, which are in units of 2^−20 of n
// (ShareBound).
func RegionsBetween(n int, low, high int64) (from, to int) {
	regionAt := func(bound int64) int { return int(bound * int64(n) >> shareBits) }
	return regionAt(low), regionAt(high)
}
